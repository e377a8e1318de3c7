import { type Static, type TSchema, Type } from '@sinclair/typebox'

/** Text or null, on an answer. */
export const TextoONull = () => Type.Unsafe<string | null>({ type: ['string', 'null'] })

/** `{ success: true, data }`. */
export const Respuesta = <T extends TSchema>(data: T) =>
  Type.Object({ success: Type.Literal(true), data })

/** One page of a list with the number of pages there are. */
export const Pagina = <T extends TSchema>(fila: T) =>
  Type.Object({
    success: Type.Literal(true),
    data: Type.Array(fila),
    totalPages: Type.Integer({ minimum: 0 }),
  })

/** `{ success: true, message }` with the one text that this answer ever has. */
export const Confirmacion = <T extends string>(mensaje: T) =>
  Type.Object({ success: Type.Literal(true), message: Type.Literal(mensaje) })

export const Eliminado = Confirmacion('Eliminado correctamente')
export const ELIMINADO: Static<typeof Eliminado> = {
  success: true,
  message: 'Eliminado correctamente',
}
