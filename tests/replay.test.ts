import { beforeAll, expect, it } from 'vitest'
import { ADMIN, PNG, testApp } from './app.js'
import { FLAGS, type Flag, SYSTEM_MODULES, usuario } from './endpoints.js'

/** The number of writes that the two administrators send. */
const WRITES = 150
const SEED = 20_261_123
const PASSWORD = 'una clave de trabajo'

/** A value before and after a write; one of the two is null for a new or a deleted record. */
type Pair<T> = [T | null, T | null]
type Flags = Record<string, Flag[]>

interface Changes {
  strNombrePerfil?: Pair<string>
  bitAdministrador?: Pair<boolean>
  strNombreModulo?: Pair<string>
  perfiles?: number
  strNombreUsuario?: Pair<string>
  idPerfil?: Pair<number>
  idEstadoUsuario?: Pair<boolean>
  changed?: string[]
}
type PermisosChanges = { idPerfil: number; granted: Flags; revoked: Flags }[]

/** A log line with level 35, the level of the audit. */
interface Line {
  time: number
  msg: string
  who?: { id?: number; nombre: string } | null
  route?: string
  target: number | null
  outcome?: string
  reason?: string
  changes?: Changes | PermisosChanges
}

interface Perfil {
  nombre: string
  isAdministrador: boolean
  /** The flags that the profile has, sorted, by the id of the module. */
  permisos: Record<number, Flag[]>
}
interface Usuario {
  nombre: string
  idPerfil: number
  isActive: boolean
}
/** What is stored, by the ids of the records. A permission record without flags counts as none. */
interface Stored {
  modulos: Record<number, string>
  perfiles: Record<number, Perfil>
  usuarios: Record<number, Usuario>
}

const { sql, call, login, adminToken, readLog } = await testApp()

let state = SEED
/** Returns a pseudo-random whole number from 0 to `limit` - 1. Each run has the same numbers. */
function random(limit: number) {
  // These are the constants of a linear congruential generator of 32 bits.
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
  return Math.floor((state / 2 ** 32) * limit)
}
const pick = <T>(values: readonly T[]) => values[random(values.length)] as T

/** Reads what is stored. */
async function readStored(): Promise<Stored> {
  const modulos = await sql`select id, "strNombreModulo" from modulo`
  const perfiles = await sql`select id, "strNombrePerfil", "bitAdministrador" from perfil`
  const permisos = await sql`select * from permisos_perfil`
  const usuarios = await sql`
    select id, "strNombreUsuario", "idPerfil", "idEstadoUsuario" from usuario
  `
  const stored: Stored = { modulos: {}, perfiles: {}, usuarios: {} }
  for (const { id, strNombreModulo } of modulos) stored.modulos[id] = strNombreModulo
  for (const { id, strNombrePerfil, bitAdministrador } of perfiles) {
    stored.perfiles[id] = {
      nombre: strNombrePerfil,
      isAdministrador: bitAdministrador,
      permisos: {},
    }
  }
  for (const { idPerfil, idModulo, ...permiso } of permisos) {
    const flags = FLAGS.filter((flag) => permiso[flag])
    const perfil = stored.perfiles[idPerfil]
    if (perfil && flags.length > 0) perfil.permisos[idModulo] = flags.toSorted()
  }
  for (const { id, strNombreUsuario, idPerfil, idEstadoUsuario } of usuarios) {
    stored.usuarios[id] = { nombre: strNombreUsuario, idPerfil, isActive: idEstadoUsuario }
  }
  return stored
}

const readLines = (): Line[] =>
  readLog()
    .trim()
    .split('\n')
    .map((text) => JSON.parse(text))
    .filter(({ level }) => level === 35)

/** Whether a line has changes. A write that changes nothing has an empty list or object. */
function isChanged(changes: Line['changes']): changes is Changes | PermisosChanges {
  return changes !== undefined && Object.keys(changes).length > 0
}

/** Returns what is stored after the writes in `lines`, as far as the lines tell. */
function replay(lines: Line[]): Stored {
  const stored: Stored = { modulos: {}, perfiles: {}, usuarios: {} }
  for (const [index, nombre] of SYSTEM_MODULES.entries()) stored.modulos[index + 1] = nombre
  for (const { target, changes } of lines) {
    if (Array.isArray(changes)) replayPermisos(stored, changes)
    else if (isChanged(changes)) replayRecord(stored, Number(target), changes)
  }
  return stored
}

