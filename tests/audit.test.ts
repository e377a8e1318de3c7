import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import postgres from 'postgres'
import { describe, expect, inject, it } from 'vitest'
import { listAuditoria } from '../src/auditoria/queries.js'
import type { AuditoriaFiltro } from '../src/auditoria/schemas.js'
import { migrate } from '../src/database/migrations.js'
import type { Sql } from '../src/database/sql.js'
import type { AnswerWithHeaders } from './answers.js'
import { FORBIDDEN, statusCodeAnswer } from './answers.js'
import { ADMIN, testApp } from './app.js'
import { ALL, FLAGS, type Flag, usuario } from './endpoints.js'
import { countWaiting } from './hold.js'
import { databaseUrl } from './postgres.js'
import { countReads } from './reads.js'

type Row = Record<string, any>

const service = await testApp()
const { sql, call, login } = service

/** Returns the rows of the audit for the request that got this answer. */
const rowsOf = ({ headers }: AnswerWithHeaders): Promise<Row[]> => sql`
  select * from auditoria where "idPeticion" = ${String(headers['x-request-id'])} order by id
`

/** Sends a write as the administrator and expects that it succeeds. */
async function write(method: 'POST' | 'PUT' | 'DELETE', path: string, body?: object) {
  const answer = await call(method, `/api/${path}`, body)
  expect(answer).toMatchObject({ status: 200, body: { success: true } })
  return { answer, data: answer.body.data, rows: await rowsOf(answer) }
}

let turn = 0
const newName = (prefix: string) => {
  turn += 1
  return `${prefix}${turn}`
}
const addPerfil = async (bitAdministrador = false): Promise<number> =>
  (await write('POST', 'perfil', { strNombrePerfil: newName('Perfil '), bitAdministrador })).data.id
const addModulo = async (strNombreModulo = newName('VENTAS ')): Promise<number> =>
  (await write('POST', 'modulo', { strNombreModulo })).data.id
const addUsuario = async (idPerfil: number): Promise<number> =>
  (await write('POST', 'usuario', usuario(newName('usuario'), { idPerfil }))).data.id
const nameOf = async (table: 'perfil' | 'modulo', id: number) => {
  const [row] = await sql`select * from ${sql(table)} where id = ${id}`
  return row?.strNombrePerfil ?? row?.strNombreModulo
}
const flags = (...held: Flag[]) =>
  Object.fromEntries(FLAGS.map((flag) => [flag, held.includes(flag)]))

