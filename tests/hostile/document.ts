import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'

/** The part of a JSON Schema that the generators read. */
export interface Schema {
  type?: string | string[]
  enum?: unknown[]
  examples?: unknown[]
  format?: string
  items?: Schema
  required?: string[]
  properties?: Record<string, Schema>
}

export interface Parameter {
  name: string
  in: 'path' | 'query'
  schema: Schema
}

export interface Operation {
  /** `METHOD /path`. */
  name: string
  methods: string[]
  path: string
  parameters: Parameter[]
  body: Schema | undefined
  isPublic: boolean
  /** A validator of the body for each declared status. */
  answers: Map<number, ValidateFunction<any>>
}

const ajv = new Ajv2020({ strict: false, validateFormats: false })

/** Returns a value of an OpenAPI document with every reference replaced by its target. */
export function resolve(value: unknown, document: any): any {
  const target = ($ref: string) =>
    $ref
      .split('/')
      .slice(1)
      .reduce((parent, key) => parent[key], document)
  return JSON.parse(JSON.stringify(value), (_key, inner) =>
    inner?.$ref ? resolve(target(inner.$ref), document) : inner,
  )
}

/** Returns the operations of an OpenAPI document; their validators refuse undeclared keys. */
export function operationsOf(document: any): Operation[] {
  return Object.entries<any>(resolve(document.paths, document)).flatMap(([path, item]) =>
    Object.entries<any>(item).map(([method, operation]) => ({
      name: `${method.toUpperCase()} ${path}`,
      methods: method === 'get' ? ['GET', 'GET', 'GET', 'HEAD'] : [method.toUpperCase()],
      path,
      parameters: operation.parameters ?? [],
      body: operation.requestBody?.content['application/json'].schema,
      isPublic: operation.security?.length === 0,
      answers: answersOf(operation.responses),
    })),
  )
}

function answersOf(responses: Record<string, any>): Operation['answers'] {
  return new Map(
    Object.entries(responses).map(([status, { content }]) => [
      Number(status),
      ajv.compile<any>(closed(content?.['application/json'].schema ?? {})),
    ]),
  )
}

/** Returns the schema with undeclared keys forbidden. */
function closed(schema: any): any {
  if (Array.isArray(schema)) return schema.map(closed)
  if (typeof schema !== 'object' || schema === null) return schema
  const { example, examples, ...rest } = schema
  const inner = Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, closed(value)]))
  return 'properties' in inner ? { additionalProperties: false, ...inner } : inner
}
