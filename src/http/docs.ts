import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { Failure } from './failures.js'
import { type About, documentRoutes } from './openapi.js'
import { PLACEHOLDER } from './openapi-examples.js'

/** The files of Swagger UI that the page links to, with their content types. */
const TYPES = {
  'index.css': 'text/css; charset=utf-8',
  'swagger-ui.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  'favicon-16x16.png': 'image/png',
  'favicon-32x32.png': 'image/png',
}

const PAGE = `<!doctype html>
<html lang="es">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Llavero</title>
<link rel="stylesheet" href="/docs/static/swagger-ui.css">
<link rel="stylesheet" href="/docs/static/index.css">
<link rel="icon" type="image/png" sizes="32x32" href="/docs/static/favicon-32x32.png">
<link rel="icon" type="image/png" sizes="16x16" href="/docs/static/favicon-16x16.png">
</head>
<body>
<div id="swagger-ui"></div>
<script src="/docs/static/swagger-ui-bundle.js"></script>
<script src="/docs/static/swagger-initializer.js"></script>
</body>
</html>
`

/**
 * The script that starts Swagger UI with the document. The base layout has no input in which a user
 * could open another document. The interceptor replaces PLACEHOLDER in the body of each request by a
 * random number, so that the example of a creation can be sent again without a conflict of names.
 */
const INITIALIZER = `SwaggerUIBundle({
  dom_id: '#swagger-ui',
  url: '/docs/json',
  layout: 'BaseLayout',
  deepLinking: true,
  persistAuthorization: true,
  validatorUrl: null,
  requestInterceptor: (request) => {
    const number = Math.floor(Math.random() * 1e6)
    if (request.body) request.body = request.body.replaceAll('${PLACEHOLDER}', number)
    return request
  },
})
`

/** Lets the page load only the service's own files, and the styles and icons that Swagger UI embeds. */
const POLICY = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:"

interface File {
  content: Buffer
  type: string
  etag: string
}

interface Content {
  document: Buffer
  files: Map<string, File>
}

/**
 * Adds `/docs` (Swagger UI), `/docs/json` (OpenAPI 3.1), and a redirect from `/` to `/docs`. The document
 * contains the routes that are registered after this plugin.
 */
export default fp<About>(async (app, about) => {
  const makeDocument = documentRoutes(app, about)

  async function load(): Promise<Content> {
    const document = Buffer.from(await makeDocument())
    return { document, files: await readFiles() }
  }

  let loading: Promise<Content> | undefined

  /** Loads everything into memory on the first request, so that no client can keep a file open. */
  function content() {
    loading ??= load().catch((error) => {
      loading = undefined
      throw error
    })
    return loading
  }

  app.get('/', { schema: { hide: true } }, async (_request, reply) => {
    return reply.redirect('/docs')
  })
  app.register((docs) => addRoutes(docs, content), { prefix: '/docs' })
})

/**
 * Adds the routes under `/docs`. They serve PAGE, and the document and the files from `content`.
 */
async function addRoutes(app: FastifyInstance, content: () => Promise<Content>) {
  const schema = { hide: true }

  app.addHook('onRequest', async (_request, reply) => {
    reply.header('content-security-policy', POLICY)
  })

  app.get('/', { schema }, async (_request, reply) => {
    return reply.type('text/html; charset=utf-8').send(PAGE)
  })

  app.get('/json', { schema }, async (_request, reply) => {
    const { document } = await content()
    return reply.type('application/json; charset=utf-8').send(document)
  })

  app.get('/static/:name', { schema }, async (request, reply) => {
    const { files } = await content()
    const { name } = request.params as { name: string }
    const file = files.get(name)
    if (!file) throw new Failure('notFound')
    return sendFile(file, request, reply)
  })
}

/** Returns the files that the page links to, by name. */
async function readFiles() {
  const { resolve } = createRequire(import.meta.url)
  const script = Buffer.from(INITIALIZER)
  const files = new Map([
    ['swagger-initializer.js', makeFile(script, TYPES['swagger-ui-bundle.js'])],
  ])
  for (const [name, type] of Object.entries(TYPES)) {
    const path = resolve(`swagger-ui-dist/${name}`)
    const content = await readFile(path)
    files.set(name, makeFile(content, type))
  }
  return files
}

function makeFile(content: Buffer, type: string): File {
  const hash = createHash('sha256').update(content).digest('base64url')
  return { content, type, etag: `"${hash}"` }
}

/** Sends a file, or the status 304 if the client already has it. */
function sendFile(file: File, request: FastifyRequest, reply: FastifyReply) {
  const { content, type, etag } = file
  reply.headers({ etag, 'cache-control': 'public, max-age=0' })
  const known = request.headers['if-none-match'] ?? ''
  const isKnown = known === '*' || known.includes(etag)
  if (isKnown) return reply.code(304).send()
  return reply.type(type).send(content)
}