describe('the audit of a write', () => {
  it('says when, who, from where, what was done to which record, and what changed', async () => {
    const { rows, data, answer } = await write('POST', 'perfil', { strNombrePerfil: 'Ventas' })
    expect(rows).toEqual([
      {
        id: expect.any(String),
        fecha: expect.any(Date),
        idUsuario: 1,
        strNombreUsuario: ADMIN.strNombreUsuario,
        idPerfil: 1,
        strNombrePerfil: 'ADMINISTRADOR',
        ip: '127.0.0.1',
        idPeticion: answer.headers['x-request-id'],
        accion: 'insert',
        entidad: 'perfil',
        idEntidad: data.id,
        nombre: 'Ventas',
        antes: null,
        despues: { id: data.id, strNombrePerfil: 'Ventas', bitAdministrador: false },
      },
    ])
    expect(Math.abs(Date.now() - rows[0]?.fecha)).toBeLessThan(60_000)
  })

  it('has the fields of an update that differ, and the record of a deletion', async () => {
    const id = await addModulo('ANTES')
    const renamed = await write('PUT', `modulo/${id}`, { strNombreModulo: 'DESPUÉS' })
    expect(renamed.rows).toMatchObject([
      { accion: 'update', entidad: 'modulo', idEntidad: id, nombre: 'ANTES' },
    ])
    expect(renamed.rows[0]?.antes).toEqual({ strNombreModulo: 'ANTES' })
    expect(renamed.rows[0]?.despues).toEqual({ strNombreModulo: 'DESPUÉS' })
    const same = await write('PUT', `modulo/${id}`, { strNombreModulo: 'DESPUÉS' })
    expect(same.rows).toMatchObject([{ accion: 'update', antes: {}, despues: {} }])
    const deleted = await write('DELETE', `modulo/${id}`)
    expect(deleted.rows).toMatchObject([
      { accion: 'delete', antes: { id, strNombreModulo: 'DESPUÉS' }, despues: null },
    ])
  })

  it('has the name of a user’s profile, and neither hashes nor passwords', async () => {
    const [uno, otro] = [await addPerfil(), await addPerfil()]
    const [unNombre, otroNombre] = [await nameOf('perfil', uno), await nameOf('perfil', otro)]
    const ana = usuario('ana', { idPerfil: uno })
    const { data, rows } = await write('POST', 'usuario', ana)
    expect(rows[0]?.despues).toMatchObject({ strPwd: '***', nombrePerfil: unNombre })
    const path = `usuario/${data.id}`
    const moved = await write('PUT', path, { ...ana, idPerfil: otro, strPwd: undefined })
    expect(moved.rows).toMatchObject([{ accion: 'update', nombre: 'ana' }])
    expect(moved.rows[0]?.antes).toEqual({ idPerfil: uno, nombrePerfil: unNombre })
    expect(moved.rows[0]?.despues).toEqual({ idPerfil: otro, nombrePerfil: otroNombre })
    const secret = await write('PUT', path, { ...ana, idPerfil: otro, strPwd: 'otra clave' })
    expect(secret.rows).toMatchObject([{ accion: 'password', despues: { strPwd: '***' } }])
    const all = JSON.stringify(await sql`select * from auditoria`)
    for (const text of [ana.strPwd, 'otra clave', '$2b$']) expect(all).not.toContain(text)
  })

  it('has the records of a matrix that differ, once, with the names of their modules', async () => {
    const idPerfil = await addPerfil()
    const [a, b, c] = [await addModulo(), await addModulo(), await addModulo()]
    const save = (permisos: object[]) =>
      write('POST', 'permisos/guardar-matriz', { idPerfil, permisos })
    await save([
      { idModulo: a, ...ALL },
      { idModulo: b, bitEditar: true },
    ])
    const { rows } = await save([
      { idModulo: a, ...ALL },
      { idModulo: b, bitEliminar: true },
      { idModulo: c },
    ])
    const permiso = async (idModulo: number, ...held: Flag[]) => ({
      id: expect.any(Number),
      idPerfil,
      idModulo,
      nombreModulo: await nameOf('modulo', idModulo),
      ...flags(...held),
    })
    expect(rows).toMatchObject([
      {
        accion: 'update',
        entidad: 'permisos',
        idEntidad: idPerfil,
        nombre: await nameOf('perfil', idPerfil),
      },
    ])
    expect(rows[0]?.antes).toEqual({ permisos: [await permiso(b, 'bitEditar')] })
    expect(rows[0]?.despues).toEqual({
      permisos: [await permiso(b, 'bitEliminar'), await permiso(c)],
      ids: expect.any(Array),
    })
  })

  it('has the records that a deletion takes along, with the names from before the deletion', async () => {
    const [idPerfil, idModulo] = [await addPerfil(), await addModulo()]
    const [perfil, modulo] = [await nameOf('perfil', idPerfil), await nameOf('modulo', idModulo)]
    await write('POST', 'permisos', { idPerfil, idModulo, bitEditar: true })
    const { rows } = await write('DELETE', `modulo/${idModulo}`)
    expect(rows).toContainEqual(
      expect.objectContaining({ accion: 'delete', entidad: 'permisos', nombre: perfil }),
    )
    const permisos = rows.find(({ entidad }) => entidad === 'permisos')?.antes.permisos
    expect(permisos).toMatchObject([{ idModulo, nombreModulo: modulo, bitEditar: true }])
  })

  it('names the user of the database for a write by psql, and ADMIN_* for the setup', async () => {
    const [{ session_user: name }] = await sql<[Row]>`select session_user`
    await sql`update modulo set "strNombreModulo" = 'POR PSQL' where id = ${await addModulo()}`
    const [last] = await sql`select * from auditoria order by id desc limit 1`
    expect(last).toMatchObject({ idUsuario: null, strNombreUsuario: name, ip: null })
    const [setup] = await sql`select * from auditoria where entidad = 'usuario' order by id limit 1`
    expect(setup).toMatchObject({ strNombreUsuario: 'ADMIN_*', nombre: ADMIN.strNombreUsuario })
  })

  it('names a profile that is deleted by the statement that changes its records', async () => {
    const [from, to, added] = [await addPerfil(), await addPerfil(), await addPerfil()]
    const names = [await nameOf('perfil', from), await nameOf('perfil', added)]
    await write('POST', 'permisos', { idPerfil: from, idModulo: 1 })
    const [last] = await sql`select max(id) as id from auditoria`
    await sql`
      with movido as (update permisos_perfil set "idPerfil" = ${to} where "idPerfil" = ${from})
      delete from perfil where id = ${from}
    `
    await sql`
      with nuevo as (
        insert into permisos_perfil ("idPerfil", "idModulo") values (${added}, 1)
      )
      delete from perfil where id = ${added}
    `
    const rows = await sql`
      select distinct nombre
      from auditoria
      where id > ${last?.id} and entidad = 'permisos' and "idEntidad" <> ${to}
      order by nombre
    `
    expect(rows.map(({ nombre }) => nombre)).toEqual(names.toSorted())
  })

  it('names a module that is deleted with its records, and not the profile with the same id', async () => {
    const id = 1_000_000
    await sql`
      insert into modulo (id, "strNombreModulo") overriding system value values (${id}, 'EL MÓDULO')
    `
    await sql`
      insert into perfil (id, "strNombrePerfil") overriding system value values (${id}, 'El perfil')
    `
    await write('POST', 'permisos', { idPerfil: id, idModulo: id })
    await sql`delete from modulo where id = ${id}`
    const [row] = await sql`
      select antes from auditoria where entidad = 'permisos' order by id desc limit 1
    `
    expect(row?.antes.permisos).toMatchObject([{ idModulo: id, nombreModulo: 'EL MÓDULO' }])
  })

  it('names each record that a truncation removes', async () => {
    const { sql } = await testApp()
    await sql`truncate usuario, perfil, modulo, permisos_perfil`
    const rows = await sql`
      select entidad, nombre
      from auditoria
      where accion = 'delete'
      order by entidad desc, nombre
    `
    expect(rows.map(({ entidad, nombre }) => `${entidad} ${nombre}`)).toEqual([
      `usuario ${ADMIN.strNombreUsuario}`,
      'permisos ADMINISTRADOR',
      'perfil ADMINISTRADOR',
      'modulo MODULO',
      'modulo PERFIL',
      'modulo PERMISOS',
      'modulo USUARIO',
    ])
  })

  it('names the actions alike in a database with the locale of Turkish, where the lower case of I is not i', async () => {
    const name = `turca_${process.pid}`
    await sql.unsafe(`
      create database ${name}
        template template0 encoding 'UTF8' locale_provider icu icu_locale 'tr'
    `)
    const turkish = postgres(databaseUrl(inject('serverUrl'), name), {
      max: 1,
      onnotice: () => {},
    })
    await migrate(turkish)
    await turkish`insert into modulo ("strNombreModulo") values ('VENTAS')`
    const [last] = await turkish`select accion from auditoria order by id desc limit 1`
    expect(last).toEqual({ accion: 'insert' })
    await turkish.end()
    await sql.unsafe(`drop database ${name}`)
  })

  it('has a deletion and an insertion for a record that gets another id', async () => {
    const idPerfil = await addPerfil()
    await write('POST', 'permisos', { idPerfil, idModulo: 1 })
    await sql`update permisos_perfil set id = default where "idPerfil" = ${idPerfil}`
    const rows = await sql`
      select accion
      from auditoria
      where entidad = 'permisos' and "idEntidad" = ${idPerfil}
      order by id
    `
    expect(rows.map(({ accion }) => accion)).toEqual(['insert', 'delete', 'insert'])
  })

  it('has the rows of a statement in the order in which the profiles are locked, by ascending id', async () => {
    const [idModulo, first, second] = [await addModulo(), await addPerfil(), await addPerfil()]
    await sql`
      insert into permisos_perfil ("idPerfil", "idModulo")
      values (${second}, ${idModulo}), (${first}, ${idModulo})
    `
    const rows = await sql`select "idEntidad" from auditoria order by id desc limit 2`
    expect(rows.map(({ idEntidad }) => idEntidad)).toEqual([second, first])
  })

  it('has a row for a record that is added after a matrix in the same transaction', async () => {
    const idPerfil = await addPerfil()
    const [caller] = await sql<[Row]>`
      select jsonb_build_object('id', id, 'ver', "versionSesion", 'enforced', false) as actor
      from usuario
      where "strNombreUsuario" = ${ADMIN.strNombreUsuario}
    `
    await sql.begin(async (tx) => {
      await tx`select replace_permisos(${idPerfil}, '[]', null, ${tx.json(caller.actor)})`
      await tx`insert into permisos_perfil ("idPerfil", "idModulo") values (${idPerfil}, 1)`
    })
    const [last] = await sql`select * from auditoria order by id desc limit 1`
    expect(last).toMatchObject({ accion: 'insert', entidad: 'permisos', idEntidad: idPerfil })
  })

  it('looks up names by their keys, also after a statement has changed many records', async () => {
    const own = postgres(service.config.DATABASE_URL.url, { max: 1, onnotice: () => {} })
    const [idPerfil, idModulo] = [await addPerfil(), await addModulo()]
    const insert = (tx: postgres.Sql) =>
      tx`insert into permisos_perfil ("idPerfil", "idModulo") values (${idPerfil}, ${idModulo})`
    await own`
      insert into perfil ("strNombrePerfil") select 'Uno de muchos' from generate_series(1, 3000)
    `
    await own`
      insert into permisos_perfil ("idPerfil", "idModulo")
      select id, ${idModulo}
      from perfil
      where "strNombrePerfil" = 'Uno de muchos'
    `
    await own`delete from permisos_perfil where "idModulo" = ${idModulo}`
    expect(await countReads(own, 'perfil', insert)).toBeLessThan(100)
    await insert(own)
    const remove = (tx: postgres.Sql) =>
      tx`delete from permisos_perfil where "idPerfil" = ${idPerfil}`
    expect(await countReads(own, 'perfil', remove)).toBeLessThan(100)
    await own`delete from perfil where "strNombrePerfil" = 'Uno de muchos'`
    await own.end()
  })

  it('looks up the names of modules by their keys, also with a plan from a time of few modules', async () => {
    const own = postgres(service.config.DATABASE_URL.url, {
      max: 1,
      connection: { plan_cache_mode: 'force_generic_plan' },
    })
    const [idPerfil, idModulo] = [await addPerfil(), await addModulo()]
    const remove = (tx: postgres.Sql) =>
      tx`delete from permisos_perfil where "idPerfil" = ${idPerfil}`
    await own`analyze modulo`
    await own`insert into permisos_perfil ("idPerfil", "idModulo") values (${idPerfil}, ${idModulo})`
    await remove(own)
    await own`
      insert into modulo ("strNombreModulo")
      select 'UNO DE MUCHOS ' || n from generate_series(1, 500) as n
    `
    await own`
      insert into permisos_perfil ("idPerfil", "idModulo")
      select ${idPerfil}, id from modulo where "strNombreModulo" like 'UNO DE MUCHOS%'
    `
    expect(await countReads(own, 'modulo', remove)).toBeLessThan(1000)
    await own`delete from modulo where "strNombreModulo" like 'UNO DE MUCHOS%'`
    await own.end()
  })

  it('has an update of any column of a profile but those that triggers change', async () => {
    const columns = await sql`
      select attname
      from pg_attribute
      join pg_trigger on tgrelid = attrelid and tgname = 'audit_written'
      where attrelid = 'perfil'::regclass and attnum > 0 and attnum <> all(tgattr)
      order by attname
    `
    expect(columns.map(({ attname }) => attname)).toEqual(['numPermisos', 'versionPermisos'])
  })

  it('is not written to a temporary table that a role has put in the place of the audit', async () => {
    const role = sql(`intrusa_${process.pid}`)
    const nombre = newName('INTRUSA ')
    await sql`create role ${role}`
    try {
      await sql.begin(async (tx) => {
        await tx`grant insert on modulo to ${role}`
        await tx`set local role ${role}`
        await tx`
          create temporary table auditoria (
            "idUsuario" integer,
            "strNombreUsuario" text,
            "idPerfil" integer,
            "strNombrePerfil" text,
            ip text,
            "idPeticion" text,
            accion text,
            entidad text,
            "idEntidad" integer,
            nombre text,
            antes jsonb,
            despues jsonb
          ) on commit drop
        `
        await tx`grant all on pg_temp.auditoria to public`
        await tx`insert into modulo ("strNombreModulo") values (${nombre})`
      })
    } finally {
      await sql`drop owned by ${role}`
      await sql`drop role ${role}`
    }
    const rows = await sql`select accion from auditoria where nombre = ${nombre}`
    expect(rows).toEqual([{ accion: 'insert' }])
  })

  it.each([
    'trigger_audit_record',
    'trigger_audit_permisos',
    'trigger_audit_updated_permiso',
    'trigger_delete_permisos',
  ])('lets no role make %s a trigger of a table of its own', async (name) => {
    const role = sql(`falsaria_${process.pid}`)
    await sql`create role ${role}`
    const forgery = sql.begin(async (tx) => {
      await tx`set local role ${role}`
      await tx`create temporary table perfil (id integer, "strNombrePerfil" text) on commit drop`
      await tx`
        create trigger falso after insert on pg_temp.perfil
          for each row execute function ${sql(name)}()
      `
    })
    await expect(forgery).rejects.toMatchObject({ code: '42501' })
    await sql`drop role ${role}`
  })

  it('is written for a role that may change permission records and may not write the audit', async () => {
    const { sql } = await testApp()
    const role = sql(`limitada_${process.pid}`)
    await sql.begin(async (tx) => {
      await tx`create role ${role}`
      await tx`grant select, insert, update, truncate on permisos_perfil to ${role}`
      await tx`grant update on perfil to ${role}`
      await tx`insert into perfil ("strNombrePerfil") values ('Ventas')`
      await tx`set local role ${role}`
      await tx`insert into permisos_perfil ("idPerfil", "idModulo") values (2, 1)`
      await tx`update permisos_perfil set "bitEditar" = true where "idPerfil" = 2`
      await tx`truncate permisos_perfil`
      await tx`reset role`
      await tx`drop owned by ${role}`
      await tx`drop role ${role}`
    })
    const rows = await sql`
      select accion from auditoria where entidad = 'permisos' and "idEntidad" = 2 order by id
    `
    expect(rows.map(({ accion }) => accion)).toEqual(['insert', 'update', 'delete'])
  })

  it('has only functions that look into the temporary tables last, if they have the rights of their owner', async () => {
    const functions = await sql`
      select proname
      from pg_proc
      where prosecdef and array_to_string(proconfig, ' ') like 'search_path=%, pg_temp' is not true
    `
    expect(functions).toEqual([])
  })

  it('has no function that declares types and that everybody may execute', async () => {
    const file = new URL('../sql/migrations/0008_auditoria.sql', import.meta.url)
    const created = (await readFile(file, 'utf8')).matchAll(/^create function (\w+)/gm)
    const names = [...created].map(([, name]) => name as string)
    const open = await sql`
      select proname
      from pg_proc
      where proname = any(${names})
        and prosrc ~ '^\\s*declare'
        and has_function_privilege('public', oid, 'execute')
    `
    expect(open).toEqual([])
  })

  it('names the profile that the user has got while the login waited', async () => {
    const nombre = newName('movido')
    await write('POST', 'usuario', usuario(nombre, { idPerfil: await addPerfil() }))
    let session: Promise<unknown> | undefined
    await sql.begin(async (tx) => {
      await tx`select from usuario where "strNombreUsuario" = ${nombre} for update`
      session = login(nombre, 'una clave')
      await expect.poll(() => countWaiting(sql)).toBe(1)
      await tx`insert into perfil ("strNombrePerfil") values ('Recién creado')`
      await tx`
        update usuario
        set "idPerfil" = (select id from perfil where "strNombrePerfil" = 'Recién creado')
        where "strNombreUsuario" = ${nombre}
      `
    })
    await session
    const [row] = await sql`select * from auditoria where accion = 'login' order by id desc limit 1`
    expect(row).toMatchObject({ nombre, strNombrePerfil: 'Recién creado' })
  })

  it('has a row for each login and logout that succeeds', async () => {
    await addUsuario(1)
    const nombre = `usuario${turn}`
    const token = await login(nombre, 'una clave')
    await call('POST', '/api/auth/logout', undefined, { token })
    const rows = await sql`select * from auditoria order by id desc limit 2`
    expect(rows).toMatchObject([
      { accion: 'logout', strNombreUsuario: nombre, nombre },
      { accion: 'login', strNombreUsuario: nombre, ip: '127.0.0.1', antes: null, despues: null },
    ])
  })

  it('has no row for a write that is refused or fails', async () => {
    const count = async () => (await sql`select from auditoria`).length
    const before = await count()
    await call('PUT', '/api/perfil/999', { strNombrePerfil: 'x', bitAdministrador: true })
    await call('POST', '/api/modulo', { strNombreModulo: 'USUARIO' })
    await call('DELETE', '/api/perfil/1')
    await call('DELETE', '/api/modulo/999')
    await call('DELETE', '/api/modulo/2', undefined, { token: null })
    await call('POST', '/api/auth/login', { ...ADMIN, strPwd: 'x', captchaToken: 'humano' })
    expect(await count()).toBe(before)
  })
})

