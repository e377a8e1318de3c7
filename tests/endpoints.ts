import {
  type Answer,
  INTERNAL,
  NOT_UPDATED,
  statusCodeAnswer,
  successFalseAnswer,
  TOO_LARGE,
} from './answers.js'
import { ADMIN } from './app.js'

/** The five flags of a permission record, as an administrator profile has them. */
export const ALL = {
  bitAgregar: true,
  bitEditar: true,
  bitConsulta: true,
  bitEliminar: true,
  bitDetalle: true,
}
export type Flag = keyof typeof ALL
export const FLAGS = Object.keys(ALL) as Flag[]

/** Returns all five flags, of which the given ones are true. */
export const flags = (...granted: Flag[]) =>
  Object.fromEntries(FLAGS.map((flag) => [flag, granted.includes(flag)]))

/** Returns all five flags, of which those are true whose bit in `bits` is set. */
export const flagsOf = (bits: number) => flags(...FLAGS.filter((_, bit) => bits & (1 << bit)))

/** The system modules. The permissions for them decide who may use which endpoint. */
export const SYSTEM_MODULES = ['USUARIO', 'PERFIL', 'MODULO', 'PERMISOS'] as const
type SystemModule = (typeof SYSTEM_MODULES)[number]

/** Returns a body for creating or overwriting a user. */
export const usuario = (strNombreUsuario: string, more: object = {}) => ({
  strNombreUsuario,
  idPerfil: 1,
  strPwd: 'una clave',
  strCorreo: `${strNombreUsuario}@ejemplo.com`,
  idEstadoUsuario: true,
  ...more,
})

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

interface Endpoint {
  /**
   * What a caller needs: nothing, a session, an administrator's session, or a session with a flag
   * on a system module.
   */
  needs: 'nothing' | 'session' | 'administrador' | `${SystemModule} ${Flag}`
  /** Whether a session is enough when the path names the caller's own record. */
  isOpenToOwner?: true
  /**
   * The answer to an unexpected failure, such as a database that does not answer. The default is
   * INTERNAL.
   */
  unexpected?: Answer
  /** The id in the path of a sample request. */
  id?: number
  /** The query string of a sample request. */
  query?: string
  /** The body of a sample request. */
  body?: object
  /** The answer to a body that has none of the endpoint's fields. */
  withoutFields?: Answer
  /** The answer to a body above the limit. The default is TOO_LARGE. */
  tooLarge?: Answer
}

const permiso = { idPerfil: 2, idModulo: 2 }
const perfil = { strNombrePerfil: 'x', bitAdministrador: false }
const matriz = { idPerfil: 2, permisos: [{ idModulo: 1, bitConsulta: true }] }

const NO_IDS = statusCodeAnswer(400, 'Perfil y Módulo son obligatorios')
const NO_PERFIL_NAME = statusCodeAnswer(400, 'El nombre es obligatorio')
const NO_MODULO_NAME = successFalseAnswer(200, 'El nombre del módulo es obligatorio.')
const NO_USUARIO_NAME = statusCodeAnswer(400, 'El campo strNombreUsuario es obligatorio')

/**
 * Every endpoint of the API, by its method and path. The endpoints of the contract are in the order
 * of its section 4. Each endpoint that the contract lacks stands beside the others of its feature.
 */
