import { type SchemaOptions, type TProperties, type TSchema, Type } from '@sinclair/typebox'

/** An object that the document has once, under this name. */
export const Named = <T extends TProperties>(title: string, description: string, properties: T) =>
  Type.Object(properties, { title, description })

/** Text or null, in an answer. */
export const NullableText = (options: SchemaOptions) =>
  Type.Unsafe<string | null>({ type: ['string', 'null'], ...options })

/** The key that says in an answer whether the request was carried out. */
export const Done = <T extends boolean>(value: T) =>
  Type.Literal(value, { description: 'Si la petición se ha cumplido' })

/** `{ success: true, data }`, as a schema and as the answer. */
export const Success = <T extends TSchema>(data: T) => Type.Object({ success: Done(true), data })
export const success = <T>(data: T) => ({ success: true as const, data })

/** One page of a list with the number of pages there are. */
export const Page = <T extends TSchema>(row: T) =>
  Type.Object({
    success: Done(true),
    data: Type.Array(row, { description: 'Los registros de la página, 5 como mucho' }),
    totalPages: Type.Integer({ minimum: 0, description: 'Cuántas páginas hay', examples: [1] }),
  })

/** `{ success: true, message }` with the one text that this answer ever has. */
export const Confirmation = <T extends string>(message: T) =>
  Type.Object({
    success: Done(true),
    message: Type.Literal(message, { description: 'Qué se ha hecho' }),
  })

export const DELETED = { success: true, message: 'Eliminado correctamente' } as const
export const Deleted = Confirmation(DELETED.message)
