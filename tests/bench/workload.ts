import { CONNECTIONS } from './compare.js'
import { authorization, MODULOS, type Usuario } from './data.js'
import type { Miembro } from './grupos.js'
import type { LoadRequest } from './load.js'

/**
 * How many empty profiles each connection gets for each second of a round. All connections together
 * can add at least 10,000 records in a second.
 */
export const VACIOS_PER_SECOND = Math.ceil(10_000 / MODULOS / CONNECTIONS)

/** The data that one connection of the load generator works with. */
export interface Connection {
  /** The user whose token the connection sends. */
  caller: Usuario
  /** The user, profile and permission record that the connection reads or writes. */
  other: Miembro
  /** The ids of profiles without permission records, which no other connection writes. */
  vacios: number[]
  /** The ids of all modules. */
  modulos: number[]
}

/** An endpoint as a row of the section `endpoints`. */
export interface Endpoint {
  name: string
  /** The default is GET. */
  method?: 'POST' | 'PUT'
  path(connection: Connection, turn: number): string
  /** The body. `turn` is the number of the request of this connection, counted from 0. */
  body?(connection: Connection, turn: number): object
  /** How many different requests a connection sends before it repeats them; one by default. */
  turns?(seconds: number): number
  /**
   * Whether the first two rules in README.md can refuse this request. Then it is also measured beside
   * a plain way that checks these rules.
   */
  hasRules?: boolean
  /**
   * The bounds for the ratios of service to plain way: requests/s at least, processor time at most.
   */
  target: { perSecond: number; cpu: number }
}

const MAP = { perSecond: 7.5, cpu: 0.12 }
const READ = { perSecond: 1, cpu: 1 }
const WRITE = { perSecond: 0.5, cpu: 2 }
const MATRIX = { perSecond: 0.8, cpu: 1.25 }

export const READS: Endpoint[] = [
  {
    name: 'map',
    path: ({ caller }) => `/api/permisos/mis-permisos/${caller.idPerfil}`,
    target: MAP,
  },
  { name: 'usuario', path: () => '/api/usuario', target: READ },
  { name: 'perfil', path: () => '/api/perfil', target: READ },
  { name: 'modulo', path: () => '/api/modulo', target: READ },
  { name: 'permisos', path: () => '/api/permisos', target: READ },
  {
    name: 'permisos, 400 pages',
    path: ({ caller }, turn) => `/api/permisos?page=${1 + ((8 * caller.id + turn) % 400)}`,
    turns: () => 400,
    target: READ,
  },
  { name: 'modulo/list', path: () => '/api/modulo/list', target: READ },
  { name: 'perfil/list', path: () => '/api/perfil/list', target: READ },
  {
    name: 'usuario/:id',
    path: ({ other }) => `/api/usuario/${other.id}`,
    hasRules: true,
    target: READ,
  },
  { name: 'usuario/:own', path: ({ caller }) => `/api/usuario/${caller.id}`, target: READ },
]

/** Bodies alternate between odd and even turns, so that each update changes its row. */
const isOdd = (turn: number) => turn % 2 === 1

const flags = (value: boolean) => ({
  bitAgregar: true,
  bitEditar: value,
  bitConsulta: true,
  bitEliminar: value,
  bitDetalle: true,
})

export const WRITES: Endpoint[] = [
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
    hasRules: true,
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
    hasRules: true,
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
    hasRules: true,
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
    hasRules: true,
    target: MATRIX,
  },
]

/** How many records a connection can add in one round. */
function postsFor(seconds: number) {
  return seconds * VACIOS_PER_SECOND * MODULOS
}

/** Returns the first request of each connection, then the second of each, and so on. */
export function makeRequests(endpoint: Endpoint, connections: Connection[], seconds: number) {
  const turns = endpoint.turns?.(seconds) ?? 1
  const numbers = Array.from({ length: turns }, (_, turn) => turn)
  return numbers.flatMap((turn) =>
    connections.map((connection) => makeRequest(endpoint, connection, turn)),
  )
}

function makeRequest(endpoint: Endpoint, connection: Connection, turn: number): LoadRequest {
  const { method = 'GET', path, body } = endpoint
  const headers = authorization(connection.caller)
  if (!body) return { method, path: path(connection, turn), headers }
  return {
    method,
    path: path(connection, turn),
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(body(connection, turn)),
  }
}
