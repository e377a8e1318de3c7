import { expect, it } from 'vitest'
import type { Caller } from '../src/access/caller.js'
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
import { usuario } from './endpoints.js'
import { countWaiting } from './hold.js'

const TABLES = ['perfil', 'modulo', 'permisos_perfil', 'usuario']

// The pool has one connection, so that this connection has carried out each write, and kept its
// plans, before the first column is added.
const { pool, sql } = await testApp({ DATABASE_POOL_MAX: '1' })
const caller = { id: 1, ver: 0, enforced: false } as Caller

let turn = 0

/**
 * Inserts the rows for one write of each kind. Returns the functions that send the writes, by name.
 */
async function makeWrites(): Promise<Record<string, () => Promise<unknown>>> {
  turn += 1
  const round = turn
  const perfil = (nombre: string, bitAdministrador = false) => ({
    strNombrePerfil: `${nombre} ${round}`,
    bitAdministrador,
  })
  const { id } = (await insertPerfil(pool, perfil('base'), caller)).data
  const persona = (nombre: string) => usuario(`${nombre}${round}`, { idPerfil: id })
  const { data: borrado } = await insertPerfil(pool, perfil('borrado'), caller)
  const { data: elevado } = await insertPerfil(pool, perfil('elevado'), caller)
  const { data: matriz } = await insertPerfil(pool, perfil('matriz'), caller)
  const { data: renombrado } = await insertModulo(pool, `RENOMBRADO ${round}`, caller)
  const { data: sobrante } = await insertModulo(pool, `SOBRANTE ${round}`, caller)
  const { data: cambiado } = await insertPermiso(pool, { idPerfil: id, idModulo: 1 }, caller)
  const { data: quitado } = await insertPermiso(pool, { idPerfil: id, idModulo: 2 }, caller)
  const { data: editado } = await insertUsuario(pool, persona('editado'), caller)
  const { data: despedido } = await insertUsuario(pool, persona('despedido'), caller)
  const { data: saliente } = await insertUsuario(pool, persona('saliente'), caller)

  return {
    insertPerfil: () => insertPerfil(pool, perfil('nuevo', true), caller),
    updatePerfil: () => updatePerfil(pool, elevado.id, perfil('elevado', true), caller),
    deletePerfil: () => deletePerfil(pool, borrado.id, caller),
    insertModulo: () => insertModulo(pool, `NUEVO ${round}`, caller),
    updateModulo: () => updateModulo(pool, renombrado.id, `OTRO ${round}`, caller),
    deleteModulo: () => deleteModulo(pool, sobrante.id, caller),
    insertPermiso: () => insertPermiso(pool, { idPerfil: id, idModulo: 3 }, caller),
    updatePermiso: () => updatePermiso(pool, cambiado.id, { idPerfil: id, idModulo: 4 }, caller),
    deletePermiso: () => deletePermiso(pool, quitado.id, caller),
    replacePermisos: () => replacePermisos(pool, matriz.id, [{ idModulo: 1 }], null, caller),
    checkUsuarioWrite: () => checkUsuarioWrite(pool, null, id, caller),
    insertUsuario: () => insertUsuario(pool, persona('nuevo'), caller),
    updateUsuario: () => updateUsuario(pool, editado.id, persona('editado'), caller),
    deleteUsuario: () => deleteUsuario(pool, despedido.id, caller),
    beginSesion: () => beginSesion(pool, saliente as never, caller),
    updatePassword: () => updatePassword(pool, 'hash', { ...caller, id: editado.id }),
    endSesiones: () => endSesiones(pool, { ...caller, id: saliente.id }),
  }
}

for (const write of Object.values(await makeWrites())) await write()

it('carries out every write that is in flight while a column is added to each table', async () => {
  for (const [name, write] of Object.entries(await makeWrites())) {
    let written: Promise<unknown> | undefined
    await sql.begin(async (tx) => {
      const column = tx(`nueva_${name}`)
      for (const table of TABLES) await tx`alter table ${tx(table)} add column ${column} text`
      written = write().catch((cause) => {
        throw new Error(name, { cause })
      })
      await expect.poll(() => countWaiting(sql), { interval: 5 }).toBe(1)
    })
    await written
  }
})

it.each([
  ['perfil', ['insertPerfil', 'deletePerfil']],
  ['modulo', ['insertModulo', 'deleteModulo']],
  ['permisos_perfil', ['insertPermiso', 'updatePermiso', 'deletePermiso', 'replacePermisos']],
  ['usuario', ['insertUsuario', 'deleteUsuario']],
])('records a new column of %s on a connection that has written before', async (table, names) => {
  const writes = await makeWrites()
  const column = `otra_${table}`
  await sql`alter table ${sql(table)} add column ${sql(column)} text`
  for (const name of names) {
    const [last] = await sql`select max(id) as id from auditoria`
    await writes[name]?.()
    const rows = await sql`select antes, despues from auditoria where id > ${last?.id}`
    expect(JSON.stringify(rows), name).toContain(column)
  }
})