describe('nobody rewrites the audit:', () => {
  it.each([
    `update auditoria set "strNombreUsuario" = 'otro'`,
    'delete from auditoria',
    'truncate auditoria',
  ])('%s is refused', async (statement) => {
    await expect(sql.unsafe(statement)).rejects.toMatchObject({ code: '42501' })
  })

  it('delete_auditoria removes the rows from before a moment, and adds one', async () => {
    const other = await testApp()
    const [{ now }] = await other.sql<[Row]>`select now()`
    await other.call('POST', '/api/modulo', { strNombreModulo: 'DESPUÉS' })
    const removed = await other.sql`select fecha from auditoria where fecha < ${now}`
    const [{ n }] = await other.sql<[Row]>`select delete_auditoria(${now}) as n`
    expect(Number(n)).toBe(removed.length)
    const rows = await other.sql`select * from auditoria order by id`
    expect(rows).toMatchObject([
      { accion: 'insert', nombre: 'DESPUÉS' },
      { accion: 'delete', entidad: 'auditoria', despues: { rows: removed.length } },
    ])
  })

  it('an update is refused, also where rows may be removed', async () => {
    const transaction = sql.begin(async (tx) => {
      await tx`set local llavero.retencion = 'true'`
      await tx`update auditoria set "strNombreUsuario" = 'otro'`
    })
    await expect(transaction).rejects.toMatchObject({ code: '42501' })
  })

  it('delete_auditoria lets nothing else of its transaction remove rows', async () => {
    const transaction = sql.begin(async (tx) => {
      await tx`select delete_auditoria('2000-01-01')`
      await tx`delete from auditoria`
    })
    await expect(transaction).rejects.toMatchObject({ code: '42501' })
  })

  it('a deletion names the profile and the module, although delete_auditoria has removed the rows of their names', async () => {
    const { call, sql } = await testApp()
    const { body: modulo } = await call('POST', '/api/modulo', { strNombreModulo: 'ANTIGUO' })
    const perfil = { strNombrePerfil: 'Antigua', bitAdministrador: true }
    const { body } = await call('POST', '/api/perfil', perfil)
    await sql`select delete_auditoria(clock_timestamp())`
    await call('DELETE', `/api/modulo/${modulo.data.id}`)
    await call('DELETE', `/api/perfil/${body.data.id}`)
    const rows = await sql`
      select entidad, nombre, antes #>> '{permisos,0,nombreModulo}' as modulo
      from auditoria
      where accion = 'delete' and entidad <> 'auditoria'
      order by id
    `
    expect(rows).toEqual([
      { entidad: 'permisos', nombre: 'Antigua', modulo: 'ANTIGUO' },
      { entidad: 'modulo', nombre: 'ANTIGUO', modulo: null },
      { entidad: 'permisos', nombre: 'Antigua', modulo: 'USUARIO' },
      { entidad: 'perfil', nombre: 'Antigua', modulo: null },
    ])
  })

  it('a statement that deletes the records of a renamed profile or module before it names the new name', async () => {
    const { call, sql } = await testApp()
    const perfil = { strNombrePerfil: 'Antes', bitAdministrador: false }
    const { body: added } = await call('POST', '/api/perfil', perfil)
    const { body: modulo } = await call('POST', '/api/modulo', { strNombreModulo: 'ANTES' })
    const [idPerfil, idModulo] = [added.data.id, modulo.data.id]
    await call('POST', '/api/permisos', { idPerfil, idModulo })
    await call('PUT', `/api/perfil/${idPerfil}`, { ...perfil, strNombrePerfil: 'Después' })
    await call('PUT', `/api/modulo/${idModulo}`, { strNombreModulo: 'DESPUÉS' })
    await sql`
      with permisos as (
        delete from permisos_perfil where "idPerfil" = ${idPerfil} returning "idPerfil", "idModulo"
      ), modulos as (
        delete from modulo where id in (select "idModulo" from permisos)
      )
      delete from perfil where id in (select "idPerfil" from permisos)
    `
    const rows = await sql`
      select nombre, antes #>> '{permisos,0,nombreModulo}' as modulo
      from auditoria
      where accion = 'delete' and entidad = 'permisos'
    `
    expect(rows).toEqual([{ nombre: 'Después', modulo: 'DESPUÉS' }])
  })
})

