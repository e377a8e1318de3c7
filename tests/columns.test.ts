import { setTimeout as sleep } from 'node:timers/promises'
import postgres from 'postgres'
import { afterAll, expect, it } from 'vitest'
import type { Actor } from '../src/access/caller.js'
import { beginSesion, endSesiones, updatePassword } from '../src/auth/queries.js'
import { deleteModulo, insertModulo, updateModulo } from '../src/modulo/queries.js'
import { deletePerfil, insertPerfil, updatePerfil } from '../src/perfil/queries.js'
import {
  deletePermiso,
  insertPermiso,
  replacePermisos,
  updatePermiso,
} from '../src/permisos/queries.js'
import {
  checkUsuarioWrite,
  deleteUsuario,
  insertUsuario,
  updateUsuario,
} from '../src/usuario/queries.js'
import { testApp } from './app.js'
import { countWaiting } from './hold.js'

const TABLES = ['perfil', 'modulo', 'permisos_perfil', 'usuario']
/**
 * How often each write is carried out before the columns are added. From the sixth execution of a
 * statement on, a connection may use a generic plan.
 */
const ROUNDS = 8

// The pool has one connection, so that this connection has carried out each write ROUNDS times
// before the first column is added.
const { pool, config } = await testApp({ DATABASE_POOL_MAX: '1' })
const sql = postgres(config.DATABASE_URL.url, { max: 2, onnotice: () => {} })
afterAll(() => sql.end())

const [admin] = await sql<[{ id: number }]>`select id from usuario`
const actor = {
  id: admin.id,
  ver: 0,
  enforced: false,
  ip: '127.0.0.1',
  idPeticion: 'una prueba',
} as Actor

let turn = 0

/** Inserts the rows for one write of each kind. Returns the functions that send the writes, by name. */
async function makeWrites(): Promise<Record<string, () => Promise<unknown>>> {
  turn += 1
  const round = turn
  const perfil = (nombre: string, bitAdministrador = false) => ({
    strNombrePerfil: `${nombre} ${round}`,
    bitAdministrador,
  })
  const usuario = (nombre: string, idPerfil: number) => ({
    strNombreUsuario: `${nombre}${round}`,
    idPerfil,
    strPwd: 'hash',
    strCorreo: `${nombre}${round}@x.es`,
    idEstadoUsuario: true,
    imagen: undefined,
  })
  const { id } = await insertPerfil(pool, actor, perfil('base'))
  const borrado = await insertPerfil(pool, actor, perfil('borrado'))
  const elevado = await insertPerfil(pool, actor, perfil('elevado'))
  const matriz = await insertPerfil(pool, actor, perfil('matriz'))
  const renombrado = await insertModulo(pool, actor, `RENOMBRADO ${round}`)
  const sobrante = await insertModulo(pool, actor, `SOBRANTE ${round}`)
  const cambiado = await insertPermiso(pool, actor, { idPerfil: id, idModulo: 1 })
  const quitado = await insertPermiso(pool, actor, { idPerfil: id, idModulo: 2 })
  const editado = await insertUsuario(pool, actor, usuario('editado', id))
  const despedido = await insertUsuario(pool, actor, usuario('despedido', id))
  const saliente = await insertUsuario(pool, actor, usuario('saliente', id))

  return {
    insertPerfil: () => insertPerfil(pool, actor, perfil('nuevo', true)),
    updatePerfil: () => updatePerfil(pool, actor, elevado.id, perfil('elevado', true)),
    deletePerfil: () => deletePerfil(pool, actor, borrado.id),
    insertModulo: () => insertModulo(pool, actor, `NUEVO ${round}`),
    updateModulo: () => updateModulo(pool, actor, renombrado.id, `OTRO ${round}`),
    deleteModulo: () => deleteModulo(pool, actor, sobrante.id),
    insertPermiso: () => insertPermiso(pool, actor, { idPerfil: id, idModulo: 3 }),
    updatePermiso: () => updatePermiso(pool, actor, cambiado.id, { idPerfil: id, idModulo: 4 }),
    deletePermiso: () => deletePermiso(pool, actor, quitado.id),
    replacePermisos: () => replacePermisos(pool, actor, matriz.id, [{ idModulo: 1 }], null),
    checkUsuarioWrite: () => checkUsuarioWrite(pool, actor, null, id),
    insertUsuario: () => insertUsuario(pool, actor, usuario('nuevo', id)),
    updateUsuario: () => updateUsuario(pool, actor, editado.id, usuario('editado', id)),
    deleteUsuario: () => deleteUsuario(pool, actor, despedido.id),
    beginSesion: () => beginSesion(pool, { ...saliente, strPwd: 'hash' } as never, actor),
    updatePassword: () => updatePassword(pool, { ...actor, id: editado.id }, 'hash'),
    endSesiones: () => endSesiones(pool, { ...actor, id: saliente.id }),
  }
}

/** Returns `done` when a write succeeds, or else the message of its error. */
const outcome = (write: Promise<unknown>) =>
  write.then(
    () => 'done',
    (error: Error) => error.message,
  )

it('carries out every write that is in flight while a column is added to each table', async () => {
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const write of Object.values(await makeWrites())) await write()
  }

  for (const [name, write] of Object.entries(await makeWrites())) {
    let result: Promise<string> | undefined
    await sql.begin(async (tx) => {
      const column = tx(`nueva_${name}`)
      for (const table of TABLES) await tx`alter table ${tx(table)} add column ${column} text`
      result = outcome(write())
      while ((await countWaiting(sql)) === 0) await sleep(5)
    })
    expect({ name, result: await result }).toEqual({ name, result: 'done' })
  }
})
