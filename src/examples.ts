import { PLACEHOLDER, type RequestExamples } from './http/openapi-examples.js'

/** The lowest id of the example rows. It is so high that no generated id reaches it. */
const FIRST_ID = 1_000_000_001

/**
 * The ids of the rows that the examples read and write. `npm run dev` creates these rows
 * (dev/muestra.ts). No other database has them, so there the examples cannot change existing rows.
 *
 * No two examples change the same row, so that all of them succeed in any order.
 */
export const EXAMPLE_IDS = {
  usuario: {
    edited: FIRST_ID,
    deleted: FIRST_ID + 1,
  },
  perfil: {
    edited: FIRST_ID,
    replaced: FIRST_ID + 1,
    deleted: FIRST_ID + 2,
  },
  modulo: {
    edited: FIRST_ID,
    granted: FIRST_ID + 1,
    deleted: FIRST_ID + 2,
  },
  permiso: {
    edited: FIRST_ID,
    deleted: FIRST_ID + 1,
  },
}

const { usuario, perfil, modulo, permiso } = EXAMPLE_IDS

/**
 * The example requests that the page of the documentation prefills, by `operationId`. An operation that
 * is not listed has neither a path parameter nor a body. No example changes the administrator or the
 * administrator's profile.
 */
export const EXAMPLES: RequestExamples = {
  // These are the credentials of the administrator that `npm run dev` creates.
  login: {
    body: {
      strNombreUsuario: 'admin',
      strPwd: 'llavero-admin',
      captchaToken: 'token del widget',
    },
  },

  getUsuario: { params: { id: usuario.edited } },
  createUsuario: {
    body: {
      strNombreUsuario: `ana-${PLACEHOLDER}`,
      idPerfil: perfil.edited,
      strPwd: 'una clave larga',
      strCorreo: `ana-${PLACEHOLDER}@ejemplo.com`,
      strNumeroCelular: '5512345678',
      idEstadoUsuario: true,
    },
  },
  updateUsuario: {
    params: { id: usuario.edited },
    body: {
      strNombreUsuario: 'rosa',
      idPerfil: perfil.edited,
      strCorreo: 'rosa@ejemplo.com',
      strNumeroCelular: '5587654321',
      idEstadoUsuario: true,
    },
  },
  deleteUsuario: { params: { id: usuario.deleted } },

  createPerfil: {
    body: {
      strNombrePerfil: 'Recursos humanos',
      bitAdministrador: false,
    },
  },
  updatePerfil: {
    params: { id: perfil.edited },
    body: {
      strNombrePerfil: 'Atención al cliente',
      bitAdministrador: false,
    },
  },
  deletePerfil: { params: { id: perfil.deleted } },

  createModulo: {
    body: { strNombreModulo: `Biblioteca ${PLACEHOLDER}` },
  },
  updateModulo: {
    params: { id: modulo.edited },
    body: { strNombreModulo: 'Archivo general' },
  },
  deleteModulo: { params: { id: modulo.deleted } },

  // A profile has at most one record for each module, so this example is refused the second time.
  createPermiso: {
    body: {
      idPerfil: perfil.edited,
      idModulo: modulo.granted,
      bitConsulta: true,
      bitDetalle: true,
    },
  },
  updatePermiso: {
    params: { id: permiso.edited },
    body: {
      idPerfil: perfil.edited,
      idModulo: modulo.edited,
      bitConsulta: true,
      bitEditar: true,
    },
  },
  deletePermiso: { params: { id: permiso.deleted } },
  getMisPermisos: { params: { idPerfil: perfil.edited } },
  listPermisosPorPerfil: { params: { idPerfil: perfil.edited } },
  guardarMatriz: {
    body: {
      idPerfil: perfil.replaced,
      permisos: [
        {
          idModulo: modulo.edited,
          bitConsulta: true,
          bitDetalle: true,
        },
        {
          idModulo: modulo.granted,
          bitConsulta: true,
        },
      ],
    },
  },
}
