import { strict as assert } from 'node:assert'
import type { Pair } from './compare.js'
import { openDatabase } from './data.js'
import type { LoadRequest } from './load.js'
import type { Server } from './processes.js'

/**
 * Sends `first` without its token, then `first`, then `second` to both servers. Throws an
 * AssertionError unless both return the same answers and store the same data. The answer without a
 * token must be a 401, the others must be a 200. `second` is for writes alone, and must change the
 * data that `first` has stored.
 */
export async function checkAnswers(
  servers: Pair<Server>,
  urls: Pair<string>,
  first: LoadRequest,
  second?: LoadRequest,
) {
  const { authorization: _, ...headers } = first.headers
  const withoutToken = await checkEqual(servers, urls, { ...first, headers })
  assert.equal(withoutToken.status, 401)

  const done = await checkEqual(servers, urls, first)
  assert.equal(done.status, 200)
  if (!second) return
  const doneAgain = await checkEqual(servers, urls, second)
  assert.equal(doneAgain.status, 200)
  assert.notEqual(doneAgain.content, done.content)
}

/**
 * Sends one request to both servers and throws an AssertionError unless they return the same status
 * and body, and the databases at `urls` have the same content afterwards. Returns the status and a
 * hash of that content.
 */
export async function checkEqual(servers: Pair<Server>, urls: Pair<string>, request: LoadRequest) {
  const service = await send(servers.service, request)
  const reference = await send(servers.reference, request)
  assert.deepEqual(service, reference)
  const content = await readContent(urls.service)
  assert.equal(content, await readContent(urls.reference))
  return { status: service.status, content }
}

async function send(server: Server, { path, ...request }: LoadRequest) {
  const answer = await fetch(server.url + path, request)
  return { status: answer.status, body: await answer.json() }
}

/** Returns a hash of all rows, without the columns that only the service writes. */
async function readContent(url: string) {
  const sql = openDatabase(url)
  const [row] = await sql<[{ content: string }]>`
    with filas (fila) as (
      select to_jsonb(perfil) - 'versionPermisos' - 'numPermisos' from perfil
      union all
      select to_jsonb(modulo) from modulo
      union all
      select to_jsonb(permisos_perfil) from permisos_perfil
      union all
      select to_jsonb(usuario) - 'versionSesion' - 'imagenPublicId' from usuario
    )
    select md5(string_agg(fila::text, ',' order by fila::text)) as content from filas
  `
  await sql.end()
  return row.content
}
