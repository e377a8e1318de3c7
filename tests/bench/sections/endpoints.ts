import { strict as assert } from 'node:assert'
import type { Bench } from '../bench.js'
import { CONNECTIONS, type Comparison, compare, describeComparison, type Pair } from '../compare.js'
import {
  authorization,
  dropTriggers,
  type Grupo,
  MODULOS,
  openDatabase,
  readGrupo,
  readModulos,
  seedGrupos,
  type Usuario,
} from '../data.js'
import { checkEqual } from '../equal.js'
import type { LoadRequest } from '../load.js'
import { mark, type Section } from '../measure.js'
import { SERVERS, type Server } from '../processes.js'

/** What one connection works with. */
interface Connection {
  /** Whose token it sends. */
  caller: Usuario
  /** Another user, the user's profile and its first permission record: what it reads or writes. */
  other: Usuario & { idPermiso: number | null }
  /** The ids of profiles without permission records, and of all modules. */
  vacios: number[]
  modulos: number[]
}

interface Endpoint {
  name: string
  method?: 'GET' | 'POST' | 'PUT'
  path(connection: Connection): string
  /** The body that a connection sends the time `turn`, which counts from 0. */
  body?(connection: Connection, turn: number): object
  /** How many different requests each connection makes before it begins again; by default one. */
  turns?(seconds: number): number
  /** Further settings of the service for this endpoint. */
  env?: Record<string, string>
  /** The service, the plain way being 1: requests/s at least, processor time at most. */
  target: { perSecond: number; cpu: number }
}

const MAP = { perSecond: 7.5, cpu: 0.12 }
const READ = { perSecond: 1, cpu: 1 }
const WRITE = { perSecond: 0.5, cpu: 2 }
const MATRIX = { perSecond: 0.8, cpu: 1.25 }

const READS: Endpoint[] = [
  {
    name: 'map',
    path: ({ caller }) => `/api/permisos/mis-permisos/${caller.idPerfil}`,
    target: MAP,
  },
  {
    name: 'map, AUTHORIZATION=client',
    path: ({ caller }) => `/api/permisos/mis-permisos/${caller.idPerfil}`,
    env: { AUTHORIZATION: 'client' },
    target: MAP,
  },
  { name: 'usuario', path: () => '/api/usuario', target: READ },
  { name: 'perfil', path: () => '/api/perfil', target: READ },
  { name: 'modulo', path: () => '/api/modulo', target: READ },
  { name: 'permisos', path: () => '/api/permisos', target: READ },
  { name: 'modulo/list', path: () => '/api/modulo/list', target: READ },
  { name: 'perfil/list', path: () => '/api/perfil/list', target: READ },
  { name: 'usuario/:id', path: ({ other }) => `/api/usuario/${other.id}`, target: READ },
  { name: 'usuario/:own', path: ({ caller }) => `/api/usuario/${caller.id}`, target: READ },
]

/** Every second time, so that each update changes something. */
const isOdd = (turn: number) => turn % 2 === 1

const flags = (value: boolean) => ({
  bitAgregar: true,
  bitEditar: value,
  bitConsulta: true,
  bitEliminar: value,
  bitDetalle: true,
})

const WRITES: Endpoint[] = [
  {
    name: 'PUT perfil',
    method: 'PUT',
    path: ({ other }) => `/api/perfil/${other.idPerfil}`,
    body: ({ other }, turn) => ({
      strNombrePerfil: `${other.nombre} ${isOdd(turn) ? 'de día' : 'de noche'}`,
      bitAdministrador: false,
    }),
    turns: () => 2,
    target: WRITE,
  },
  {
    name: 'PUT permisos',
    method: 'PUT',
    path: ({ other }) => `/api/permisos/${other.idPermiso}`,
    body: ({ other, modulos }, turn) => ({
      idPerfil: other.idPerfil,
      idModulo: modulos[0],
      ...flags(isOdd(turn)),
    }),
    turns: () => 2,
    target: WRITE,
  },
  {
    name: 'POST permisos',
    method: 'POST',
    path: () => '/api/permisos',
    body: ({ vacios, modulos }, turn) => ({
      idPerfil: vacios[Math.floor(turn / modulos.length)],
      idModulo: modulos[turn % modulos.length],
      ...flags(true),
    }),
    turns: postsFor,
    target: WRITE,
  },
  {
    name: 'PUT usuario',
    method: 'PUT',
    path: ({ other }) => `/api/usuario/${other.id}`,
    body: ({ other }, turn) => ({
      strNombreUsuario: other.nombre,
      idPerfil: other.idPerfil,
      strCorreo: `${other.nombre}@ejemplo.com`,
      strNumeroCelular: isOdd(turn) ? '5512345678' : '5587654321',
      idEstadoUsuario: true,
    }),
    turns: () => 2,
    target: WRITE,
  },
  {
    name: 'matrix of 200',
    method: 'POST',
    path: () => '/api/permisos/guardar-matriz',
    body: ({ other, modulos }, turn) => ({
      idPerfil: other.idPerfil,
      permisos: modulos.map((idModulo) => ({ idModulo, ...flags(isOdd(turn)) })),
    }),
    turns: () => 2,
    target: MATRIX,
  },
]