function replayRecord(stored: Stored, id: number, changes: Changes) {
  if (changes.strNombreModulo) replayModulo(stored, id, changes.strNombreModulo)
  else if (changes.strNombrePerfil || changes.bitAdministrador) replayPerfil(stored, id, changes)
  else replayUsuario(stored, id, changes)
}

function replayModulo({ modulos, perfiles }: Stored, id: number, [before, after]: Pair<string>) {
  expect(modulos[id] ?? null).toBe(before)
  if (after !== null) {
    modulos[id] = after
    return
  }
  delete modulos[id]
  for (const { permisos } of Object.values(perfiles)) delete permisos[id]
}

function replayPerfil({ modulos, perfiles }: Stored, id: number, changes: Changes) {
  const { strNombrePerfil: nombre, bitAdministrador: administrador } = changes
  const perfil = perfiles[id] ?? { nombre: '', isAdministrador: false, permisos: {} }
  perfiles[id] = perfil
  if (nombre?.[1] === null) {
    delete perfiles[id]
    return
  }
  if (nombre) perfil.nombre = nombre[1]
  if (!administrador) return

  perfil.isAdministrador = administrador[1] === true
  const granted = perfil.isAdministrador ? Object.keys(modulos) : []
  perfil.permisos = Object.fromEntries(granted.map((idModulo) => [idModulo, FLAGS.toSorted()]))
}

function replayPermisos({ modulos, perfiles }: Stored, changes: PermisosChanges) {
  for (const { idPerfil, granted, revoked } of changes) {
    const permisos = perfiles[idPerfil]?.permisos ?? {}
    for (const [id, nombre] of Object.entries(modulos)) {
      const before = permisos[Number(id)] ?? []
      const lost = revoked[nombre] ?? []
      const kept = before.filter((flag) => !lost.includes(flag))
      const flags = [...kept, ...(granted[nombre] ?? [])].toSorted()
      permisos[Number(id)] = flags
      if (flags.length === 0) delete permisos[Number(id)]
    }
  }
}

function replayUsuario({ usuarios }: Stored, id: number, changes: Changes) {
  const { strNombreUsuario: nombre, idPerfil, idEstadoUsuario: estado } = changes
  const usuario = usuarios[id] ?? { nombre: '', idPerfil: 0, isActive: false }
  usuarios[id] = usuario
  if (nombre?.[1] === null) {
    delete usuarios[id]
    return
  }
  if (nombre) usuario.nombre = nombre[1] as string
  if (idPerfil) usuario.idPerfil = idPerfil[1] as number
  if (estado) usuario.isActive = estado[1] === true
}

let turn = 0
/** Returns a name that nothing else has. */
const newName = (prefix: string) => {
  turn += 1
  return `${prefix} ${turn}`
}
/** Returns five flags, each of which is set in half of the cases. */
const someFlags = () => Object.fromEntries(FLAGS.map((flag) => [flag, random(2) === 1]))

type Write = ['POST' | 'PUT' | 'DELETE', string, object?]
type Ids = { perfil: number; modulo: number; usuario: number; permiso: number }

/**
 * For each kind of write, a function that returns such a write. `some` has one id each of a
 * profile, a module, a user and a permission record. Sometimes no record has that id.
 */
const KINDS: ((some: Ids) => Write)[] = [
  ({ perfil, modulo }) => [
    'POST',
    'permisos',
    { idPerfil: perfil, idModulo: modulo, ...someFlags() },
  ],
  // The record stays where it is, or moves to another profile or module.
  ({ permiso, perfil, modulo }) => [
    'PUT',
    `permisos/${permiso}`,
    { idPerfil: perfil, idModulo: modulo, ...someFlags() },
  ],
  ({ permiso }) => ['DELETE', `permisos/${permiso}`],
  ({ perfil, modulo }) => {
    const modulos = new Set([modulo, 1 + random(4)])
    const permisos = [...modulos].map((idModulo) => ({ idModulo, ...someFlags() }))
    return ['POST', 'permisos/guardar-matriz', { idPerfil: perfil, permisos }]
  },
  () => [
    'POST',
    'perfil',
    { strNombrePerfil: newName('Perfil'), bitAdministrador: random(4) === 0 },
  ],
  ({ perfil }) => [
    'PUT',
    `perfil/${perfil}`,
    { strNombrePerfil: newName('Perfil'), bitAdministrador: random(3) === 0 },
  ],
  ({ perfil }) => ['DELETE', `perfil/${perfil}`],
  () => ['POST', 'modulo', { strNombreModulo: newName('MODULO') }],
  ({ modulo }) => ['PUT', `modulo/${modulo}`, { strNombreModulo: newName('MODULO') }],
  // Often another module has the name already. Then the write is refused.
  ({ modulo }) => ['PUT', `modulo/${modulo}`, { strNombreModulo: 'EL MISMO' }],
  ({ modulo }) => ['DELETE', `modulo/${modulo}`],
  ({ perfil }) => ['POST', 'usuario', nuevo(newName('usuario'), perfil)],
  ({ usuario: id, perfil }) => ['PUT', `usuario/${id}`, nuevo(newName('usuario'), perfil)],
  ({ usuario: id }) => ['DELETE', `usuario/${id}`],
]

