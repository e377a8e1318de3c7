import { type Static, Type } from '@sinclair/typebox'
import { ACCIONES } from '../access/caller.js'
import { Named, Nullable, SuccessField } from '../http/answers/envelopes.js'
import {
  type Constraint,
  mustBeId,
  mustBeOneOf,
  mustBeText,
  requiredAndNotEmpty,
} from '../http/input/constraints.js'
import { field, Id, QueryId, Text } from '../http/input/fields.js'

const NullableId = (description: string) => Nullable<number>('integer', { description })

const NullableText = (description: string) => Nullable<string>('string', { description })

const NullableRecord = (description: string) =>
  Nullable<object>('object', { additionalProperties: true, description })

/** A row of the audit (sql/migrations/0008_auditoria.sql). */
export const FilaDeAuditoria = Named('FilaDeAuditoria', 'Un cambio', {
  id: Type.Integer({ description: 'Id de la fila' }),
  fecha: Type.Unsafe<Date>({
    type: 'string',
    format: 'date-time',
    description: 'Cuándo se hizo el cambio, según el reloj de la base de datos',
  }),
  idUsuario: NullableId('Id de quien lo hizo'),
  strNombreUsuario: Type.String({
    description: 'Nombre de quien lo hizo. Sin idUsuario: ADMIN_* o el usuario de la base de datos',
  }),
  idPerfil: NullableId('Id del perfil que tenía quien lo hizo'),
  strNombrePerfil: NullableText('Nombre de ese perfil'),
  ip: NullableText('Dirección del cliente'),
  idPeticion: NullableText('El x-request-id de la petición'),
  accion: Type.String({
    description: 'insert, update, delete, login, logout, password o restore',
  }),
  entidad: Type.String({ description: 'La clase de registro' }),
  idEntidad: NullableId('Id del registro. De permisos, el del perfil que los tiene'),
  nombre: NullableText(
    'Nombre antes del cambio, o el de un registro nuevo. De permisos, el del perfil',
  ),
  antes: NullableRecord('El registro antes; de un update, solo los campos que cambian'),
  despues: NullableRecord('El registro después; de un update, solo los campos que cambian'),
})
export type FilaDeAuditoria = Static<typeof FilaDeAuditoria>

export const Filas = Type.Array(FilaDeAuditoria, { description: 'Las filas de la auditoría' })

export const PaginaDeAuditoria = Type.Object({
  success: SuccessField,
  data: Filas,
  siguiente: NullableId('El valor de antes para la página siguiente. Null si no hay más'),
})

/** Returns the schema of a query parameter that is one of the `texts`. */
const Choice = <T extends string>(texts: readonly T[], description: string) =>
  field<T>([requiredAndNotEmpty, mustBeOneOf(texts)], { description })

/** A date, or a date and a time. Without an offset from UTC it is in UTC. */
const ISO_8601 =
  /^(?<day>\d{4}-\d\d-\d\d)(?<time>T\d\d:\d\d(:\d\d(\.\d+)?)?(?<offset>Z|[+-]\d\d:\d\d)?)?$/

/** Returns the milliseconds since 1970, or NaN if the text is not a moment in ISO 8601. */
function toMilliseconds(text: string) {
  const { day, time, offset } = ISO_8601.exec(text)?.groups ?? {}
  // JavaScript accepts some days that the month does not have, such as February 30.
  const isDay = day !== undefined && new Date(day).toJSON()?.startsWith(day)
  if (!isDay) return NaN
  return Date.parse(time && !offset ? `${text}Z` : text)
}

const mustBeMoment: Constraint = {
  message: 'El campo %s debe ser una fecha ISO 8601',
  schema: { format: 'date-time' },
  isSatisfied: (text: string) => !Number.isNaN(toMilliseconds(text)),
}

/** Returns the schema of a moment in a query string. Handlers get milliseconds since 1970. */
const Moment = (description: string) =>
  field([requiredAndNotEmpty, mustBeText, mustBeMoment], { decode: toMilliseconds, description })

/** The id of a row. It is a bigint, but a number is exact only up to MAX_SAFE_INTEGER. */
const IdDeFila = field([requiredAndNotEmpty, mustBeId], {
  decode: (value) => Math.min(Math.max(Number(value), 0), Number.MAX_SAFE_INTEGER),
  description: 'Las filas anteriores a esta',
})

const ENTIDADES = ['usuario', 'perfil', 'modulo', 'permisos', 'auditoria'] as const

export const AuditoriaFiltro = Type.Object({
  antes: Type.Optional(IdDeFila),
  idUsuario: QueryId('Los cambios que hizo este usuario'),
  entidad: Type.Optional(Choice(ENTIDADES, 'Los cambios de esta clase de registro')),
  id: QueryId('Los cambios del registro con este id. Necesita entidad'),
  desde: Type.Optional(Moment('Los cambios desde este momento, incluido. Puede ser un día')),
  hasta: Type.Optional(Moment('Los cambios hasta este momento, sin incluirlo. Puede ser un día')),
})
export type AuditoriaFiltro = Static<typeof AuditoriaFiltro>

export const OrigenFiltro = Type.Object({
  idUsuario: Id('Id del usuario, aunque ya no exista'),
  modulo: Text({ description: 'Nombre del módulo, aunque ya no exista' }),
  accion: Choice(ACCIONES, 'La acción permitida'),
})
export type OrigenFiltro = Static<typeof OrigenFiltro>
