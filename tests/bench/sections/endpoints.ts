import { strict as assert } from 'node:assert'
import type { Bench } from '../bench.js'
import { CONNECTIONS, type Comparison, compare, describeComparison, type Pair } from '../compare.js'
import { authorization, MODULOS, openDatabase } from '../data.js'
import { checkAnswers, checkEqual } from '../equal.js'
import { dropTriggers, type Grupo, readGrupo, readModulos, seedGrupos } from '../grupos.js'
import type { LoadRequest } from '../load.js'
import { mark, type Section } from '../measure.js'
import { SERVERS, type Server } from '../processes.js'
import {
  type Connection,
  type Endpoint,
  makeRequests,
  READS,
  VACIOS_PER_SECOND,
  WRITES,
} from '../workload.js'

/** The callers of the reads, and the callers of the writes who are not administrators. */
const USUARIOS: Grupo = { nombre: 'usuario', perfiles: CONNECTIONS }
const ADMINISTRADORES: Grupo = {
  nombre: 'administrador',
  perfiles: CONNECTIONS,
  administrador: true,
}
/** The users and profiles that the writes change. */
const OTROS: Grupo = { nombre: 'otro', perfiles: CONNECTIONS }
/** A user without permissions. */
const NADIE: Grupo = { nombre: 'nadie', perfiles: 1, conPermisos: false }
/** The name of the group of profiles to which the writes add records. */
const VACIOS = 'vacio'

/** Environment variables of the plain way. */
interface PlainEnv {
  /** Makes the plain way check the first two rules in README.md. */
  RULES?: 'true'
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
  const isChosen = ({ name }: Endpoint) => chosen.includes(name)
  const reads = READS.filter(isChosen)
  const writes = WRITES.filter(isChosen)
  const rows = [...(await measureReads(bench, reads)), ...(await measureWrites(bench, writes))]
  return {
    title: 'Endpoints',
    about:
      'The service beside the plain way (references/plain.js), which decides by a query of its ' +
      'own who may do what. In the rows with "rules by hand" it also compares profiles, as the ' +
      'service does for every caller who is no administrator. ' +
      `${describeComparison(bench.seconds)} ${CONNECTIONS} users, each in a profile of its own with ` +
      `a record for each of ${MODULOS} modules. For a write, each connection has another such ` +
      'profile to write, or empty profiles to which it adds records.',
    rows,
  }
}

async function measureReads(bench: Bench, chosen: Endpoint[]) {
  const rows: Section['rows'] = []
  if (chosen.length === 0) return rows
  const url = await bench.createDatabase('lecturas')
  await seedGrupos(url, [USUARIOS, NADIE])
  const connections = await planConnections(url, USUARIOS, USUARIOS)
  for (const endpoint of chosen) {
    rows.push(await measure(bench, 'lecturas', endpoint, connections))
    if (endpoint.hasRules) {
      const row = { ...endpoint, name: `${endpoint.name}, rules by hand` }
      rows.push(await measure(bench, 'lecturas', row, connections, { RULES: 'true' }))
    }
  }
  return rows
}

async function measureWrites(bench: Bench, chosen: Endpoint[]) {
  const rows: Section['rows'] = []
  if (chosen.length === 0) return rows
  const url = await bench.createDatabase('escrituras')
  const perfiles = CONNECTIONS * VACIOS_PER_SECOND * bench.seconds
  const vacios: Grupo = { nombre: VACIOS, perfiles, conPermisos: false }
  await seedGrupos(url, [USUARIOS, ADMINISTRADORES, OTROS, NADIE, vacios])
  const administradores = await planConnections(url, ADMINISTRADORES, OTROS)
  const usuarios = await planConnections(url, USUARIOS, OTROS)
  for (const endpoint of chosen) {
    const measureAs = (suffix: string, connections: Connection[], plainEnv?: PlainEnv) => {
      const row = { ...endpoint, name: `${endpoint.name}, ${suffix}` }
      return measure(bench, 'escrituras', row, connections, plainEnv)
    }
    rows.push(await measureAs('administrador', administradores))
    rows.push(await measureAs('usuario', usuarios))
    if (endpoint.hasRules) {
      rows.push(await measureAs('usuario, rules by hand', usuarios, { RULES: 'true' }))
    }
  }
  return rows
}

