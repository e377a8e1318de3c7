import { readFile } from 'node:fs/promises'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { describe, expect, it } from 'vitest'
import { NOT_FOUND, withoutHeaders } from './answers.js'
import { testApp } from './app.js'
import { ENDPOINT_NAMES, endpoint } from './endpoints.js'
import { resolve } from './hostile/document.js'

const { app, config } = await testApp()
const source = (await app.inject('/docs/json')).body
const document: any = JSON.parse(source)

/**
 * The URL of another host, but not in a comment that begins with `// `. The XML namespaces of
 * `www.w3.org` do not match, because the expression needs two letters after the first dot.
 */
const OUTSIDE = /(?<!\/\/ .*)(?:https?:)?\/\/[a-z0-9-]+\.[a-z]{2,}/i

/** The operations with an `ETag` in their successful answers. */
const WITH_ETAG = [
  'GET /api/permisos/mis-permisos/{idPerfil}',
  'GET /api/permisos/por-perfil/{idPerfil}',
  'POST /api/permisos/guardar-matriz',
]

/** Returns the names of all operations in the document, each as `METHOD /path`. */
const documented = () =>
  Object.entries<any>(document.paths).flatMap(([path, item]) =>
    Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
  )

/**
 * Returns a route's name as the document writes it, with braces around the parameters of the path.
 */
const documentedAs = (name: string) => name.replace(/:(\w+)/g, '{$1}')

/** Returns an operation of the document with its references resolved. */
function operation(name: string): any {
  const [method = '', path = ''] = name.split(' ')
  return resolve(document.paths[path][method.toLowerCase()], document)
}

/** Returns the security requirements of an operation, by default those of the document. */
const securityOf = (name: string): { bearer: string[] }[] =>
  operation(name).security ?? document.security

/** Returns every object schema inside a value of the document, with the keys that lead to it. */
function objectSchemas(value: any, path: string[] = []): [string, any][] {
  if (typeof value !== 'object' || value === null) return []
  const inner = Object.entries(value).flatMap(([key, child]) =>
    objectSchemas(child, [...path, key]),
  )
  return value.type === 'object' ? [[path.join(' '), value], ...inner] : inner
}

/** Returns the routes of the app below /api. `/x/` counts as `/x`, and HEAD routes are left out. */
function routed(): string[] {
  const path: string[] = []
  const found = new Set<string>()
  for (const line of app.printRoutes({ commonPrefix: false }).split('\n')) {
    const [, indent, segment = '', methods = ''] = /^([│ ]*)[├└]── (\S+) \((.+)\)$/.exec(line) ?? []
    if (indent === undefined) continue
    // Each level is indented by four characters.
    path.splice(indent.length / 4, Infinity, segment)
    const url = documentedAs(path.join('').replace(/(.)\/$/, '$1'))
    for (const method of methods.split(', ')) {
      if (method !== 'HEAD' && url.startsWith('/api/')) found.add(`${method} ${url}`)
    }
  }
  return [...found]
}