describe('a refused request', () => {
  /** Returns the line of the log for the request that got this answer. */
  function lineOf({ headers }: AnswerWithHeaders): Row {
    const lines = service.readLines().filter(({ reqId }) => reqId === headers['x-request-id'])
    expect(lines).toHaveLength(1)
    return lines[0] as Row
  }

  it('has a line of the audit that says who was refused what, and what was lacking', async () => {
    const idPerfil = await addPerfil()
    const id = await addUsuario(idPerfil)
    const nombre = `usuario${turn}`
    const token = await login(nombre, 'una clave')
    const answer = await call('PUT', '/api/modulo/2', { strNombreModulo: 'X' }, { token })
    expect(answer).toMatchObject(FORBIDDEN)
    expect(answer.headers['x-needs']).toBe('MODULO:bitEditar')
    expect(lineOf(answer)).toMatchObject({
      level: 35,
      msg: 'refused',
      who: { id, nombre, idPerfil, perfil: await nameOf('perfil', idPerfil) },
      ip: '127.0.0.1',
      method: 'PUT',
      route: '/api/modulo/:id',
      target: 2,
      needs: { modulo: 'MODULO', accion: 'bitEditar' },
      status: 403,
    })
  })

  it('names the first flag of a matrix that the caller does not hold, and the profile asked for', async () => {
    const idPerfil = await addPerfil()
    const [jefe, otro] = [await addPerfil(), await addPerfil()]
    const held = ['bitAgregar', 'bitEditar', 'bitConsulta', 'bitDetalle'] as const
    const own = [
      { idModulo: 1, ...flags(...held) },
      { idModulo: 4, ...ALL },
    ]
    await write('POST', 'permisos/guardar-matriz', { idPerfil, permisos: own })
    const more = [{ idModulo: await addModulo('CAMPAÑAS'), bitConsulta: true }]
    await write('POST', 'permisos/guardar-matriz', { idPerfil: jefe, permisos: more })
    await addUsuario(idPerfil)
    const token = await login(`usuario${turn}`, 'una clave')
    const ask = async (method: 'GET' | 'POST' | 'PUT', path: string, body?: object) => {
      const answer = await call(method, `/api/${path}`, body, { token })
      expect(answer).toMatchObject(FORBIDDEN)
      const { needs, target } = lineOf(answer)
      return { header: answer.headers['x-needs'], needs, target }
    }

    const permisos = [{ idModulo: 1, ...ALL }]
    expect(await ask('POST', 'permisos/guardar-matriz', { idPerfil: otro, permisos })).toEqual({
      header: 'USUARIO:bitEliminar',
      needs: { modulo: 'USUARIO', accion: 'bitEliminar' },
      target: otro,
    })
    expect(await ask('POST', 'usuario', usuario('x', { idPerfil: jefe }))).toEqual({
      header: 'CAMPA%C3%91AS:bitConsulta',
      needs: { modulo: 'CAMPAÑAS', accion: 'bitConsulta', perfil: jefe },
      target: jefe,
    })
    const unknown = [{ idModulo: 1_000_001, bitConsulta: true }]
    expect(
      await ask('POST', 'permisos/guardar-matriz', { idPerfil: otro, permisos: unknown }),
    ).toEqual({ header: 'administrador', needs: { administrador: true }, target: otro })
    const stronger = { administrador: true, perfil: 1 }
    expect(await ask('PUT', 'usuario/1', usuario('x', { idPerfil: otro }))).toMatchObject({
      header: 'administrador',
      needs: stronger,
    })
    expect(await ask('GET', 'usuario/1')).toMatchObject({ needs: stronger, target: 1 })
    expect(await ask('GET', 'auditoria')).toEqual({
      header: 'administrador',
      needs: { administrador: true },
      target: null,
    })
  })

  it('has the caller and the reason for a wrong password, if a user has the name', async () => {
    const attempt = (body: object) => call('POST', '/api/auth/login', body, { token: null })
    const good = { ...ADMIN, captchaToken: 'humano' }
    const who = { id: 1, nombre: ADMIN.strNombreUsuario }
    const wrong = await attempt({ ...good, strPwd: 'mala' })
    expect(lineOf(wrong)).toMatchObject({ level: 35, msg: 'refused', reason: 'password', who })
    await write('POST', 'usuario', usuario('baja', { idEstadoUsuario: false }))
    const inactive = await attempt({ ...good, strNombreUsuario: 'baja' })
    expect(lineOf(inactive)).toMatchObject({
      reason: 'inactive',
      who: { nombre: 'baja' },
      route: '/api/auth/login',
    })

    const others = [
      await attempt({ ...good, strNombreUsuario: 'mi clave secreta' }),
      await attempt({ ...good, captchaToken: 'rechazar' }),
      await call('DELETE', '/api/modulo/2', undefined, { token: null }),
    ]
    for (const answer of others) {
      const line = lineOf(answer)
      expect(line).toMatchObject({ level: 30, msg: 'request' })
      expect(JSON.stringify(line)).not.toMatch(/secreta|who/)
    }
  })
})

