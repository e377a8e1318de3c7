import { strict as assert } from 'node:assert'
import { CONNECTIONS } from './compare.js'
import {
  authorization,
  type Grupo,
  type Miembro,
  MODULOS,
  readGrupo,
  type Usuario,
} from './data.js'
import type { LoadRequest } from './load.js'

/** The callers of the reads, and the callers of the writes who are not administrators. */
export const USUARIOS: Grupo = { nombre: 'usuario', perfiles: CONNECTIONS }
/** The name of the group of profiles to which the writes add records. */
export const VACIOS = 'vacio'

/**
 * Returns how many empty profiles each connection needs for a round. All connections together can
 * add 10,000 records in a second.
 */
export const vaciosFor = (seconds: number) => Math.ceil((seconds * 10_000) / MODULOS / CONNECTIONS)

/** The data that one connection of the load generator works with. */
export interface Connection {
  /** The user whose token the connection sends. */
  caller: Usuario
  /** The user, profile and permission record that the connection reads or writes. */
  other: Miembro
  /** The ids of profiles without permission records, which no other connection writes. */
  vacios: number[]
}

/** An endpoint as a row of the section `endpoints`. */
export interface Endpoint {
  name: string
  /** The default is GET. */
  method?: 'POST' | 'PUT'
  path(connection: Connection, turn: number): string
  /** The body. `turn` is the number of the request of this connection, counted from 0. */
  body?(connection: Connection, turn: number): object
  /**
   * How many different requests a connection sends before it repeats them. The default is 1 for a
   * read and 2 for a write.
   */
  turns?(seconds: number): number
  /**
   * Whether the first three rules in README.md can refuse this request. Then it is also measured
   * beside a plain way that checks these rules.
   */
  hasRules?: boolean
}

export const READS: Endpoint[] = [
  {
    name: 'map',
    path: ({ caller }) => `/api/permisos/mis-permisos/${caller.idPerfil}`,
  },
  { name: 'usuario', path: () => '/api/usuario' },
  { name: 'perfil', path: () => '/api/perfil' },
  { name: 'modulo', path: () => '/api/modulo' },
  { name: 'permisos', path: () => '/api/permisos' },
  {
    name: 'permisos, 400 pages',
    path: ({ caller }, turn) => `/api/permisos?page=${1 + ((8 * caller.id + turn) % 400)}`,
    turns: () => 400,
  },
  { name: 'modulo/list', path: () => '/api/modulo/list' },
  { name: 'perfil/list', path: () => '/api/perfil/list' },
  {
    name: 'usuario/:id',
    path: ({ other }) => `/api/usuario/${other.id}`,
    hasRules: true,
  },
  { name: 'usuario/:own', path: ({ caller }) => `/api/usuario/${caller.id}` },
]

const MODULO_IDS = Array.from({ length: MODULOS }, (_, index) => index + 1)

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
    hasRules: true,
  },
  {
    name: 'PUT permisos',
    method: 'PUT',
    path: ({ other }) => `/api/permisos/${other.idPermiso}`,
    body: ({ other }, turn) => ({
      idPerfil: other.idPerfil,
      idModulo: 1,
      ...flags(isOdd(turn)),
    }),
    hasRules: true,
  },
  {
    name: 'POST permisos',
    method: 'POST',
    path: () => '/api/permisos',
    body: ({ vacios }, turn) => ({
      idPerfil: vacios[Math.floor(turn / MODULOS)],
      idModulo: 1 + (turn % MODULOS),
      ...flags(true),
    }),
    turns: (seconds) => vaciosFor(seconds) * MODULOS,
    hasRules: true,
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
    hasRules: true,
  },
  {
    name: 'matrix of 200',
    method: 'POST',
    path: () => '/api/permisos/guardar-matriz',
    body: ({ other }, turn) => ({
      idPerfil: other.idPerfil,
      permisos: MODULO_IDS.map((idModulo) => ({ idModulo, ...flags(isOdd(turn)) })),
    }),
    hasRules: true,
  },
]

/** Returns a connection for each user of `callers`; each works on a different user of `others`. */
export async function planConnections(url: string, callers: Grupo, others: Grupo) {
  const usuarios = await readGrupo(url, callers.nombre)
  const otros = await readGrupo(url, others.nombre)
  const vacios = (await readGrupo(url, VACIOS)).map(({ idPerfil }) => idPerfil)
  const share = vacios.length / CONNECTIONS
  return usuarios.map((caller, index): Connection => {
    // If both groups are the same one, nobody works on their own user.
    const other = otros[(index + 1) % otros.length]
    assert(other)
    return { caller, other, vacios: vacios.slice(index * share, (index + 1) * share) }
  })
}

/** Returns the first request of each connection, then the second of each, and so on. */
export function makeRequests(endpoint: Endpoint, connections: Connection[], seconds: number) {
  const turns = endpoint.turns?.(seconds) ?? (endpoint.body ? 2 : 1)
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
