import { type SchemaOptions, type TProperties, type TSchema, Type } from '@sinclair/typebox'

/** An object that the OpenAPI document names `title`, and refers to by that name. */
export const Named = <T extends TProperties>(title: string, description: string, properties: T) =>
  Type.Object(properties, { title, description })

/** A text or null, in an answer. */
export const NullableText = (options: SchemaOptions) =>
  Type.Unsafe<string | null>({ type: ['string', 'null'], ...options })

/** The key that says in an answer whether the request was carried out. */
export const Done = <T extends boolean>(value: T) =>
  Type.Literal(value, { description: 'Si la petición se ha cumplido' })

/** The schema of an answer `{ success: true, data }`. */
export const Success = <T extends TSchema>(data: T) => Type.Object({ success: Done(true), data })
/**
 * The answer `{ success: true, data }`. `changes` are what a write has changed. They are for the log
 * alone, and are taken out of the answer before it is sent.
 */
export const success = <T>(data: T, changes?: object) => ({
  success: true as const,
  data,
  changes,
})

/** The schema of an answer with one page of a list and the number of all pages. */
export const Page = <T extends TSchema>(row: T) =>
  Type.Object({
    success: Done(true),
    data: Type.Array(row, { description: 'Los registros de la página, 5 como mucho' }),
    totalPages: Type.Integer({ minimum: 0, description: 'Cuántas páginas hay', examples: [1] }),
  })

/** The schema of an answer `{ success: true, message }` whose message is always the same. */
export const Confirmation = <T extends string>(message: T) =>
  Type.Object({
    success: Done(true),
    message: Type.Literal(message, { description: 'Qué se ha hecho' }),
  })

/** `{ success: true, message }`, as a schema and as the answer to every deletion. */
export const Deleted = Confirmation('Eliminado correctamente')
export const deleted = (changes: object) => ({
  success: true as const,
  message: 'Eliminado correctamente' as const,
  changes,
})