describe('GET /api/auditoria', () => {
  const ask = async (query: string) => (await call('GET', `/api/auditoria?${query}`)).body

  it('returns the newest rows first, in pages of 50', async () => {
    await sql`insert into modulo ("strNombreModulo") select 'M' || n from generate_series(1, 120) n`
    const all = await sql`select id::int from auditoria order by fecha desc, id desc`
    const found: number[] = []
    let antes: number | null = null
    do {
      const page = await ask(antes === null ? '' : `antes=${antes}`)
      expect(page.data.length).toBeLessThanOrEqual(50)
      found.push(...page.data.map(({ id }: Row) => id))
      antes = page.siguiente
    } while (antes !== null)
    expect(found).toEqual(all.map(({ id }) => id))
    const [first] = (await ask('')).data
    expect(first.fecha).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  })

  it('ends a page early if its rows are large', async () => {
    const large = sql.json({ permisos: 'x'.repeat(3 * 1024 * 1024) })
    for (const idEntidad of [1, 2, 3]) {
      await sql`
        insert into auditoria ("strNombreUsuario", accion, entidad, "idEntidad", despues)
        values ('x', 'update', 'auditoria', ${idEntidad}, ${large})
      `
    }
    const pages: number[][] = []
    let antes = ''
    do {
      const { data, siguiente } = await ask(`entidad=auditoria${antes}`)
      pages.push(data.map(({ idEntidad }: Row) => idEntidad))
      antes = siguiente ? `&antes=${siguiente}` : ''
    } while (antes)
    expect(pages).toEqual([[3, 2], [1]])
  })

  it('filters by who did it, by the record, and by time', async () => {
    const id = await addModulo()
    // The filter counts in milliseconds, so the row above must be older than one.
    await sleep(2)
    const between = new Date().toISOString()
    const { data } = await write('PUT', `modulo/${id}`, { strNombreModulo: newName('OTRO ') })
    const rows = async (query: string) => (await ask(query)).data
    expect(await rows(`entidad=modulo&id=${id}`)).toMatchObject([
      { accion: 'update', despues: { strNombreModulo: data.strNombreModulo } },
      { accion: 'insert' },
    ])
    expect(await rows(`entidad=modulo&id=${id}&hasta=${between}`)).toHaveLength(1)
    expect(await rows(`entidad=modulo&id=${id}&desde=${between}`)).toHaveLength(1)
    await write('PUT', `modulo/${id}`, { strNombreModulo: newName('OTRO ') })
    const [{ id: last }] = await rows(`entidad=modulo&id=${id}`)
    expect(await rows(`entidad=modulo&id=${id}&antes=${last}&hasta=${between}`)).toHaveLength(1)
    expect(await rows('desde=2100-01-01')).toEqual([])
    expect(await rows(`entidad=modulo&id=${id}&idUsuario=999`)).toEqual([])
    for (const row of await rows('idUsuario=1&entidad=usuario')) {
      expect(row).toMatchObject({ idUsuario: 1, entidad: 'usuario' })
    }
    const nowhere = ['antes=-1', 'antes=-1e400', 'antes=1e400']
    for (const nothing of [...nowhere, 'idUsuario=-5', 'entidad=perfil&id=99999999999']) {
      expect(await rows(nothing)).toEqual([])
    }
  })

  it.each([
    ['antes=x', 'antes'],
    ['idUsuario=1.5', 'idUsuario'],
    ['entidad=otra', 'entidad'],
    ['id=3', 'entidad'],
    ['entidad=perfil&id=0', 'id'],
    ['desde=ayer', 'desde'],
    ['desde=2026-02-30', 'desde'],
    ['hasta=2026-13-01T00:00:00Z', 'hasta'],
    ['hasta=2026-01-01T25:00', 'hasta'],
  ])('refuses %s with a text that names %s', async (query, field) => {
    const answer = await call('GET', `/api/auditoria?${query}`)
    expect(answer).toMatchObject({ status: 400, body: { statusCode: 400 } })
    expect(answer.body.message).toContain(`El campo ${field} `)
  })
})

