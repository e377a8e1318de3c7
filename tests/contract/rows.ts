import { ADMIN } from '../app.js'
import { flags } from '../endpoints.js'

// The rows that every test of the contract starts from.

export const PERMISOS = [
  { id: 1, idPerfil: 2, idModulo: 5, ...flags('bitAgregar', 'bitConsulta') },
  { id: 2, idPerfil: 2, idModulo: 6, ...flags('bitDetalle') },
  { id: 3, idPerfil: 3, idModulo: 5, ...flags() },
]
export const ANA = {
  id: 2,
  strNombreUsuario: 'ana',
  idPerfil: 2,
  strCorreo: 'ana@ejemplo.com',
  strNumeroCelular: '555 0101',
  idEstadoUsuario: true,
  imagenUrl: 'https://imagenes.ejemplo.com/ana.png',
}
export const ROOT = {
  id: 1,
  strNombreUsuario: ADMIN.strNombreUsuario,
  idPerfil: 1,
  strCorreo: ADMIN.strCorreo,
  strNumeroCelular: null,
  idEstadoUsuario: true,
  imagenUrl: null,
}
export const EVA = {
  id: 3,
  strNombreUsuario: 'eva',
  idPerfil: 2,
  strCorreo: 'correo@ejemplo.com',
  strNumeroCelular: null,
  idEstadoUsuario: false,
  imagenUrl: null,
}
export const PERFILES = [
  { id: 1, strNombrePerfil: 'ADMINISTRADOR', bitAdministrador: true },
  { id: 2, strNombrePerfil: 'Ventas 10%', bitAdministrador: false },
  { id: 3, strNombrePerfil: 'Área_Ñ \\ 2', bitAdministrador: false },
]
export const MODULOS = ['USUARIO', 'PERFIL', 'MODULO', 'PERMISOS', 'CAJA_10%', 'ALMACÉN \\ Ñ'].map(
  (strNombreModulo, index) => ({ id: index + 1, strNombreModulo }),
)
