import { type TObject, TransformKind, type TSchema, type TTransform } from '@sinclair/typebox'

type Decode = (value: unknown) => unknown

/**
 * Gives a function that makes what a checked value of an object schema decodes to: each field by its
 * own transform. Keys that the schema does not know are left out at every level, so that none gets
 * any further: TypeBox's own decoding keeps those inside of lists.
 */
export const compileDecode = (schema: TObject): ((value: object) => unknown) =>
  objectDecoder(schema)

function decoderOf(schema: TSchema): Decode {
  if (schema.type === 'array') {
    const decode = decoderOf(schema.items)
    return (list) => (list as unknown[]).map((item) => decode(item))
  }
  if (schema.type === 'object') return objectDecoder(schema as TObject)
  const { [TransformKind]: transform } = schema as Partial<TTransform>
  return transform?.Decode ?? ((value) => value)
}

function objectDecoder({ properties }: TObject): Decode {
  const fields = Object.entries(properties).map(
    ([name, field]) => [name, decoderOf(field)] as const,
  )
  return (object) => {
    const value = object as Record<string, unknown>
    const decoded: Record<string, unknown> = {}
    for (const [name, decode] of fields) {
      if (value[name] !== undefined) decoded[name] = decode(value[name])
    }
    return decoded
  }
}
