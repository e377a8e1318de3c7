import type { InjectOptions } from 'fastify'
import { ADMIN } from './app.js'

type Failure = { status: number; body: object }

/** The two failure bodies of the contract. */
export const A = (status: number, message: string) => ({
  status,
  body: { statusCode: status, message },
})
export const B = (status: number, message: string) => ({
  status,
  body: { success: false, message },
})

export const INTERNAL = A(500, 'Error interno del servidor')
export const NOT_UPDATED = A(
  500,
  'Error al actualizar: la imagen es demasiado grande o el servidor tardó demasiado.',
)
export const READY = { status: 200, body: { status: 'ok' } }
export const NOT_READY = A(503, 'No disponible')
export const BUSY = A(503, 'Servicio ocupado. Intente de nuevo más tarde.')

/** The five flags of a permission record, as an administrator profile has them. */
export const ALL = {
  bitAgregar: true,
  bitEditar: true,
  bitConsulta: true,
  bitEliminar: true,
  bitDetalle: true,
}

/** A body for the two user endpoints. */
export const usuario = (strNombreUsuario: string, more: object = {}) => ({
  strNombreUsuario,
  idPerfil: 1,
  strPwd: 'una clave',
  strCorreo: `${strNombreUsuario}@ejemplo.com`,
  idEstadoUsuario: true,
  ...more,
})

const matriz = { idPerfil: 2, permisos: [{ idModulo: 1, bitConsulta: true }] }
const permiso = { idPerfil: 2, idModulo: 2 }
const perfil = { strNombrePerfil: 'x', bitAdministrador: false }
const credentials = { ...ADMIN, captchaToken: 'humano' }

/** Every endpoint of the contract and its answer to an unexpected failure. */
export const ENDPOINTS: [InjectOptions['method'] & string, string, object | undefined, Failure][] =
  [
    ['POST', '/api/auth/login', credentials, INTERNAL],
    ['GET', '/api/permisos', undefined, A(500, 'Error al consultar permisos')],
    ['POST', '/api/permisos', permiso, INTERNAL],
    ['PUT', '/api/permisos/1', permiso, INTERNAL],
    ['DELETE', '/api/permisos/999', undefined, INTERNAL],
    [
      'GET',
      '/api/permisos/mis-permisos/1',
      undefined,
      A(500, 'Error al cargar los permisos del usuario'),
    ],
    ['GET', '/api/permisos/por-perfil/1', undefined, A(500, 'Error al cargar permisos')],
    ['POST', '/api/permisos/guardar-matriz', matriz, A(500, 'Error al guardar en base de datos')],
    ['GET', '/api/perfil', undefined, B(500, 'Ocurrió un error al consultar los perfiles.')],
    ['GET', '/api/perfil/list', undefined, A(500, 'Error al cargar lista de perfiles')],
    ['PUT', '/api/perfil/2', perfil, A(500, 'Ocurrió un error interno al actualizar el perfil')],
    ['GET', '/api/modulo', undefined, B(500, 'Ocurrió un error al consultar los módulos.')],
    ['GET', '/api/modulo/list', undefined, A(500, 'Error al cargar módulos')],
    [
      'POST',
      '/api/modulo',
      { strNombreModulo: 'nuevo' },
      B(200, 'No se pudo crear el módulo en la base de datos.'),
    ],
    [
      'PUT',
      '/api/modulo/999',
      { strNombreModulo: 'otro' },
      B(200, 'No se pudo actualizar el módulo.'),
    ],
    ['POST', '/api/usuario', usuario('ana'), INTERNAL],
    ['PUT', '/api/usuario/999', usuario('ana'), NOT_UPDATED],
  ]