describe('the rows by which a user got a permission', () => {
  const MODULO = 'ALMACÉN'
  const grant = (idPerfil: number, idModulo: number, more: object) =>
    write('POST', 'permisos/guardar-matriz', { idPerfil, permisos: [{ idModulo, ...more }] })
  const move = async (id: number, idPerfil: number) =>
    write('PUT', `usuario/${id}`, usuario(`juan${id}`, { idPerfil, strPwd: undefined }))

  /** Returns the ids of the rows, from the service and from the database. */
  async function origenOf(idUsuario: number, modulo = MODULO, accion = 'bitEliminar') {
    const rows = await sql`select * from origen_de_permiso(${idUsuario}, ${modulo}, ${accion})`
    const query = new URLSearchParams({ idUsuario: String(idUsuario), modulo, accion })
    const { status, body } = await call('GET', `/api/auditoria/origen?${query}`)
    expect(status).toBe(200)
    const ids = rows.map(({ id }) => Number(id))
    expect(body.data.map(({ id }: Row) => id)).toEqual(ids)
    return ids
  }
  const idOf = ({ rows }: { rows: Row[] }, entidad: string) =>
    Number(rows.find((row) => row.entidad === entidad)?.id)

  it('are those of the profile that the user had then, also when the user is deleted', async () => {
    const idModulo = await addModulo(MODULO)
    const [dos, tres] = [await addPerfil(), await addPerfil()]
    const juan = await addUsuario(dos)
    expect(await origenOf(juan)).toEqual([])
    const granted = idOf(await grant(dos, idModulo, { bitEliminar: true }), 'permisos')
    expect(await origenOf(juan)).toEqual([granted])
    await move(juan, tres)
    await grant(dos, idModulo, {})
    await grant(dos, idModulo, ALL)
    expect(await origenOf(juan)).toEqual([granted])
    await write('DELETE', `usuario/${juan}`)
    expect(await origenOf(juan)).toEqual([granted])
    await write('DELETE', `modulo/${idModulo}`)
    await write('DELETE', `perfil/${dos}`)
    expect(await origenOf(juan)).toEqual([granted])
  })

  it('are two when the user was moved to a profile that held the permission', async () => {
    const idModulo = await addModulo(MODULO)
    const [sin, con] = [await addPerfil(), await addPerfil()]
    const granted = idOf(await grant(con, idModulo, { bitEliminar: true }), 'permisos')
    const juan = await addUsuario(sin)
    const moved = idOf(await move(juan, con), 'usuario')
    expect(await origenOf(juan)).toEqual([granted, moved])
    await write('DELETE', `modulo/${idModulo}`)
  })

  it('are several when the flag was taken and given again, and none for the matrices between', async () => {
    const idModulo = await addModulo(MODULO)
    const perfil = await addPerfil()
    const juan = await addUsuario(perfil)
    const first = idOf(await grant(perfil, idModulo, { bitEliminar: true }), 'permisos')
    await grant(perfil, idModulo, ALL)
    await grant(perfil, idModulo, { bitEditar: true })
    const again = idOf(await grant(perfil, idModulo, { bitEliminar: true }), 'permisos')
    expect(await origenOf(juan)).toEqual([first, again])
    expect(await origenOf(juan, MODULO, 'bitAgregar')).toHaveLength(1)
    await write('DELETE', `modulo/${idModulo}`)
  })

  it('is the row by which the profile became an administrator’s', async () => {
    const strNombrePerfil = newName('Perfil ')
    const { data } = await write('POST', 'perfil', { strNombrePerfil })
    const juan = await addUsuario(data.id)
    const raised = { strNombrePerfil, bitAdministrador: true }
    const row = idOf(await write('PUT', `perfil/${data.id}`, raised), 'perfil')
    expect(await origenOf(juan)).toEqual([row])
    await write('PUT', `perfil/${data.id}`, { strNombrePerfil, bitAdministrador: false })
    expect(await origenOf(juan)).toEqual([row])
  })

  it('is the row by which the module got its name, also when it was renamed twice', async () => {
    const idModulo = await addModulo('OTRO NOMBRE')
    const perfil = await addPerfil()
    const juan = await addUsuario(perfil)
    const granted = idOf(await grant(perfil, idModulo, { bitEliminar: true }), 'permisos')
    const named = idOf(
      await write('PUT', `modulo/${idModulo}`, { strNombreModulo: MODULO }),
      'modulo',
    )
    await write('PUT', `modulo/${idModulo}`, { strNombreModulo: 'EL TERCERO' })
    expect(await origenOf(juan)).toEqual([named])
    expect(await origenOf(juan, 'OTRO NOMBRE')).toEqual([granted])
    expect(await origenOf(juan, 'NUNCA')).toEqual([])
  })

  it.each([
    ['modulo=X&accion=bitEditar', 'El campo idUsuario es obligatorio'],
    ['idUsuario=1&accion=bitEditar', 'El campo modulo es obligatorio'],
    ['idUsuario=1&modulo=X', 'El campo accion es obligatorio'],
  ])('need %s', async (query, message) => {
    expect(await call('GET', `/api/auditoria/origen?${query}`)).toMatchObject(
      statusCodeAnswer(400, message),
    )
    const unknown = await call('GET', '/api/auditoria/origen?idUsuario=1&modulo=X&accion=bitTodo')
    expect(unknown.body.message).toContain('El campo accion debe ser bitAgregar o bitEditar o')
  })
})

