import { PLACEHOLDER, type RequestExamples } from './http/openapi-examples.js'

/**
 * The lowest id of the sample data that `npm run dev` inserts (dev/muestra.ts). A database without the
 * sample data never generates ids as high as this one. So the examples cannot change existing rows
 * there.
 */
const FIRST_ID = 1_000_000_001

/** The ids of the sample rows that the examples read and write. */
export const EXAMPLE_IDS = {
  usuario: {
    lucia: FIRST_ID,
    jose: FIRST_ID + 1,
  },
  perfil: {
    supervision: FIRST_ID,
    consulta: FIRST_ID + 1,
  },
  modulo: {
    almacen: FIRST_ID,
    campanas: FIRST_ID + 1,
    clientes: FIRST_ID + 2,
    compras: FIRST_ID + 3,
    reportes: FIRST_ID + 4,
    ventas: FIRST_ID + 5,
  },
  /** Records of the profile SUPERVISIÓN, named after their modules. */
  permiso: {
    compras: FIRST_ID,
    ventas: FIRST_ID + 1,
  },
}

/** The id of the system module MODULO, which the first migration inserts. */
const MODULO = 3

/** An id that no row ever has. */
const NO_ROW = FIRST_ID - 1

const { usuario, perfil, modulo, permiso } = EXAMPLE_IDS

/**
 * The example requests that the page of the documentation prefills, by `operationId`. An operation that
 * is not listed has neither a path parameter nor a body.
 *
 * No example changes the administrator or the administrator's profile. The examples of updates write the
 * values that the rows already have, and no example changes a row that another example needs. So all
 * examples succeed in any order.
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

  getUsuario: { params: { id: usuario.lucia } },
  createUsuario: {
    body: {
      strNombreUsuario: `ana-${PLACEHOLDER}`,
      idPerfil: perfil.consulta,
      strPwd: 'una clave larga',
      strCorreo: `ana-${PLACEHOLDER}@ejemplo.com`,
      strNumeroCelular: '5512345678',
      idEstadoUsuario: true,
    },
  },
  updateUsuario: {
    params: { id: usuario.lucia },
    body: {
      strNombreUsuario: 'lucia',
      idPerfil: perfil.supervision,
      strCorreo: 'lucia@ejemplo.com',
      strNumeroCelular: '5587654321',
      idEstadoUsuario: true,
    },
  },
  deleteUsuario: { params: { id: usuario.jose } },

  createPerfil: {
    body: {
      strNombrePerfil: 'Recursos humanos',
      bitAdministrador: false,
    },
  },
  updatePerfil: {
    params: { id: perfil.supervision },
    body: {
      strNombrePerfil: 'SUPERVISIÓN',
      bitAdministrador: false,
    },
  },
  // Both profiles of the sample have users, so neither can be deleted.
  deletePerfil: { params: { id: NO_ROW } },

  createModulo: {
    body: { strNombreModulo: `Biblioteca ${PLACEHOLDER}` },
  },
  updateModulo: {
    params: { id: modulo.almacen },
    body: { strNombreModulo: 'Almacén' },
  },
  deleteModulo: { params: { id: modulo.campanas } },

  // A profile has at most one record for each module. So this example is answered with 409 if it is
  // sent twice in succession. It succeeds again after the example of `guardarMatriz`, which removes the
  // record.
  createPermiso: {
    body: {
      idPerfil: perfil.consulta,
      idModulo: modulo.compras,
      bitConsulta: true,
      bitDetalle: true,
    },
  },
  updatePermiso: {
    params: { id: permiso.ventas },
    body: {
      idPerfil: perfil.supervision,
      idModulo: modulo.ventas,
      bitAgregar: true,
      bitEditar: true,
      bitConsulta: true,
      bitDetalle: true,
    },
  },
  deletePermiso: { params: { id: permiso.compras } },
  getMisPermisos: { params: { idPerfil: perfil.consulta } },
  listPermisosPorPerfil: { params: { idPerfil: perfil.consulta } },
  guardarMatriz: {
    body: {
      idPerfil: perfil.consulta,
      permisos: [
        { idModulo: MODULO, bitConsulta: true, bitDetalle: true },
        { idModulo: modulo.clientes, bitConsulta: true, bitDetalle: true },
        { idModulo: modulo.reportes, bitConsulta: true, bitDetalle: true },
        { idModulo: modulo.ventas, bitConsulta: true, bitDetalle: true },
      ],
    },
  },
}