/** Returns the body of a new or changed user. */
const nuevo = (nombre: string, idPerfil: number) =>
  usuario(nombre, {
    idPerfil,
    strCorreo: `correo-${turn}@secreto.example`,
    strNumeroCelular: `55 4433 ${turn}`,
    strPwd: `clave ${turn} secreta`,
    idEstadoUsuario: random(2) === 1,
    ...(random(3) === 0 && { imagenBase64: PNG }),
  })

/**
 * Returns the id of one record of each kind, sometimes an unknown one. The two administrators and their
 * profile are never chosen, so that the two can continue to write.
 */
async function someIds(): Promise<Ids> {
  const [rows] = await sql`
    select array(select id from perfil where id > 1 order by id) as perfil,
      array(select id from modulo order by id) as modulo,
      array(select id from usuario where id > 2 order by id) as usuario,
      array(select id from permisos_perfil where "idPerfil" > 1 order by id) as permiso
  `
  const one = (ids: number[]) => (random(12) === 0 ? 99_999 : (pick(ids) ?? 99_999))
  return {
    perfil: one(rows?.perfil),
    modulo: one(rows?.modulo),
    usuario: one(rows?.usuario),
    permiso: one(rows?.permiso),
  }
}

/** For each write: what was stored after it, and how many lines the audit had then. */
const snapshots: { length: number; stored: Stored }[] = []

beforeAll(async () => {
  await call('POST', '/api/usuario', usuario('bruna', { strPwd: PASSWORD }))
  const bruna = await login('bruna', PASSWORD)
  for (let index = 0; index < WRITES; index += 1) {
    const [method, path, body] = pick(KINDS)(await someIds())
    await call(method, `/api/${path}`, body, { token: pick([adminToken, bruna]) })
    snapshots.push({ length: readLines().length, stored: await readStored() })
  }
}, 120_000)

it('the writes that were carried out are of every kind, and some others were refused', () => {
  const done = readLines().filter(({ outcome, changes }) => {
    return outcome === 'done' && isChanged(changes)
  })
  const kinds = new Set(done.map(({ route, method }: any) => `${method} ${route}`))
  // KINDS has two functions for PUT /api/modulo/:id.
  expect(kinds.size).toBe(KINDS.length - 1)
  const outcomes = new Set(readLines().map(({ outcome }) => outcome))
  for (const outcome of ['conflict', 'invalid', 'notFound']) expect(outcomes).toContain(outcome)
})

it('the lines of the audit alone give what is stored, at the end and after each write', () => {
  const lines = readLines()
  for (const { length, stored } of snapshots) {
    expect(replay(lines.slice(0, length))).toEqual(stored)
  }
})

it('the line of a module’s deletion counts at least the profiles that had flags on the module', () => {
  const lines = readLines()
  const deletions = lines.filter(({ changes }) => {
    return changes && 'perfiles' in changes
  })
  expect(deletions.length).toBeGreaterThan(3)
  for (const deletion of deletions) {
    const { perfiles } = replay(lines.slice(0, lines.indexOf(deletion)))
    const holders = Object.values(perfiles).filter(
      ({ permisos }) => permisos[Number(deletion.target)],
    )
    expect((deletion.changes as Changes).perfiles).toBeGreaterThanOrEqual(holders.length)
  }
})

it('no line of the log has an email, a phone number, an image or a password', () => {
  const secrets = [
    /secreto\.example/,
    /55 4433/,
    /clave \d+ secreta/,
    /\$2[ab]\$/,
    /base64/,
    /\/imagen/,
  ]
  for (const secret of [...secrets, ADMIN.strPwd, ADMIN.strCorreo, PASSWORD]) {
    expect(readLog()).not.toMatch(secret)
  }
})
