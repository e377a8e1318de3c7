import { type Static, type StaticDecode, type TSchema, Type } from '@sinclair/typebox'
import { isBoolean } from '../http/constraints.js'
import { Named } from '../http/envelopes.js'
import { Failure } from '../http/failures.js'
import { decoded, field, Id, List, Omissible, PathId } from '../http/fields.js'

const PERFIL_REQUERIDO = 'ID de perfil requerido'
const obligatorio = { missing: 'Perfil y Módulo son obligatorios' }

/** The five flags of a permission record. */
const flags = <T extends TSchema>(flag: T) => ({
  bitAgregar: flag,
  bitEditar: flag,
  bitConsulta: flag,
  bitEliminar: flag,
  bitDetalle: flag,
})
const storedFlags = flags(Type.Boolean())

/** What a flag may be on the wire; everything but `true` stands for false. */
const FLAG_VALUES: unknown[] = [true, false, null, 0, '']

const Flag = Omissible(
  decoded(
    field<boolean>({ type: 'boolean', description: 'Si falta: false' }, [
      { ...isBoolean, isKept: (value) => FLAG_VALUES.includes(value) },
    ]),
    (value) => value === true,
  ),
)

/** A permission record (contract, section 2.4). */
export const Permiso = Named('Permiso', {
  id: Type.Integer(),
  idPerfil: Type.Integer(),
  idModulo: Type.Integer(),
  ...storedFlags,
})
export type Permiso = Static<typeof Permiso>

/** A permission record with the names it stands for (contract, section 2.6). */
export const PermisoConNombres = Named('PermisoConNombres', {
  id: Type.Integer(),
  idPerfil: Type.Integer(),
  idModulo: Type.Integer(),
  nombrePerfil: Type.String(),
  nombreModulo: Type.String(),
  ...storedFlags,
})
export type PermisoConNombres = Static<typeof PermisoConNombres>

/** What a profile may do in one module (contract, section 2.5). */
export const PermisosAccion = Named('PermisosAccion', {
  nombreModulo: Type.String(),
  ...storedFlags,
})
export type PermisosAccion = Static<typeof PermisosAccion>

/** The permission map: one PermisosAccion by module name. */
export const MapaDePermisos = Named('MapaDePermisos', {
  success: Type.Literal(true),
  permisos: Type.Unsafe<Record<string, PermisosAccion>>(
    Type.Object({}, { additionalProperties: PermisosAccion }),
  ),
})

/** The answer to a client that has the present map. */
export const SinCambios = Type.Unsafe<undefined>(Type.Null({ description: 'Sin cambios' }))

export const PermisoEnviado = Named('PermisoEnviado', {
  idPerfil: Id(obligatorio),
  idModulo: Id(obligatorio),
  ...flags(Flag),
})
export type PermisoEnviado = StaticDecode<typeof PermisoEnviado>

/** One entry of a matrix. */
export const Entrada = Named('EntradaDeMatriz', { idModulo: Id(), ...flags(Flag) })
export type Entrada = StaticDecode<typeof Entrada>

/** The largest body of a request that replaces a matrix, in bytes. */
export const MATRIZ_BODY_LIMIT = 1024 * 1024
/** The most entries of a matrix: with all five flags written out, the body has room for no more. */
const MAX_ENTRADAS = 10_000

export const Matriz = Named('Matriz', {
  idPerfil: Id({ missing: PERFIL_REQUERIDO, number: PERFIL_REQUERIDO }),
  permisos: Omissible(List(Entrada, MAX_ENTRADAS, () => new Failure('conflict'))),
})

export const PermisoParams = Type.Object({ id: PathId('ID de permiso inválido', 'Id del permiso') })
export const DePerfilParams = Type.Object({
  idPerfil: PathId('ID de perfil inválido', 'Id del perfil'),
})
