import { readFileSync } from 'node:fs'
import type { FastifyInstance } from 'fastify'
import { JSON_TYPE } from '../answers/failures.js'
import { type About, collectRoutes, documentOf } from './openapi.js'

const HTML = 'text/html; charset=utf-8'
const STYLES = 'text/css; charset=utf-8'
const SCRIPT = 'text/javascript; charset=utf-8'

/** The files of Swagger UI that the page links to, with their content types. */
const FILES = {
  'swagger-ui.css': STYLES,
  'swagger-ui-bundle.js': SCRIPT,
}

const PAGE = `<!doctype html>
<html lang="es">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Llavero</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/docs/static/swagger-ui.css">
</head>
<body>
<div id="swagger-ui"></div>
<script src="/docs/static/swagger-ui-bundle.js"></script>
<script src="/docs/initializer.js"></script>
</body>
</html>
`

/** The script that starts Swagger UI with the document. */
const INITIALIZER = `SwaggerUIBundle({
  dom_id: '#swagger-ui',
  url: '/docs/json',
  deepLinking: true,
  persistAuthorization: true,
})
`

/**
 * Lets the page load only the service's own files, and the styles and icons that Swagger UI embeds.
 */
const POLICY = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:"

/** Lets a browser store the files of Swagger UI for an hour. */
const FOR_AN_HOUR = 'public, max-age=3600'

/**
 * Adds `/docs` (Swagger UI), `/docs/json` (OpenAPI 3.1), and a redirect from `/` to `/docs`. The
 * document contains the routes with an `operationId` that are registered after this call.
 */
export async function serveDocs(app: FastifyInstance, about: About) {
  await collectRoutes(app, about)

  /**
   * Adds a path. Its content is loaded at the first request and kept in memory, so that no client
   * can keep a file open.
   */
  function serve(path: string, type: string, load: () => string | Buffer, caching = 'no-store') {
    let content: string | Buffer | undefined
    app.get(path, async (_request, reply) => {
      content ??= load()
      reply.headers({
        'content-type': type,
        'content-security-policy': POLICY,
        'cache-control': caching,
      })
      return content
    })
  }

  app.get('/', async (_request, reply) => reply.redirect('/docs'))
  serve('/docs', HTML, () => PAGE)
  serve('/docs/', HTML, () => PAGE)
  serve('/docs/initializer.js', SCRIPT, () => INITIALIZER)
  serve('/docs/json', JSON_TYPE, () => documentOf(app))
  for (const [name, type] of Object.entries(FILES)) {
    const file = new URL(import.meta.resolve(`swagger-ui-dist/${name}`))
    serve(`/docs/static/${name}`, type, () => readFileSync(file), FOR_AN_HOUR)
  }
}
