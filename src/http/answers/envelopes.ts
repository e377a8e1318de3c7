import { type SchemaOptions, type TProperties, type TSchema, Type } from '@sinclair/typebox'

/**
 * Returns the schema of an object that the OpenAPI document defines once, under the name `title`.
 */
export function Named<T extends TProperties>(title: string, description: string, properties: T) {
  return Type.Object(properties, { title, description })
}

/**
 * Returns the schema of a field of an answer that may be null. `type` is the JSON type of all other
 * values.
 */
export const Nullable = <T>(type: string, options: SchemaOptions) =>
  Type.Unsafe<T | null>({ type: [type, 'null'], ...options })

/** The schema of the field `success`, which is true in every success. */
export const SuccessField = Type.Literal(true, { description: 'Si la petición se ha cumplido' })

/** Returns the schema of an answer `{ success: true, data }`. */
export const SuccessOf = <T extends TSchema>(data: T) =>
  Type.Object({
    success: SuccessField,
    data,
  })

/** Returns the answer `{ success: true, …fields }`. */
export const success = <T extends object>(fields: T) => ({
  success: true as const,
  ...fields,
})

/** Returns the schema of an answer with one page of a list and the total number of pages. */
export const PageOf = <T extends TSchema>(row: T) =>
  Type.Object({
    success: SuccessField,
    data: Type.Array(row, {
      description: 'Los registros de la página, 5 como mucho',
    }),
    totalPages: Type.Integer({
      minimum: 0,
      description: 'Cuántas páginas hay',
    }),
  })

/** Returns the schema of the constant answer `{ success: true, message }`. */
export const ConfirmationOf = <T extends string>({ message }: { message: T }) =>
  Type.Object({
    success: SuccessField,
    message: Type.Literal(message, { description: 'Qué se ha hecho' }),
  })

/** The answer to every deletion. */
export const DELETED = {
  success: true,
  message: 'Eliminado correctamente',
} as const