describe('/docs/json', () => {
  it('has the version of package.json', async () => {
    const { version } = JSON.parse(await readFile('package.json', 'utf8'))
    expect(document.info.version).toBe(version)
  })

  it('is OpenAPI 3.1 and satisfies Redocly’s strict rules', async () => {
    expect(document.openapi).toMatch(/^3\.1\.\d$/)
    const config = await createConfig({
      extends: ['recommended-strict'],
      rules: {
        // The service has no public licence.
        'info-license': 'off',
        'info-license-strict': 'off',
        // Spectral, another linter, demands a contact and a description of each tag.
        'info-contact': 'error',
        'operation-tag-defined': 'error',
        'parameter-description': 'error',
      },
    })
    const problems = await lintFromString({ source, absoluteRef: 'openapi.json', config })
    expect(
      problems.map(({ ruleId, message, location }) => ({
        ruleId,
        message,
        at: location[0]?.pointer,
      })),
    ).toEqual([])
  })

  it('has an operation for every route of the application, and no other', () => {
    expect(documented().toSorted()).toEqual(routed().toSorted())
  })

  it('has the status for a body that is too large at every operation that reads one', () => {
    for (const name of ENDPOINT_NAMES.filter((name) => !name.startsWith('GET'))) {
      const { responses } = operation(documentedAs(name))
      expect(Object.keys(responses), name).toContain(String(endpoint(name).tooLarge.status))
    }
  })

  it('names each operation’s permission in its security requirement and its description', () => {
    const needs = Object.fromEntries(
      documented().map((name) => [name, securityOf(name).map(({ bearer }) => bearer.join())]),
    )
    const expected = ENDPOINT_NAMES.map((name) => {
      const { needs, isOpenToOwner } = endpoint(name)
      if (needs === 'nothing') return [documentedAs(name), []]
      const role = needs === 'session' ? '' : needs.replace(' ', ':')
      // '' is a session without a permission: enough for one's own record.
      return [documentedAs(name), isOpenToOwner ? [role, ''] : [role]]
    })
    expect(needs).toEqual(Object.fromEntries(expected))
    expect(document.components.securitySchemes).toMatchObject({
      bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
    })
    for (const name of documented()) {
      const [permission, own] = needs[name] ?? []
      const { description = '', responses } = operation(name)
      const unless = own === undefined ? '' : ', salvo para el propio'
      if (permission) expect(description).toContain(`Necesita el rol ${permission}${unless}.`)
      expect(description, name).not.toContain('undefined')
      expect({ name, 403: '403' in responses }).toEqual({ name, 403: Boolean(permission) })
    }
  })

  it('describes every answer in its own words', () => {
    expect(source).not.toContain('"Default Response"')
  })

  it('describes every field', () => {
    const undescribed = objectSchemas(resolve(document.paths, document)).flatMap(([path, schema]) =>
      Object.entries<any>(schema.properties ?? {})
        .filter(([, field]) => !field.description)
        .map(([name]) => `${path} ${name}`),
    )
    expect(undescribed).toEqual([])
  })

  it('gives no schema a name that client generators make from an operation and a status', () => {
    const generated = documented().flatMap((name) => {
      const { operationId, responses } = operation(name)
      return Object.keys(responses).map((status) => `${operationId}${status}`.toLowerCase())
    })
    const names = Object.keys(document.components.schemas)
    expect(names.filter((name) => generated.includes(name.toLowerCase()))).toEqual([])
  })

  it('declares the headers of every answer', () => {
    for (const name of documented()) {
      const hasEtag = WITH_ETAG.includes(name)
      for (const [status, { headers }] of Object.entries<any>(operation(name).responses)) {
        const expected = ['x-request-id']
        if (status === '401') expected.push('www-authenticate')
        if (status === '403') expected.push('x-needs')
        if (status === '429' || status === '503') expected.push('retry-after')
        if (hasEtag && ['200', '304'].includes(status)) expected.push('etag')
        expect({ name, status, headers: Object.keys(headers) }).toEqual({
          name,
          status,
          headers: expected,
        })
      }
    }
  })

  it('has an id that no row has as the example of every id in a request', () => {
    const ids = documented().flatMap((name) => {
      const { parameters = [], requestBody } = operation(name)
      const fields = objectSchemas(requestBody).flatMap(([, { properties }]) =>
        Object.entries<any>(properties),
      )
      const examples = fields.map(([field, { examples: [first] = [] }]) => [field, first])
      const paths = parameters.filter((parameter: any) => parameter.in === 'path')
      return [...examples, ...paths.map((one: any) => [one.name, one.example])]
    })
    const written = ids.filter(([field]) => /^id(?!Estado)/.test(field))
    expect(written.length).toBeGreaterThan(15)
    expect(new Set(written.map(([, example]) => example))).toEqual(new Set([2_147_483_647]))
  })

  it('has `const` instead of `enum` for a field with only one value', () => {
    expect(source).not.toMatch(/"enum":\[[^,\]]*\]/)
  })
})

describe('/docs', () => {
  it('is the target of a redirect from /', async () => {
    const { statusCode, headers } = await app.inject('/')
    expect({ statusCode, to: headers.location }).toEqual({ statusCode: 302, to: '/docs' })
  })

  it('serves the page and every file that it links to, and has no URL of another host', async () => {
    const page = await app.inject('/docs')
    expect(page.statusCode).toBe(200)
    expect(page.headers['content-type']).toMatch(/^text\/html/)
    // The icon `data:,` is empty, so that browsers request none.
    const links = [...page.body.matchAll(/(?:href|src)="(?!data:,)([^"]*)"/g)].map(([, link]) =>
      String(link),
    )
    expect(links.length).toBe(3)
    expect(page.body).not.toMatch(OUTSIDE)

    for (const link of links) {
      expect(link).toMatch(/^\/docs\//)
      const asset = await app.inject(link)
      expect({ link, status: asset.statusCode }).toEqual({ link, status: 200 })
      expect(asset.body.length).toBeGreaterThan(0)
      if (link.endsWith('.css')) expect(asset.body).not.toMatch(/(?:url\(|@import)\s*["']?https?:/)
      if (link.endsWith('initializer.js')) expect(asset.body).not.toMatch(OUTSIDE)
    }
  })

  it('declares its language as Spanish and the width of the device as its width', async () => {
    const { body } = await app.inject('/docs')
    expect(body).toContain('<html lang="es">')
    expect(body).toContain('<meta name="viewport" content="width=device-width, initial-scale=1">')
  })

  it('sends its files with their content types, and lets a browser store those of Swagger UI', async () => {
    const files = {
      'static/swagger-ui.css': 'text/css; charset=utf-8',
      'static/swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
      'initializer.js': 'text/javascript; charset=utf-8',
      json: 'application/json; charset=utf-8',
    }
    for (const [name, type] of Object.entries(files)) {
      const { headers } = await app.inject(`/docs/${name}`)
      expect(headers).toMatchObject({
        'content-type': type,
        'cache-control': name.startsWith('static') ? 'public, max-age=3600' : 'no-store',
      })
    }
  })

  it('answers 404 at / and at every path below /docs with DOCS=false', async () => {
    const without = await testApp({ DATABASE_URL: config.DATABASE_URL.url, DOCS: 'false' })
    for (const path of ['/', '/docs', '/docs/json', '/docs/static/swagger-ui.css']) {
      expect(withoutHeaders(await without.call('GET', path)), path).toEqual(NOT_FOUND)
    }
    expect((await without.call('GET', '/api/perfil')).status).toBe(200)
  })
})