/** The records that each connection may add in one measurement, so 10,000 a second in all. */
function postsFor(seconds: number) {
  return seconds * MODULOS
}

/** Readers, and writers who are no administrators. They hold all that can be granted. */
const USUARIOS: Grupo = { nombre: 'usuario', perfiles: CONNECTIONS }
const ADMINISTRADORES: Grupo = {
  nombre: 'administrador',
  perfiles: CONNECTIONS,
  administrador: true,
}
/** The users and profiles that are written. */
const OTROS: Grupo = { nombre: 'otro', perfiles: CONNECTIONS }
/** A user who may do nothing. */
const NADIE: Grupo = { nombre: 'nadie', perfiles: 1, conPermisos: false }
/** The profiles that records are added to. */
const VACIOS = 'vacio'

/** Every endpoint: the service beside the plain way. */
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
      `own who may do what. ${describeComparison(bench.seconds)} ${CONNECTIONS} users, each in a ` +
      `profile of its own with a record for each of ${MODULOS} modules. For a write, each ` +
      'connection has another such profile to write.',
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
  }
  return rows
}

async function measureWrites(bench: Bench, chosen: Endpoint[]) {
  const rows: Section['rows'] = []
  if (chosen.length === 0) return rows
  const url = await bench.createDatabase('escrituras')
  const perfiles = CONNECTIONS * bench.seconds
  const vacios: Grupo = { nombre: VACIOS, perfiles, conPermisos: false }
  await seedGrupos(url, [USUARIOS, ADMINISTRADORES, OTROS, NADIE, vacios])
  for (const endpoint of chosen) {
    for (const callers of [ADMINISTRADORES, USUARIOS]) {
      const connections = await planConnections(url, callers, OTROS)
      const name = `${endpoint.name}, ${callers.nombre}`
      rows.push(await measure(bench, 'escrituras', { ...endpoint, name }, connections))
    }
  }
  return rows
}

/** Gives each user of `callers` a connection, and to each connection another user of `others`. */
async function planConnections(url: string, callers: Grupo, others: Grupo): Promise<Connection[]> {
  const usuarios = await readGrupo(url, callers.nombre)
  const otros = await readGrupo(url, others.nombre)
  const modulos = await readModulos(url)
  const vacios = (await readGrupo(url, VACIOS)).map(({ idPerfil }) => idPerfil)
  const share = vacios.length / CONNECTIONS
  return usuarios.map((caller, index) => {
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
) {
  const urls = {
    service: await bench.createDatabase('medida', template),
    reference: await bench.createDatabase('medida_plain', template),
  }
  await dropTriggers(urls.reference)
  const { startServer } = bench
  const servers = {
    service: await startServer(SERVERS.service, { ...endpoint.env, DATABASE_URL: urls.service }),
    reference: await startServer(SERVERS.plain, { DATABASE_URL: urls.reference }),
  }
  const turns = endpoint.turns?.(bench.seconds) ?? 1
  const requests = Array.from({ length: turns }, (_, turn) =>
    connections.map((connection) => makeRequest(endpoint, connection, turn)),
  ).flat()

  await checkAnswers(servers, urls, requests)
  if (!endpoint.env) await checkRefusal(servers, urls, requests)
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

function makeRequest(endpoint: Endpoint, connection: Connection, turn: number): LoadRequest {
  const { method = 'GET', path, body } = endpoint
  const headers = authorization(connection.caller)
  if (!body) return { method, path: path(connection), headers }
  return {
    method,
    path: path(connection),
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(body(connection, turn)),
  }
}

/**
 * Throws unless both servers return the same answers to the first connection, with a token and
 * without one, and write the same data.
 */
async function checkAnswers(servers: Pair<Server>, urls: Pair<string>, requests: LoadRequest[]) {
  const [first] = requests
  const second = requests[CONNECTIONS]
  assert(first)
  const { authorization: _, ...headers } = first.headers
  const withoutToken = await checkEqual(servers, urls, { ...first, headers })
  assert.equal(withoutToken.status, 401)

  const done = await checkEqual(servers, urls, first)
  assert.equal(done.status, 200)
  if (!second) return
  const doneAgain = await checkEqual(servers, urls, second)
  assert.equal(doneAgain.status, 200)
  // Servers that write nothing would be equal, too.
  assert.notEqual(doneAgain.content, done.content)
}

/** Throws unless both servers return the same answer to a user who may do nothing. */
async function checkRefusal(servers: Pair<Server>, urls: Pair<string>, [first]: LoadRequest[]) {
  const [nadie] = await readGrupo(urls.service, NADIE.nombre)
  assert(first && nadie)
  const headers = { ...first.headers, ...authorization(nadie) }
  await checkEqual(servers, urls, { ...first, headers })
}

/** Removes the added records and the dead rows, which the last round has left behind. */
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
  // There is no /proc to read processor time from.
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
