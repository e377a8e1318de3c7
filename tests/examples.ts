import type { InjectOptions } from 'fastify'

/** The request that the page of the documentation prefills for an operation. */
export interface Example {
  operationId: string
  method: InjectOptions['method'] & string
  url: string
  body: object | undefined
}

/** The administrator that `npm run dev` creates. The example of a login has these credentials. */
export const DEV_ADMIN = { strNombreUsuario: 'admin', strPwd: 'llavero-admin' }

/**
 * The example that creates a permission record gets this answer when it is sent again right after
 * the first time.
 */
export const GIVEN_ALREADY = {
  status: 409,
  body: { statusCode: 409, message: 'El perfil ya tiene permisos sobre ese módulo' },
}

/** Returns the requests that Swagger UI prefills for the operations of an OpenAPI document. */
export function examplesOf({ paths }: any): Example[] {
  return Object.entries<any>(paths).flatMap(([path, item]) =>
    Object.entries<any>(item).map(([method, { operationId, parameters = [], requestBody }]) => ({
      operationId,
      method: method.toUpperCase() as Example['method'],
      url: urlOf(path, parameters),
      body: requestBody?.content['application/json'].example,
    })),
  )
}

function urlOf(path: string, parameters: any[]) {
  const values = parameters.map(({ name, in: place, example, schema }) => ({
    name,
    place,
    value: example ?? schema.default,
  }))
  const query = values
    .filter(({ place, value }) => place === 'query' && value !== undefined)
    .map(({ name, value }) => `${name}=${value}`)
  const filled = path.replace(/{(\w+)}/g, (_, name) =>
    String(values.find((one) => one.name === name)?.value),
  )
  return query.length > 0 ? `${filled}?${query.join('&')}` : filled
}

/** Returns a copy of the body in which `number` replaces each placeholder `{n}`. */
export function withNumber(body: object | undefined, number: number) {
  return body && JSON.parse(JSON.stringify(body).replaceAll('{n}', String(number)))
}
