import { strict as assert } from 'node:assert'
import type { Bench } from '../bench.js'
import { CONNECTIONS, compare, type Pair, type Section } from '../compare.js'
import { authorization, type Grupo, MODULOS, openDatabase, readGrupo, seedGrupos } from '../data.js'
import type { LoadRequest } from '../load.js'
import { SERVERS, type Server } from '../processes.js'
import {
  type Connection,
  type Endpoint,
  makeRequests,
  planConnections,
  READS,
  USUARIOS,
  VACIOS,
  vaciosFor,
  WRITES,
} from '../workload.js'

const ADMINISTRADORES: Grupo = {
  nombre: 'administrador',
  perfiles: CONNECTIONS,
  administrador: true,
}
/** The users and profiles that the writes change. */
const OTROS: Grupo = { nombre: 'otro', perfiles: CONNECTIONS }
/** A user without permissions. */
const NADIE: Grupo = { nombre: 'nadie', perfiles: 1, conPermisos: false }
/**
 * A user with each permission that the endpoints need, but not with all that the first three rules
 * in README.md demand.
 */
const LIMITADO: Grupo = { nombre: 'limitado', perfiles: 1, bitEliminar: false }

/** A row of the table. */
interface Row {
  name: string
  /** The database of which the row gets two copies. */
  template: string
  endpoint: Endpoint
  connections: Connection[]
  /** Whether the plain way checks the first three rules in README.md. */
  rules: boolean
}

/**
 * Compares the service with the plain way at each endpoint of workload.ts, or at those of
 * `--endpoint`.
 */
export async function endpoints(bench: Bench): Promise<Section> {
  const names = [...READS, ...WRITES].map(({ name }) => name)
  const chosen = bench.endpoints.length > 0 ? bench.endpoints : names
  if (!chosen.every((name) => names.includes(name))) {
    throw new Error(`--endpoint must be one of "${names.join('", "')}"`)
  }
  const rows: Section['rows'] = []
  for (const row of [...(await planReads(bench)), ...(await planWrites(bench))]) {
    if (chosen.includes(row.endpoint.name)) rows.push(await measure(bench, row))
  }
  return {
    about:
      'The service beside the plain way (references/plain.js), which decides by a query of its ' +
      'own who may do what. In the rows with "rules by hand" it also compares profiles, as the ' +
      `service does for every caller who is no administrator. ${CONNECTIONS} users, each in a ` +
      `profile of its own with a record for each of ${MODULOS} modules. For a write, each ` +
      'connection has another such profile to write, or empty profiles to which it adds records.',
    rows,
  }
}

async function planReads(bench: Bench) {
  const url = await bench.createDatabase('lecturas')
  await seedGrupos(url, [USUARIOS, NADIE, LIMITADO])
  const connections = await planConnections(url, USUARIOS, USUARIOS)
  const rows: Row[] = []
  for (const endpoint of READS) {
    const row = { name: endpoint.name, template: 'lecturas', endpoint, connections, rules: false }
    rows.push(row)
    if (endpoint.hasRules) rows.push({ ...row, name: `${row.name}, rules by hand`, rules: true })
  }
  return rows
}

async function planWrites(bench: Bench) {
  const url = await bench.createDatabase('escrituras')
  const perfiles = CONNECTIONS * vaciosFor(bench.seconds)
  const vacios: Grupo = { nombre: VACIOS, perfiles, conPermisos: false }
  await seedGrupos(url, [USUARIOS, ADMINISTRADORES, OTROS, NADIE, LIMITADO, vacios])
  const administradores = await planConnections(url, ADMINISTRADORES, OTROS)
  const usuarios = await planConnections(url, USUARIOS, OTROS)
  const rows: Row[] = []
  for (const endpoint of WRITES) {
    const { name } = endpoint
    const row = { template: 'escrituras', endpoint, rules: false }
    rows.push({ ...row, name: `${name}, administrador`, connections: administradores })
    rows.push({ ...row, name: `${name}, usuario`, connections: usuarios })
    if (endpoint.hasRules) {
      const rules = `${name}, usuario, rules by hand`
      rows.push({ ...row, name: rules, connections: usuarios, rules: true })
    }
  }
  return rows
}

/** Compares both servers at one endpoint, each on a new copy of the row's database. */
async function measure(bench: Bench, { name, template, endpoint, connections, rules }: Row) {
  const urls = {
    service: await bench.createDatabase('medida', template),
    reference: await bench.createDatabase('medida_plain', template),
  }
  await dropTriggers(urls.reference)
  const env = { RULES: `${rules}` }
  const servers = {
    service: await bench.startServer(SERVERS.service, { DATABASE_URL: urls.service }),
    reference: await bench.startServer(SERVERS.plain, { ...env, DATABASE_URL: urls.reference }),
  }
  const requests = makeRequests(endpoint, connections, bench.seconds)
  const [first] = requests
  assert(first)
  await checkAnswers(servers, urls.service, first, rules)

  const figures = await compare(bench, servers, requests, async () => {
    await tidy(urls.service)
    await tidy(urls.reference)
  })
  await servers.service.stop()
  await servers.reference.stop()
  await bench.dropDatabase('medida')
  await bench.dropDatabase('medida_plain')
  return { endpoint: name, ...figures }
}

/**
 * Drops the triggers of the audit, of the versions of the permission maps, and of the counters of
 * the permission records, which the plain way does not use. If they were only disabled, PostgreSQL
 * would still collect the rows for their transition tables.
 */
async function dropTriggers(url: string) {
  const sql = openDatabase(url)
  const triggers = await sql<{ tabla: string; nombre: string }[]>`
    select tgrelid::regclass::text as tabla, tgname as nombre from pg_trigger where not tgisinternal
  `
  for (const { tabla, nombre } of triggers) {
    await sql`drop trigger ${sql(nombre)} on ${sql(tabla)}`
  }
  await sql.end()
}

/**
 * Sends a request to both servers: without its token, as callers who may not send it, and as it is.
 * Throws an AssertionError unless both servers give the same answers, and those that they should.
 */
async function checkAnswers(
  servers: Pair<Server>,
  url: string,
  request: LoadRequest,
  rules: boolean,
) {
  const [nadie] = await readGrupo(url, NADIE.nombre)
  const [limitado] = await readGrupo(url, LIMITADO.nombre)
  assert(nadie && limitado)
  const sendAs = (headers: Record<string, string>) =>
    sendToBoth(servers, { ...request, headers: { ...request.headers, ...headers } })

  assert.equal(await sendAs({ authorization: '' }), 401)
  // Some reads need no permission.
  await sendAs(authorization(nadie))
  if (rules) assert.equal(await sendAs(authorization(limitado)), 403)
  assert.equal(await sendToBoth(servers, request), 200)
}

/**
 * Sends a request to both servers and returns the status. Throws an AssertionError unless status
 * and body of both answers are the same.
 */
async function sendToBoth({ service, reference }: Pair<Server>, request: LoadRequest) {
  const answer = await send(service, request)
  assert.deepEqual(answer, await send(reference, request))
  return answer.status
}

async function send(server: Server, { path, ...request }: LoadRequest) {
  const answer = await fetch(server.url + path, request)
  return { status: answer.status, body: await answer.json() }
}

/** Removes the records that the last round has added, and the dead rows that it has left. */
async function tidy(url: string) {
  const sql = openDatabase(url)
  await sql`
    delete from permisos_perfil
    using perfil
    where perfil.id = "idPerfil" and "strNombrePerfil" like ${`${VACIOS}%`}
  `
  await sql`vacuum analyze perfil, permisos_perfil, usuario`
  await sql.end()
}
