import { type TProperties, type TSchema, Type } from '@sinclair/typebox'

/** An object that the document has once, under this name. */
export const Named = <T extends TProperties>(title: string, properties: T) =>
  Type.Object(properties, { title })

/** Text or null, on an answer. */
export const NullableText = () => Type.Unsafe<string | null>({ type: ['string', 'null'] })

/**
 * `{ success: true, data }`, as a schema and as the answer. `changes`, what a write has changed, is
 * for the log alone and is taken out of the answer before it is sent.
 */
export const Success = <T extends TSchema>(data: T) =>
  Type.Object({ success: Type.Literal(true), data })
export const success = <T>(data: T, changes?: object) => ({
  success: true as const,
  data,
  changes,
})

/** One page of a list with the number of pages there are. */
export const Page = <T extends TSchema>(row: T) =>
  Type.Object({
    success: Type.Literal(true),
    data: Type.Array(row),
    totalPages: Type.Integer({ minimum: 0 }),
  })

/** `{ success: true, message }` with the one text that this answer ever has. */
export const Confirmation = <T extends string>(message: T) =>
  Type.Object({ success: Type.Literal(true), message: Type.Literal(message) })

/** `{ success: true, message }`, as a schema and as the answer to every deletion. */
export const Deleted = Confirmation('Eliminado correctamente')
export const deleted = (changes: object) => ({
  success: true as const,
  message: 'Eliminado correctamente' as const,
  changes,
})