/** Returns a connection for each user of `callers`; each works on a different user of `others`. */
async function planConnections(url: string, callers: Grupo, others: Grupo): Promise<Connection[]> {
  const usuarios = await readGrupo(url, callers.nombre)
  const otros = await readGrupo(url, others.nombre)
  const modulos = await readModulos(url)
  const vacios = (await readGrupo(url, VACIOS)).map(({ idPerfil }) => idPerfil)
  const share = vacios.length / CONNECTIONS
  return usuarios.map((caller, index) => {
    // If both groups are the same one, nobody works on their own user.
    const other = otros[(index + 1) % otros.length]
    assert(other)
    return { caller, other, modulos, vacios: vacios.slice(index * share, (index + 1) * share) }
  })
}

/** Compares both servers at one endpoint, each on a new copy of the database `template`. */
async function measure(
  bench: Bench,
  template: string,
  endpoint: Endpoint,
  connections: Connection[],
  plainEnv: PlainEnv = {},
) {
  const urls = {
    service: await bench.createDatabase('medida', template),
    reference: await bench.createDatabase('medida_plain', template),
  }
  await dropTriggers(urls.reference)
  const { startServer } = bench
  const servers = {
    service: await startServer(SERVERS.service, { DATABASE_URL: urls.service }),
    reference: await startServer(SERVERS.plain, { ...plainEnv, DATABASE_URL: urls.reference }),
  }
  const requests = makeRequests(endpoint, connections, bench.seconds)
  const [first] = requests
  assert(first)

  if (plainEnv.RULES) await checkRules(servers, urls, connections, first)
  // The requests are sorted by their turn, so this is the second request of the first connection.
  const second = endpoint.body && requests[CONNECTIONS]
  await checkAnswers(servers, urls, first, second)
  const [nadie] = await readGrupo(urls.service, NADIE.nombre)
  assert(nadie)
  const headers = { ...first.headers, ...authorization(nadie) }
  await checkEqual(servers, urls, { ...first, headers })
  const prepare = async () => {
    if (!endpoint.body) return
    await tidy(urls.service)
    await tidy(urls.reference)
  }
  const { perSecond, cpuMs } = await compare(bench, servers, requests, prepare)

  await servers.service.stop()
  await servers.reference.stop()
  await bench.dropDatabase('medida')
  await bench.dropDatabase('medida_plain')
  return describeResult(endpoint, perSecond, cpuMs)
}

/**
 * Takes one flag away from the caller of `first`, sends `first`, and throws unless both servers
 * answer 403. The other profile has this flag, or `first` grants it. No endpoint with `hasRules` needs
 * the flag itself, so the 403 comes from the rules.
 */
async function checkRules(
  servers: Pair<Server>,
  urls: Pair<string>,
  connections: Connection[],
  first: LoadRequest,
) {
  const [connection] = connections
  assert(connection)
  const both = [urls.service, urls.reference]
  await Promise.all(both.map((url) => setFlag(url, connection, false)))
  const { status } = await checkEqual(servers, urls, first)
  assert.equal(status, 403)
  await Promise.all(both.map((url) => setFlag(url, connection, true)))
}

/** Sets `bitEliminar` of the caller's record for the first module. */
async function setFlag(url: string, { caller, modulos }: Connection, value: boolean) {
  const sql = openDatabase(url)
  await sql`
    update permisos_perfil
    set "bitEliminar" = ${value}
    where "idPerfil" = ${caller.idPerfil} and "idModulo" = ${modulos[0] ?? null}
  `
  await sql.end()
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

function describeResult(
  { name, target }: Endpoint,
  perSecond: Comparison,
  cpuMs: Comparison,
): Section['rows'][number] {
  const isFast = perSecond.ratio.median >= target.perSecond
  const row = {
    endpoint: name,
    'requests/s': perSecond.service,
    'plain requests/s': perSecond.reference,
    ratio: perSecond.ratio,
    'at least': target.perSecond,
  }
  // Without /proc, the processor time is unknown.
  if (Number.isNaN(cpuMs.ratio.median)) return { ...row, holds: mark(isFast) }
  const isCheap = cpuMs.ratio.median <= target.cpu
  return {
    ...row,
    'CPU ms': cpuMs.service,
    'plain CPU ms': cpuMs.reference,
    'CPU ratio': cpuMs.ratio,
    'at most': target.cpu,
    holds: mark(isFast && isCheap),
  }
}