it('a page of the audit reads at most 51 rows, with each filter and in the middle, too', async () => {
  await sql`
    insert into auditoria (fecha, "idUsuario", "strNombreUsuario", accion, entidad, "idEntidad")
    select '2020-01-01'::timestamptz + n * interval '1 second', n % 2, 'x', 'login',
      case when n < 1000 then 'perfil' else 'usuario' end, n % 3
    from generate_series(1, 60000) as n
  `
  await sql`analyze auditoria`
  const [middle] = await sql<[Row]>`select id::int from auditoria where entidad = 'perfil' limit 1`
  const filters: AuditoriaFiltro[] = [
    {},
    { idUsuario: 1 },
    { entidad: 'perfil' },
    { entidad: 'auditoria' },
    { entidad: 'perfil', id: 1 },
    { desde: 0, hasta: Date.parse('2020-01-01T09:00Z') },
    { antes: middle?.id, idUsuario: 1 },
    { entidad: 'perfil', hasta: Date.parse('2020-01-01T00:10Z') },
  ]
  for (const filter of filters) {
    // From the sixth execution of a statement on, PostgreSQL may use a generic plan.
    for (let round = 0; round < 7; round += 1) {
      // PostgreSQL reads some rows for its estimates.
      expect(await readsOf(filter), JSON.stringify(filter)).toBeLessThanOrEqual(60)
    }
  }
})

/** Returns the number of rows of the audit that PostgreSQL reads for a page. */
const readsOf = (filter: AuditoriaFiltro) =>
  countReads(sql, 'auditoria', (tx) => listAuditoria(tx as unknown as Sql, filter))
