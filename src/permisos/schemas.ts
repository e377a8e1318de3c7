import { type Static, type TSchema, Type } from '@sinclair/typebox'
import type { Accion } from '../access/caller.js'
import { Named, SuccessField } from '../http/answers/envelopes.js'
import { type Constraint, mustBeBoolean, mustBeList, required } from '../http/input/constraints.js'
import { field, Id, Omissible, readObject } from '../http/input/fields.js'

const MISSING_IDS = { missing: 'Perfil y Módulo son obligatorios' }

/**
 * Returns the schemas of the five flags of a permission record. `flag` takes the description of a
 * flag and returns its schema.
 */
const flags = <T extends TSchema>(flag: (description: string) => T): Record<Accion, T> => ({
  bitAgregar: flag('Si puede agregar registros en el módulo'),
  bitEditar: flag('Si puede editar los registros del módulo'),
  bitConsulta: flag('Si puede consultar y listar los registros del módulo'),
  bitEliminar: flag('Si puede eliminar registros del módulo'),
  bitDetalle: flag('Si puede ver el detalle de un registro del módulo'),
})

/** The schemas of the flags in an answer. */
const storedFlags = flags((description) => Type.Boolean({ description }))

// The OpenAPI document's descriptions of the other fields.
const ID_PERFIL = 'Id del perfil que tiene el permiso'
const ID_MODULO = 'Id del módulo del permiso'
const NOMBRE_MODULO = 'Nombre del módulo'

/** The schemas of the ids in an answer. */
const storedIds = {
  id: Type.Integer({ description: 'Id del permiso' }),
  idPerfil: Type.Integer({ description: ID_PERFIL }),
  idModulo: Type.Integer({ description: ID_MODULO }),
}

/** A flag in a request is a boolean, 0, an empty text, null or missing. All but true mean false. */
const mustBeFlag: Constraint = {
  ...mustBeBoolean,
  isSatisfied: (value) => !value || value === true,
}

/** Returns the schema of a flag in a request. */
const Flag = (description: string) =>
  Omissible(
    field([mustBeFlag], {
      decode: (value) => value === true,
      description: `${description}. Si falta: false`,
    }),
  )

/** A permission record (contract, section 2.4). */
export const Permiso = Named('Permiso', 'Lo que un perfil puede hacer en un módulo', {
  ...storedIds,
  ...storedFlags,
})
export type Permiso = Static<typeof Permiso>

/** A permission record with the names of its profile and its module (contract, section 2.6). */
export const PermisoConNombres = Named(
  'PermisoConNombres',
  'Un permiso con los nombres de perfil y módulo',
  {
    ...storedIds,
    nombrePerfil: Type.String({ description: 'Nombre del perfil' }),
    nombreModulo: Type.String({ description: NOMBRE_MODULO }),
    ...storedFlags,
  },
)
export type PermisoConNombres = Static<typeof PermisoConNombres>

/** What a profile may do in one module (contract, section 2.5). */
export const PermisosAccion = Named('PermisosAccion', 'Las acciones permitidas en un módulo', {
  nombreModulo: Type.String({ description: NOMBRE_MODULO }),
  ...storedFlags,
})
export type PermisosAccion = Static<typeof PermisosAccion>

/** A permission map. Its keys are the names of the modules. */
export const MapaDePermisos = Named('MapaDePermisos', 'El mapa de permisos de un perfil', {
  success: SuccessField,
  permisos: Type.Object(
    {},
    {
      additionalProperties: PermisosAccion,
      description: 'Las acciones permitidas, por nombre de módulo. Sin clave no hay permiso',
    },
  ),
})

/** The empty body of the answer 304, for a client that already has the present map. */
export const SinCambios = Type.Unsafe<undefined>(Type.Null({ description: 'Sin cambios' }))

export const PermisoEnviado = Named('PermisoEnviado', 'El permiso que se guarda', {
  idPerfil: Id(ID_PERFIL, MISSING_IDS),
  idModulo: Id(ID_MODULO, MISSING_IDS),
  ...flags(Flag),
})
export type PermisoEnviado = Static<typeof PermisoEnviado>

/** One entry of a matrix. */
export const EntradaDeMatriz = Named('EntradaDeMatriz', 'Los permisos del perfil sobre un módulo', {
  idModulo: Id(ID_MODULO),
  ...flags(Flag),
})
export type EntradaDeMatriz = Static<typeof EntradaDeMatriz>

/** The largest body of a request that replaces a matrix, in bytes. */
export const MATRIZ_BODY_LIMIT = 1024 * 1024
/**
 * How many entries a matrix may have. MATRIZ_BODY_LIMIT has room for some 9,200 with all five
 * flags.
 */
export const MAX_ENTRADAS = 10_000

/**
 * Returns the decoded entries, at most MAX_ENTRADAS + 1: the handler refuses a longer matrix, so
 * the rest need not be read. Throws the Failure of the first invalid field.
 */
const readEntradas = (entries: unknown[]) =>
  entries
    .slice(0, MAX_ENTRADAS + 1)
    .map((entry) => readObject(EntradaDeMatriz, entry) as EntradaDeMatriz)

export const Matriz = Named('Matriz', 'Todos los permisos de un perfil', {
  idPerfil: Id('Id del perfil cuyos permisos se sustituyen', 'ID de perfil requerido'),
  permisos: Omissible(
    field([required, mustBeList], {
      decode: readEntradas,
      items: EntradaDeMatriz,
      // For the document only. The handler checks it.
      maxItems: MAX_ENTRADAS,
      description: 'Los permisos nuevos, uno por módulo como mucho. Si faltan, se borran todos',
    }),
  ),
})

export const MatrizHeaders = Type.Object({
  'if-match': Type.Optional(
    field<string>([], {
      type: 'string',
      description: 'El ETag de los permisos que se sustituyen',
    }),
  ),
})

export const PermisoParams = Type.Object({
  id: Id('Id del permiso', 'ID de permiso inválido'),
})
export const IdPerfilParams = Type.Object({
  idPerfil: Id('Id del perfil', 'ID de perfil inválido'),
})
