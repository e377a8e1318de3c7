import { readFile } from 'node:fs/promises'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { describe, expect, it } from 'vitest'
import { testApp } from './app.js'
import { resolve } from './hostile/document.js'

const { app } = await testApp()
const source = (await app.inject('/docs/json')).body
const document: any = JSON.parse(source)

/** The names, `METHOD /path`, of all operations in the document. */
const documented = () =>
  Object.entries<any>(document.paths).flatMap(([path, item]) =>
    Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
  )

/** One operation of the document, without references. */
function operation(name: string): any {
  const [method = '', path = ''] = name.split(' ')
  return resolve(document.paths[path][method.toLowerCase()], document)
}

/** Every object schema of the document with the path of keys that leads to it. */
function objectSchemas(value: any, path: string[] = []): [string, any][] {
  if (typeof value !== 'object' || value === null) return []
  const inner = Object.entries(value).flatMap(([key, child]) =>
    key === 'example' || key === 'examples' ? [] : objectSchemas(child, [...path, key]),
  )
  return value.type === 'object' ? [[path.join(' '), value], ...inner] : inner
}

/** The operations that the app itself routes below /api, `/x/` being `/x` and HEAD part of GET. */
function routed(): string[] {
  const path: string[] = []
  const found = new Set<string>()
  for (const line of app.printRoutes({ commonPrefix: false }).split('\n')) {
    const [, indent, segment = '', methods = ''] = /^([│ ]*)[├└]── (\S+) \((.+)\)$/.exec(line) ?? []
    if (indent === undefined) continue
    path.splice(indent.length / 4, Infinity, segment)
    const url = path
      .join('')
      .replace(/(.)\/$/, '$1')
      .replace(/:(\w+)/g, '{$1}')
    for (const method of methods.split(', ')) {
      if (method !== 'HEAD' && url.startsWith('/api/')) found.add(`${method} ${url}`)
    }
  }
  return [...found]
}