const ENDPOINTS = {
  'POST /api/auth/login': {
    needs: 'nothing',
    body: { ...ADMIN, captchaToken: 'humano' },
    withoutFields: statusCodeAnswer(400, 'Fallo en la validación del captcha.'),
  },
  'PUT /api/auth/password': {
    needs: 'session',
    body: { strPwd: 'equivocada', strPwdNueva: 'otra clave' },
    withoutFields: statusCodeAnswer(400, 'El campo strPwd es obligatorio'),
  },
  'POST /api/auth/logout': {
    needs: 'session',
  },
  'GET /api/permisos': {
    needs: 'PERMISOS bitConsulta',
    unexpected: statusCodeAnswer(500, 'Error al consultar permisos'),
  },
  'POST /api/permisos': {
    needs: 'PERMISOS bitAgregar',
    body: permiso,
    withoutFields: NO_IDS,
  },
  'PUT /api/permisos/:id': {
    needs: 'PERMISOS bitEditar',
    id: 1,
    body: permiso,
    withoutFields: NO_IDS,
  },
  'DELETE /api/permisos/:id': {
    needs: 'PERMISOS bitEliminar',
    id: 999,
  },
  'GET /api/permisos/mis-permisos/:idPerfil': {
    needs: 'PERMISOS bitConsulta',
    isOpenToOwner: true,
    unexpected: statusCodeAnswer(500, 'Error al cargar los permisos del usuario'),
    id: 1,
  },
  'GET /api/permisos/por-perfil/:idPerfil': {
    needs: 'PERMISOS bitConsulta',
    unexpected: statusCodeAnswer(500, 'Error al cargar permisos'),
    id: 1,
  },
  'POST /api/permisos/guardar-matriz': {
    needs: 'PERMISOS bitEditar',
    unexpected: statusCodeAnswer(500, 'Error al guardar en base de datos'),
    body: matriz,
    withoutFields: statusCodeAnswer(400, 'ID de perfil requerido'),
  },
  'GET /api/perfil': {
    needs: 'PERFIL bitConsulta',
    unexpected: successFalseAnswer(500, 'Ocurrió un error al consultar los perfiles.'),
  },
  'GET /api/perfil/list': {
    needs: 'session',
    unexpected: statusCodeAnswer(500, 'Error al cargar lista de perfiles'),
  },
  'POST /api/perfil': {
    needs: 'PERFIL bitAgregar',
    unexpected: statusCodeAnswer(500, 'Ocurrió un error interno al crear el perfil'),
    body: perfil,
    withoutFields: NO_PERFIL_NAME,
  },
  'PUT /api/perfil/:id': {
    needs: 'PERFIL bitEditar',
    unexpected: statusCodeAnswer(500, 'Ocurrió un error interno al actualizar el perfil'),
    id: 2,
    body: perfil,
    withoutFields: NO_PERFIL_NAME,
  },
  'DELETE /api/perfil/:id': {
    needs: 'PERFIL bitEliminar',
    id: 999,
  },
  'GET /api/modulo': {
    needs: 'MODULO bitConsulta',
    unexpected: successFalseAnswer(500, 'Ocurrió un error al consultar los módulos.'),
  },
  'GET /api/modulo/list': {
    needs: 'session',
    unexpected: statusCodeAnswer(500, 'Error al cargar módulos'),
  },
  'POST /api/modulo': {
    needs: 'MODULO bitAgregar',
    unexpected: successFalseAnswer(200, 'No se pudo crear el módulo en la base de datos.'),
    body: { strNombreModulo: 'nuevo' },
    withoutFields: NO_MODULO_NAME,
  },
  'PUT /api/modulo/:id': {
    needs: 'MODULO bitEditar',
    unexpected: successFalseAnswer(200, 'No se pudo actualizar el módulo.'),
    id: 999,
    body: { strNombreModulo: 'otro' },
    withoutFields: NO_MODULO_NAME,
  },
  'DELETE /api/modulo/:id': {
    needs: 'MODULO bitEliminar',
    unexpected: successFalseAnswer(200, 'No se pudo eliminar el módulo.'),
    id: 999,
  },
  'GET /api/usuario': {
    needs: 'USUARIO bitConsulta',
    unexpected: successFalseAnswer(500, 'Ocurrió un error al consultar los usuarios.'),
  },
  'GET /api/usuario/:id': {
    needs: 'USUARIO bitDetalle',
    isOpenToOwner: true,
    id: 1,
  },
  'POST /api/usuario': {
    needs: 'USUARIO bitAgregar',
    body: usuario('ana'),
    withoutFields: NO_USUARIO_NAME,
    tooLarge: statusCodeAnswer(500, 'La imagen es demasiado grande'),
  },
  'PUT /api/usuario/:id': {
    needs: 'USUARIO bitEditar',
    unexpected: NOT_UPDATED,
    id: 999,
    body: usuario('ana'),
    withoutFields: NO_USUARIO_NAME,
    tooLarge: NOT_UPDATED,
  },
  'DELETE /api/usuario/:id': {
    needs: 'USUARIO bitEliminar',
    id: 999,
  },
  'GET /api/auditoria': {
    needs: 'administrador',
  },
  'GET /api/auditoria/origen': {
    needs: 'administrador',
    query: 'idUsuario=1&modulo=USUARIO&accion=bitEditar',
  },
} satisfies Record<string, Endpoint>

export type EndpointName = keyof typeof ENDPOINTS

export const ENDPOINT_NAMES = Object.keys(ENDPOINTS) as EndpointName[]

const DEFAULTS = { unexpected: INTERNAL, tooLarge: TOO_LARGE }

/** Returns an endpoint's entry in the table, with the default answers. */
export const endpoint = (name: EndpointName): Endpoint & typeof DEFAULTS => ({
  ...DEFAULTS,
  ...ENDPOINTS[name],
})

/** Returns an endpoint's method, and its path with `id`, by default the id of the sample. */
export function addressOf(name: EndpointName, id: number | undefined = endpoint(name).id) {
  const [method, path = ''] = name.split(' ')
  const { query } = endpoint(name)
  const url = path.replace(/:\w+/, String(id))
  return { method: method as Method, url: query ? `${url}?${query}` : url }
}
