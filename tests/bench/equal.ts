import { strict as assert } from 'node:assert'
import type { Pair } from './compare.js'
import { openDatabase } from './data.js'
import type { LoadRequest } from './load.js'
import type { Server } from './processes.js'

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

/** A hash of all rows, of the columns that the contract names. */
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