describe('/docs/json', () => {
  // Where it is to change: `npx vitest run tests/docs.test.ts -u`.
  it('is the document that clients know', async () => {
    await expect(`${JSON.stringify(document, null, 1)}\n`).toMatchFileSnapshot('openapi.snap')
  })

  it('has the version of package.json', async () => {
    const { version } = JSON.parse(await readFile('package.json', 'utf8'))
    expect(document.info.version).toBe(version)
  })

  it('is OpenAPI 3.1 without a problem by the strict rules of Redocly', async () => {
    expect(document.openapi).toMatch(/^3\.1\.\d$/)
    const config = await createConfig({
      extends: ['recommended-strict'],
      // The licence has no address to which a link could lead.
      rules: { 'info-license-strict': 'off' },
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

  it('has every route of the application', () => {
    expect(documented().toSorted()).toEqual(routed().toSorted())
  })

  it('has no path with a slash at its end, though one is taken', async () => {
    expect(Object.keys(document.paths).filter((path) => path.endsWith('/'))).toEqual([])
    for (const name of documented()) {
      const [method, path = ''] = name.split(' ')
      // The first that a feature has.
      if (!/^\/api\/\w+$/.test(path)) continue
      const { statusCode } = await app.inject({ method: method as 'GET', url: `${path}/` })
      expect({ name, statusCode }).toEqual({ name, statusCode: 401 })
    }
  })

  it('shows a summary, a 401, and what a body is refused for, of every operation', () => {
    for (const name of documented()) {
      const { summary, requestBody, responses } = operation(name)
      // The two with an image have the 500 of the contract for a body too large.
      const tooLarge = requestBody && name.includes('usuario') ? '500' : '413'
      const statuses = name.startsWith('GET') ? ['401'] : ['400', '401', '415', tooLarge]
      expect({ name, summary, statuses: Object.keys(responses) }).toEqual({
        name,
        summary: expect.stringMatching(/\S/),
        statuses: expect.arrayContaining(statuses),
      })
    }
  })

  it('demands a bearer token of all but the login', () => {
    expect(document.components.securitySchemes).toMatchObject({
      bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
    })
    for (const name of documented()) {
      const expected = name === 'POST /api/auth/login' ? [] : [{ bearer: expect.any(Array) }]
      expect(operation(name).security.slice(0, 1), name).toEqual(expected)
    }
  })

  it('names the permission that an operation needs, in a sentence and for machines', () => {
    const needs = Object.fromEntries(
      documented().map((name) => [
        name,
        operation(name).security.map(({ bearer }: { bearer: string[] }) => bearer.join()),
      ]),
    )
    expect(needs).toEqual({
      'POST /api/auth/login': [],
      'POST /api/auth/logout': [''],
      'GET /api/usuario': ['USUARIO:bitConsulta'],
      'POST /api/usuario': ['USUARIO:bitAgregar'],
      // The alternative without a permission is the user's own record.
      'GET /api/usuario/{id}': ['USUARIO:bitDetalle', ''],
      'PUT /api/usuario/{id}': ['USUARIO:bitEditar'],
      'DELETE /api/usuario/{id}': ['USUARIO:bitEliminar'],
      'GET /api/perfil': ['PERFIL:bitConsulta'],
      'POST /api/perfil': ['PERFIL:bitAgregar'],
      'GET /api/perfil/list': [''],
      'PUT /api/perfil/{id}': ['PERFIL:bitEditar'],
      'DELETE /api/perfil/{id}': ['PERFIL:bitEliminar'],
      'GET /api/modulo': ['MODULO:bitConsulta'],
      'POST /api/modulo': ['MODULO:bitAgregar'],
      'GET /api/modulo/list': [''],
      'PUT /api/modulo/{id}': ['MODULO:bitEditar'],
      'DELETE /api/modulo/{id}': ['MODULO:bitEliminar'],
      'GET /api/permisos': ['PERMISOS:bitConsulta'],
      'POST /api/permisos': ['PERMISOS:bitAgregar'],
      'PUT /api/permisos/{id}': ['PERMISOS:bitEditar'],
      'DELETE /api/permisos/{id}': ['PERMISOS:bitEliminar'],
      'GET /api/permisos/mis-permisos/{idPerfil}': ['PERMISOS:bitConsulta', ''],
      'GET /api/permisos/por-perfil/{idPerfil}': ['PERMISOS:bitConsulta'],
      'POST /api/permisos/guardar-matriz': ['PERMISOS:bitEditar'],
    })
    for (const name of documented()) {
      const [permission] = needs[name]
      if (permission) expect(operation(name).description).toContain(permission.replace(':', ' '))
    }
  })

  it('describes every parameter and every answer', () => {
    for (const name of documented()) {
      const { parameters = [], responses } = operation(name)
      for (const { description } of [...parameters, ...Object.values(responses)]) {
        expect(description, name).toMatch(/^(?!Default)\S/)
      }
    }
  })

  it('describes every field', () => {
    const { schemas, responses } = resolve(document.components, document)
    const undescribed = objectSchemas({ ...schemas, ...responses }).flatMap(([path, schema]) =>
      Object.entries<any>(schema.properties ?? {})
        // What stands beside a schema of failures narrows fields that this schema describes.
        .filter(([, field]) => !field.description && !path.includes('allOf'))
        .map(([name]) => `${path} ${name}`),
    )
    expect(undescribed).toEqual([])
  })

  it('has each answer once, and refers to it wherever it is given', () => {
    const answers = documented().flatMap((name) => {
      const [method = '', path = ''] = name.split(' ')
      return Object.values<any>(document.paths[path][method.toLowerCase()].responses)
    })
    const inline = answers.filter((answer) => answer.content)
    expect(inline).toEqual([])
    const distinct = Object.values(document.components.responses).map((one) => JSON.stringify(one))
    expect(new Set(distinct).size).toBe(distinct.length)
    expect(distinct.length).toBeLessThan(answers.length / 2)
  })

  it('has an example of every answer: what is done, and each text of a failure', () => {
    for (const name of documented()) {
      for (const { description, content } of Object.values<any>(operation(name).responses)) {
        if (!content) continue
        const { examples } = content['application/json']
        // The description lists them too.
        expect(Object.keys(examples), name).toEqual(description.split(' · '))
        for (const [text, { value }] of Object.entries<any>(examples)) {
          const expected = text === 'Hecho' ? { success: true } : { message: text }
          expect(value, name).toMatchObject(expected)
        }
      }
    }
  })

  it('has a literal where a field has only one value', () => {
    expect(document.components.schemas.LoginCorrecto.properties.success).toEqual({
      type: 'boolean',
      const: true,
      description: expect.any(String),
    })
    expect(source).not.toMatch(/"enum":\[[^,\]]*\]/)
  })
})

describe('/docs', () => {
  it('is where / leads to', async () => {
    const { statusCode, headers } = await app.inject('/')
    expect({ statusCode, to: headers.location }).toEqual({ statusCode: 302, to: '/docs' })
  })

  it('serves itself and all that it links to, and names no other host', async () => {
    const page = await app.inject('/docs')
    expect(page.statusCode).toBe(200)
    expect(page.headers['content-type']).toMatch(/^text\/html/)
    const links = [...page.body.matchAll(/(?:href|src)="([^"]*)"/g)].map(([, link]) => String(link))
    expect(links.length).toBeGreaterThan(4)
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

  it('is in Spanish and has the width of the screen that shows it', async () => {
    const { body } = await app.inject('/docs')
    expect(body).toContain('<html lang="es">')
    expect(body).toContain('<meta name="viewport" content="width=device-width, initial-scale=1">')
  })

  it('sends its files with their types, and nothing where the client has them already', async () => {
    const files = {
      'swagger-ui.css': 'text/css; charset=utf-8',
      'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
      'swagger-initializer.js': 'text/javascript; charset=utf-8',
      'favicon-32x32.png': 'image/png',
    }
    for (const [name, type] of Object.entries(files)) {
      const url = `/docs/static/${name}`
      const { headers, rawPayload } = await app.inject(url)
      const length = String(rawPayload.length)
      expect(headers).toMatchObject({ 'content-type': type, 'content-length': length })

      const head = await app.inject({ method: 'HEAD', url })
      expect(head.headers).toMatchObject({ 'content-type': type, 'content-length': length })
      expect(head.body).toBe('')

      for (const known of [headers.etag, `"otra", W/${headers.etag}`, '*']) {
        const again = await app.inject({ url, headers: { 'if-none-match': known } })
        expect({ status: again.statusCode, body: again.body }).toEqual({ status: 304, body: '' })
        expect(again.headers.etag).toBe(headers.etag)
      }
      const other = await app.inject({ url, headers: { 'if-none-match': '"otra"' } })
      expect(other.statusCode).toBe(200)
    }
  })

  it('answers 404 everywhere, as / does, with DOCS=false', async () => {
    const without = await testApp({ DOCS: 'false' })
    for (const path of ['/', '/docs', '/docs/json', '/docs/static/index.css']) {
      const { status, body } = await without.call('GET', path)
      expect({ path, status, body }).toEqual({
        path,
        status: 404,
        body: { statusCode: 404, message: 'Recurso no encontrado' },
      })
    }
    expect((await without.call('GET', '/api/perfil')).status).toBe(200)
    expect((await without.call('GET', '/health/ready')).status).toBe(200)
  })

  it('sends the document to no outside validator', async () => {
    const { body } = await app.inject('/docs/static/swagger-initializer.js')
    // Swagger UI's own default is validator.swagger.io.
    expect(body).toMatch(/validatorUrl: (?:null|"none")/)
  })
})

// The last: it holds up the event loop, and the service would say that it is busy.
it("is without a problem by Spectral's rules for OpenAPI", async () => {
  const { default: core } = await import('@stoplight/spectral-core')
  const { oas } = await import('@stoplight/spectral-rulesets')
  const spectral = new core.Spectral()
  // The rule demands that a scheme lists its scopes. Those of a bearer token are roles, which OpenAPI
  // 3.1 lets an operation name without a list.
  const rules = { 'oas3-operation-security-defined': 'off' }
  spectral.setRuleset({ extends: [oas], rules } as never)
  const problems = await spectral.run(source)
  expect(problems.map(({ code, message, path }) => ({ code, message, at: path }))).toEqual([])
})

/** An address of another host; a comment's and a namespace's are never called. */
const OUTSIDE = /(?<!\/\/ .*)(?:https?:)?\/\/[a-z0-9-]+\.[a-z]{2,}/i
