import { expect, it } from 'vitest'
import type { Caller } from '../src/access/caller.js'
import { beginSesion, endSesiones, updatePassword } from '../src/auth/queries.js'
import type { Credenciales } from '../src/auth/schemas.js'
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
import { type Step, sendDuring } from './hold.js'
import { TABLES } from './tables.js'

// The pool has one connection, so that this connection has carried out each write, and kept its
// plans, before the first column is added.
const { pool, sql } = await testApp({ DATABASE_POOL_MAX: '1' })
const caller = { id: 1, ver: 0, enforced: false } as Caller

let perfil: number
let modulo: number
let permiso: number
let persona: Credenciales

/** The writes, by name. Each of them uses the rows that those before it have left. */
const WRITES: Record<string, () => Promise<unknown>> = {
  insertPerfil: async () => {
    const nuevo = { strNombrePerfil: 'nuevo', bitAdministrador: false }
    perfil = (await insertPerfil(pool, nuevo, caller)).data.id
  },
  updatePerfil: async () => {
    const elevado = { strNombrePerfil: 'elevado', bitAdministrador: true }
    await updatePerfil(pool, perfil, elevado, caller)
  },
  insertModulo: async () => {
    modulo = (await insertModulo(pool, { strNombreModulo: 'NUEVO' }, caller)).data.id
  },
  updateModulo: () => updateModulo(pool, modulo, { strNombreModulo: 'OTRO' }, caller),
  insertPermiso: async () => {
    const nuevo = { idPerfil: perfil, idModulo: modulo }
    permiso = (await insertPermiso(pool, nuevo, caller)).data.id
  },
  updatePermiso: async () => {
    const editado = { idPerfil: perfil, idModulo: modulo, bitEditar: true }
    await updatePermiso(pool, permiso, editado, caller)
  },
  deletePermiso: () => deletePermiso(pool, permiso, caller),
  replacePermisos: () => replacePermisos(pool, perfil, [{ idModulo: modulo }], null, caller),
  checkUsuarioWrite: () => checkUsuarioWrite(pool, null, perfil, caller),
  insertUsuario: async () => {
    persona = (await insertUsuario(pool, usuario('nuevo', { idPerfil: perfil }), caller)).data
  },
  beginSesion: async () => {
    expect(await beginSesion(pool, persona, caller)).toMatchObject({ id: persona.id, ver: 0 })
  },
  updateUsuario: () => updateUsuario(pool, persona.id, usuario('otro', { idPerfil: 1 }), caller),
  endSesiones: () => endSesiones(pool, { ...caller, id: persona.id }),
  updatePassword: () => updatePassword(pool, 'hash', { ...caller, id: persona.id, ver: 1 }),
  deleteUsuario: () => deleteUsuario(pool, persona.id, caller),
  deleteModulo: () => deleteModulo(pool, modulo, caller),
  deletePerfil: () => deletePerfil(pool, perfil, caller),
}

/** The writes after which the audit has a whole record of a table. */
const RECORDED: Record<string, string> = {
  insertPerfil: 'perfil',
  insertModulo: 'modulo',
  insertPermiso: 'permisos_perfil',
  updatePermiso: 'permisos_perfil',
  deletePermiso: 'permisos_perfil',
  replacePermisos: 'permisos_perfil',
  insertUsuario: 'usuario',
  deleteUsuario: 'usuario',
  deleteModulo: 'modulo',
  deletePerfil: 'perfil',
}

for (const write of Object.values(WRITES)) await write()

it('carries out every write that is in flight while a column is added to each table', async () => {
  for (const [name, write] of Object.entries(WRITES)) {
    const addColumns: Step = async (tx) => {
      const column = tx(`nueva_${name}`)
      for (const table of TABLES) await tx`alter table ${tx(table)} add column ${column} text`
    }
    await sendDuring(sql, addColumns, write).catch((cause) => {
      throw new Error(name, { cause })
    })
  }
})

// One table gets a column at a time: a column of `modulo` would also renew the plans that must
// notice a column of `permisos_perfil`.
it.each(TABLES)(
  'records a new column of %s on a connection that has written before',
  async (table) => {
    const column = `otra_${table}`
    await sql`alter table ${sql(table)} add column ${sql(column)} text`
    for (const [name, write] of Object.entries(WRITES)) {
      const [last] = await sql`select max(id) as id from auditoria`
      await write()
      if (RECORDED[name] !== table) continue
      const rows = await sql`select antes, despues from auditoria where id > ${last?.id}`
      expect(JSON.stringify(rows), name).toContain(column)
    }
  },
)
