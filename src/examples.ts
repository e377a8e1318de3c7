import { PLACEHOLDER, type RequestExamples } from './http/openapi-examples.js'

/** The lowest id of a row for the examples. Generated ids do not reach it. */
const FIRST_ID = 1_000_000_001

/**
 * The ids of the rows that the examples read and write. `npm run dev` has these rows (dev/muestra.ts).
 * No other database does, so there the examples change nobody's data.
 *
 * Each example has rows of its own to change, so that all of them succeed in any order.
 */
export const EXAMPLE_IDS = {
  usuario: { edited: FIRST_ID, deleted: FIRST_ID + 1 },
  perfil: { edited: FIRST_ID, replaced: FIRST_ID + 1, deleted: FIRST_ID + 2 },
  modulo: { edited: FIRST_ID, granted: FIRST_ID + 1, deleted: FIRST_ID + 2 },
  permiso: { edited: FIRST_ID, deleted: FIRST_ID + 1 },
}

const { usuario, perfil, modulo, permiso } = EXAMPLE_IDS

/**
 * The requests that the page of the documentation prefills, by `operationId`. An operation that is not
 * listed has neither a parameter in its path nor a body. No request changes the administrator or the
 * administrator's profile.
 */
export const EXAMPLES: RequestExamples = {
  // The administrator of `npm run dev`.
  login: {
    body: { strNombreUsuario: 'admin', strPwd: 'llavero-admin', captchaToken: 'token del widget' },
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

  createPerfil: { body: { strNombrePerfil: 'Recursos humanos', bitAdministrador: false } },
  updatePerfil: {
    params: { id: perfil.edited },
    body: { strNombrePerfil: 'Atención al cliente', bitAdministrador: false },
  },
  deletePerfil: { params: { id: perfil.deleted } },

  createModulo: { body: { strNombreModulo: `Biblioteca ${PLACEHOLDER}` } },
  updateModulo: { params: { id: modulo.edited }, body: { strNombreModulo: 'Archivo general' } },
  deleteModulo: { params: { id: modulo.deleted } },

  // A profile has one record for a module at most, so the second time this one is refused.
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
    body: { idPerfil: perfil.edited, idModulo: modulo.edited, bitConsulta: true, bitEditar: true },
  },
  deletePermiso: { params: { id: permiso.deleted } },
  getMisPermisos: { params: { idPerfil: perfil.edited } },
  listPermisosPorPerfil: { params: { idPerfil: perfil.edited } },
  guardarMatriz: {
    body: {
      idPerfil: perfil.replaced,
      permisos: [
        { idModulo: modulo.edited, bitConsulta: true, bitDetalle: true },
        { idModulo: modulo.granted, bitConsulta: true },
      ],
    },
  },
}
