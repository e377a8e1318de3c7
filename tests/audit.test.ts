import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import type postgres from 'postgres'
import { describe, expect, inject, it } from 'vitest'
import { listAuditoria } from '../src/auditoria/queries.js'
import type { AuditoriaFiltro } from '../src/auditoria/schemas.js'
import { migrate } from '../src/database/migrations.js'
import type { Sql } from '../src/database/sql.js'
import { type AnswerWithHeaders, FORBIDDEN, statusCodeAnswer, withoutHeaders } from './answers.js'
import { ADMIN, cloneDatabase, testApp } from './app.js'
import { connectTo } from './connect.js'
import { ALL, FLAGS, usuario } from './endpoints.js'
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
const addPerfil = async (strNombrePerfil = 'Perfil'): Promise<number> =>
  (await write('POST', 'perfil', { strNombrePerfil })).data.id
const addModulo = async (strNombreModulo = `VENTAS ${++turn}`): Promise<number> =>
  (await write('POST', 'modulo', { strNombreModulo })).data.id
const addUsuario = async (idPerfil: number, nombre = `usuario${++turn}`): Promise<number> =>
  (await write('POST', 'usuario', usuario(nombre, { idPerfil }))).data.id

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
  })

  it('has the fields of an update that differ, and the record of a deletion', async () => {
    const id = await addModulo('ANTES')
    const renamed = await write('PUT', `modulo/${id}`, { strNombreModulo: 'DESPUÉS' })
    expect(renamed.rows).toEqual([
      expect.objectContaining({
        accion: 'update',
        entidad: 'modulo',
        idEntidad: id,
        nombre: 'ANTES',
        antes: { strNombreModulo: 'ANTES' },
        despues: { strNombreModulo: 'DESPUÉS' },
      }),
    ])
    const same = await write('PUT', `modulo/${id}`, { strNombreModulo: 'DESPUÉS' })
    expect(same.rows).toEqual([
      expect.objectContaining({ accion: 'update', antes: {}, despues: {} }),
    ])
    const deleted = await write('DELETE', `modulo/${id}`)
    const antes = { id, strNombreModulo: 'DESPUÉS' }
    expect(deleted.rows).toEqual([
      expect.objectContaining({ accion: 'delete', antes, despues: null }),
    ])
  })

  it('has the name of a user’s profile, and neither hashes nor passwords', async () => {
    const [uno, otro] = [await addPerfil('Uno'), await addPerfil('Otro')]
    const ana = usuario('ana', { idPerfil: uno })
    const { data, rows } = await write('POST', 'usuario', ana)
    expect(rows[0]?.despues).toMatchObject({ strPwd: '***', nombrePerfil: 'Uno' })
    const edited = { ...ana, idPerfil: otro, strPwd: undefined }
    const moved = await write('PUT', `usuario/${data.id}`, edited)
    expect(moved.rows).toEqual([
      expect.objectContaining({
        accion: 'update',
        nombre: 'ana',
        antes: { idPerfil: uno, nombrePerfil: 'Uno' },
        despues: { idPerfil: otro, nombrePerfil: 'Otro' },
      }),
    ])
    const all = JSON.stringify(await sql`select * from auditoria`)
    for (const text of [ana.strPwd, '$2b$']) expect(all).not.toContain(text)
  })

  it('has the records of a matrix that differ, once, with the names of their modules', async () => {
    const idPerfil = await addPerfil('Ventas')
    const [a, b, c] = [await addModulo(), await addModulo('B'), await addModulo('C')]
    const save = (permisos: object[]) =>
      write('POST', 'permisos/guardar-matriz', { idPerfil, permisos })
    await save([
      { idModulo: a, ...ALL },
      { idModulo: b, bitEditar: true },
    ])
    const { rows } = await save([
      { idModulo: a, ...ALL },
      { idModulo: b, bitEditar: true, bitEliminar: true },
      { idModulo: c },
    ])
    const permiso = (idModulo: number, nombreModulo: string, held: object) => ({
      id: expect.any(Number),
      idPerfil,
      idModulo,
      nombreModulo,
      ...Object.fromEntries(FLAGS.map((flag) => [flag, false])),
      ...held,
    })
    expect(rows).toEqual([
      expect.objectContaining({
        accion: 'update',
        entidad: 'permisos',
        idEntidad: idPerfil,
        nombre: 'Ventas',
        antes: { permisos: [permiso(b, 'B', { bitEditar: true })] },
        despues: {
          permisos: [permiso(b, 'B', { bitEditar: true, bitEliminar: true }), permiso(c, 'C', {})],
          ids: expect.any(Array),
        },
      }),
    ])
  })

  it('names the user of the database for a write by psql', async () => {
    const [{ session_user: name }] = await sql<[Row]>`select session_user`
    await sql`update modulo set "strNombreModulo" = 'POR PSQL' where id = ${await addModulo()}`
    const [last] = await sql`select * from auditoria order by id desc limit 1`
    expect(last).toMatchObject({ idUsuario: null, strNombreUsuario: name, ip: null })
  })

  it('has the last names of a profile and a module that are deleted by one statement with their record', async () => {
    // Both have the same id, but each has its own name.
    const id = 1_000_000
    await sql`
      insert into perfil (id, "strNombrePerfil") overriding system value values (${id}, 'Antes')
    `
    await sql`
      insert into modulo (id, "strNombreModulo") overriding system value values (${id}, 'ANTES')
    `
    await sql`insert into permisos_perfil ("idPerfil", "idModulo") values (${id}, ${id})`
    await sql`update perfil set "strNombrePerfil" = 'Después' where id = ${id}`
    await sql`update modulo set "strNombreModulo" = 'DESPUÉS' where id = ${id}`
    await sql`
      with permisos as (
        delete from permisos_perfil where "idPerfil" = ${id} returning "idPerfil", "idModulo"
      ), modulos as (
        delete from modulo where id in (select "idModulo" from permisos)
      )
      delete from perfil where id in (select "idPerfil" from permisos)
    `
    const [row] = await sql`
      select * from auditoria where entidad = 'permisos' order by id desc limit 1
    `
    expect(row).toMatchObject({
      accion: 'delete',
      nombre: 'Después',
      antes: { permisos: [{ idModulo: id, nombreModulo: 'DESPUÉS' }] },
    })
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
    const [usuario] =
      await sql`select * from auditoria where entidad = 'usuario' and accion = 'delete'`
    expect(usuario?.antes).toMatchObject({ strPwd: '***' })
  })

  it('names the address of the client that a trusted proxy has added', async () => {
    const DATABASE_URL = service.config.DATABASE_URL.url
    const proxied = await testApp({ DATABASE_URL, TRUST_PROXY: 'loopback' })
    const headers = { 'x-forwarded-for': '203.0.113.7' }
    const credentials = { ...ADMIN, captchaToken: 'humano' }
    const answers = [
      await proxied.call('POST', '/api/auth/login', credentials, { token: null, headers }),
      await proxied.call('POST', '/api/perfil', { strNombrePerfil: 'Remoto' }, { headers }),
    ]
    for (const answer of answers)
      expect(await rowsOf(answer)).toMatchObject([{ ip: '203.0.113.7' }])
    expect(proxied.captcha.requests).toMatchObject([{ remoteip: '203.0.113.7' }])
  })

  it('has the same actions, and fold_case the same results, with a Turkish locale, where the lower case of I is not i', async () => {
    const name = `turca_${process.pid}`
    await sql.unsafe(`
      create database ${name}
        template template0 encoding 'UTF8' locale_provider icu icu_locale 'tr'
    `)
    const turkish = connectTo(databaseUrl(inject('serverUrl'), name))
    await migrate(turkish)
    await turkish`insert into modulo ("strNombreModulo") values ('VENTAS')`
    const [last] = await turkish`select accion from auditoria order by id desc limit 1`
    expect(last).toEqual({ accion: 'insert' })
    const [folded] = await turkish`select fold_case('VIÑA ÁÉÍÓÚÜ') as text`
    expect(folded).toEqual({ text: 'viña áéíóúü' })
    await turkish.end()
    await sql.unsafe(`drop database ${name}`)
  })

  it('has a deletion and an insertion for a record that gets another id or another profile', async () => {
    const [uno, otro] = [await addPerfil(), await addPerfil()]
    await write('POST', 'permisos', { idPerfil: uno, idModulo: 1 })
    await sql`update permisos_perfil set id = default where "idPerfil" = ${uno}`
    await sql`update permisos_perfil set "idPerfil" = ${otro} where "idPerfil" = ${uno}`
    const rows = await sql`
      select accion, "idEntidad"
      from auditoria
      where entidad = 'permisos' and "idEntidad" in (${uno}, ${otro})
      order by id
    `
    expect(rows).toEqual([
      { accion: 'insert', idEntidad: uno },
      { accion: 'delete', idEntidad: uno },
      { accion: 'insert', idEntidad: uno },
      { accion: 'delete', idEntidad: uno },
      { accion: 'insert', idEntidad: otro },
    ])
  })

  it('has the rows of a statement by ascending id of the profile', async () => {
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
    const caller = sql.json({ id: 1, ver: 0, enforced: false })
    await sql.begin(async (tx) => {
      await tx`select replace_permisos(${idPerfil}, '[]', null, ${caller})`
      await tx`insert into permisos_perfil ("idPerfil", "idModulo") values (${idPerfil}, 1)`
    })
    const [last] = await sql`select * from auditoria order by id desc limit 1`
    expect(last).toMatchObject({ accion: 'insert', entidad: 'permisos', idEntidad: idPerfil })
  })

  it('looks up names by their keys, also after a statement has changed many records', async () => {
    const own = connectTo(service.config.DATABASE_URL.url)
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
  })

  it('looks up the names of modules by their keys, also with a plan from a time of few modules', async () => {
    const own = connectTo(service.config.DATABASE_URL.url, {
      plan_cache_mode: 'force_generic_plan',
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
  })

  it('has an update of any column of a profile, except those that only triggers change', async () => {
    const columns = await sql`
      select attname
      from pg_attribute
      join pg_trigger on tgrelid = attrelid and tgname = 'audit_written'
      where attrelid = 'perfil'::regclass and attnum > 0 and attnum <> all(tgattr)
      order by attname
    `
    expect(columns.map(({ attname }) => attname)).toEqual(['numPermisos', 'versionPermisos'])
  })

  it('is written for a role that may change records and may not write the audit', async () => {
    const { sql } = await testApp()
    const role = sql(`limitada_${process.pid}`)
    await sql.begin(async (tx) => {
      await tx`create role ${role}`
      await tx`grant select, insert, update, truncate on permisos_perfil to ${role}`
      await tx`grant update on perfil to ${role}`
      await tx`grant insert on modulo to ${role}`
      await tx`insert into perfil ("strNombrePerfil") values ('Ventas')`
      await tx`set local role ${role}`
      await tx`insert into permisos_perfil ("idPerfil", "idModulo") values (2, 1)`
      await tx`update permisos_perfil set "bitEditar" = true where "idPerfil" = 2`
      await tx`truncate permisos_perfil`
      await tx`insert into modulo ("strNombreModulo") values ('VENTAS')`
      await tx`reset role`
      await tx`drop owned by ${role}`
      await tx`drop role ${role}`
    })
    const rows = await sql`
      select entidad, accion
      from auditoria
      where entidad = 'permisos' and "idEntidad" = 2 or nombre = 'VENTAS'
      order by id
    `
    expect(rows).toEqual([
      { entidad: 'permisos', accion: 'insert' },
      { entidad: 'permisos', accion: 'update' },
      { entidad: 'permisos', accion: 'delete' },
      { entidad: 'modulo', accion: 'insert' },
    ])
  })

  it('has only functions that look into the temporary tables last, if they have the rights of their owner', async () => {
    const functions = await sql`
      select proname
      from pg_proc
      where prosecdef and array_to_string(proconfig, ' ') like 'search_path=%, pg_temp' is not true
    `
    expect(functions).toEqual([])
  })

  it('lets only the owner execute the functions with the owner’s rights, and the functions that they call and that have a declare section', async () => {
    const text = await readFile('sql/migrations/0008_auditoria.sql', 'utf8')
    const names = [...text.matchAll(/^create function (\w+)/gm)].map(([, name]) => name as string)
    const open = await sql`
      select proname
      from pg_proc
      where (prosecdef or proname = any(${names}) and prosrc ~ '^\\s*declare')
        and has_function_privilege('public', oid, 'execute')
    `
    expect(open).toEqual([])
  })

  it('has a row for each login and logout that succeeds', async () => {
    const nombre = 'eva'
    await addUsuario(1, nombre)
    const token = await login(nombre, 'una clave')
    await call('POST', '/api/auth/logout', undefined, { token })
    const rows = await sql`select * from auditoria order by id desc limit 2`
    expect(rows).toMatchObject([
      { accion: 'logout', strNombreUsuario: nombre, nombre },
      { accion: 'login', strNombreUsuario: nombre, ip: '127.0.0.1', antes: null, despues: null },
    ])
  })
})

describe('the rows of the audit:', () => {
  it.each([
    `set local llavero.retencion = 'true'; update auditoria set "strNombreUsuario" = 'otro'`,
    `set local llavero.retencion = 'true'; truncate auditoria`,
    `select delete_auditoria('2000-01-01'); delete from auditoria`,
  ])('%s is refused', async (statements) => {
    await expect(sql.unsafe(statements)).rejects.toMatchObject({ code: '42501' })
  })

  it('delete_auditoria removes the rows from before a moment, and adds one', async () => {
    const [{ now }] = await sql<[Row]>`select now()`
    await addModulo('UNO NUEVO')
    const removed = await sql`select fecha from auditoria where fecha < ${now}`
    const [{ n }] = await sql<[Row]>`select delete_auditoria(${now}) as n`
    expect(Number(n)).toBe(removed.length)
    const rows = await sql`select * from auditoria order by id`
    expect(rows).toMatchObject([
      { accion: 'insert', nombre: 'UNO NUEVO' },
      { accion: 'delete', entidad: 'auditoria', despues: { rows: removed.length } },
    ])
  })

  it('a deletion names the profile and the module, although delete_auditoria has removed the rows of their names', async () => {
    const idModulo = await addModulo('ANTIGUO')
    const perfil = { strNombrePerfil: 'Antigua', bitAdministrador: true }
    const { data } = await write('POST', 'perfil', perfil)
    await sql`select delete_auditoria(clock_timestamp())`
    await write('DELETE', `modulo/${idModulo}`)
    await write('DELETE', `perfil/${data.id}`)
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
})

describe('a refused request', () => {
  /** Returns the line of the log for the request that got this answer. */
  function lineOf({ headers }: AnswerWithHeaders): Row {
    const lines = service.readLines().filter(({ reqId }) => reqId === headers['x-request-id'])
    expect(lines).toHaveLength(1)
    return lines[0] as Row
  }

  it('has a line of the audit that says who was refused what, and what was lacking', async () => {
    const idPerfil = await addPerfil('Sin permisos')
    const nombre = 'limitada'
    const id = await addUsuario(idPerfil, nombre)
    const token = await login(nombre, 'una clave')
    const answer = await call('PUT', '/api/modulo/2', { strNombreModulo: 'X' }, { token })
    expect(answer).toMatchObject(FORBIDDEN)
    expect(answer.headers['x-needs']).toBe('MODULO:bitEditar')
    expect(lineOf(answer)).toMatchObject({
      level: 35,
      msg: 'refused',
      who: { id, nombre, idPerfil, perfil: 'Sin permisos' },
      ip: '127.0.0.1',
      method: 'PUT',
      route: '/api/modulo/:id',
      target: 2,
      needs: { modulo: 'MODULO', accion: 'bitEditar' },
      status: 403,
    })
  })

  it('names the first flag of a matrix that the caller does not hold, and the profile of the matrix', async () => {
    const idPerfil = await addPerfil()
    const [jefe, otro] = [await addPerfil(), await addPerfil()]
    const own = [
      { idModulo: 1, ...ALL, bitEliminar: false },
      { idModulo: 4, ...ALL },
    ]
    await write('POST', 'permisos/guardar-matriz', { idPerfil, permisos: own })
    const more = [{ idModulo: await addModulo('CAMPAÑAS'), bitConsulta: true }]
    await write('POST', 'permisos/guardar-matriz', { idPerfil: jefe, permisos: more })
    await addUsuario(idPerfil, 'ambiciosa')
    const token = await login('ambiciosa', 'una clave')

    const save = 'permisos/guardar-matriz'
    const all = { idPerfil: otro, permisos: [{ idModulo: 1, ...ALL }] }
    const unknown = { idPerfil: otro, permisos: [{ idModulo: 1_000_001, bitConsulta: true }] }
    const flag = { modulo: 'USUARIO', accion: 'bitEliminar' }
    const ofJefe = { modulo: 'CAMPAÑAS', accion: 'bitConsulta', perfil: jefe }
    const administrador = { administrador: true }
    const ofPerfil1 = { administrador: true, perfil: 1 }
    for (const [method, path, body, header, needs, target] of [
      ['POST', save, all, 'USUARIO:bitEliminar', flag, otro],
      ['POST', save, unknown, 'administrador', administrador, otro],
      [
        'POST',
        'usuario',
        { ...usuario('x'), idPerfil: jefe },
        'CAMPA%C3%91AS:bitConsulta',
        ofJefe,
        jefe,
      ],
      ['PUT', 'usuario/1', { ...usuario('x'), idPerfil: otro }, 'administrador', ofPerfil1, 1],
      ['GET', 'usuario/1', undefined, 'administrador', ofPerfil1, 1],
      ['GET', 'auditoria', undefined, 'administrador', administrador, null],
    ] as const) {
      const answer = await call(method, `/api/${path}`, body, { token })
      expect(answer).toMatchObject(FORBIDDEN)
      const line = lineOf(answer)
      expect([answer.headers['x-needs'], line.needs, line.target]).toEqual([header, needs, target])
    }
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

  /** Returns all pages, each of which says where the next one begins. */
  async function pagesOf(query: string) {
    const pages: Row[][] = []
    let antes = ''
    do {
      const { data, siguiente } = await ask(`${query}${antes}`)
      pages.push(data)
      antes = siguiente ? `&antes=${siguiente}` : ''
    } while (antes)
    return pages
  }

  it('returns the newest rows first, in pages of 50', async () => {
    await sql`insert into modulo ("strNombreModulo") select 'M' || n from generate_series(1, 120) n`
    const all = await sql`select id::int from auditoria order by fecha desc, id desc`
    const pages = await pagesOf('')
    expect(pages.flat().map(({ id }) => id)).toEqual(all.map(({ id }) => id))
    for (const page of pages.slice(0, -1)) expect(page).toHaveLength(50)
    expect(pages[0]?.[0]?.fecha).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  })

  it('ends a page early if its rows are large', async () => {
    const large = sql.json({ permisos: 'x'.repeat(3 * 1024 * 1024) })
    await sql`
      insert into auditoria ("strNombreUsuario", accion, entidad, "idEntidad", despues)
      select 'x', 'update', 'auditoria', 7, ${large} from generate_series(1, 3)
    `
    const pages = await pagesOf('entidad=auditoria&id=7')
    expect(pages.map(({ length }) => length)).toEqual([2, 1])
  })

  it('filters by who did it, by the record, and by time', async () => {
    const id = await addModulo()
    // The filter counts in milliseconds, so the row above must be older than one.
    await sleep(2)
    const between = new Date().toISOString()
    await write('PUT', `modulo/${id}`, { strNombreModulo: 'OTRO' })
    await write('PUT', `modulo/${id}`, { strNombreModulo: 'UN TERCERO' })
    const own = `entidad=modulo&id=${id}`
    const [last] = (await ask(own)).data
    for (const [query, acciones] of [
      [own, ['update', 'update', 'insert']],
      [`${own}&hasta=${between}`, ['insert']],
      [`${own}&desde=${between}`, ['update', 'update']],
      [`${own}&antes=${last.id}&hasta=${between}`, ['insert']],
      [`${own}&idUsuario=999`, []],
      ['desde=2100-01-01', []],
      ['antes=-1e400', []],
      ['antes=1e400', []],
      ['entidad=perfil&id=99999999999', []],
    ] as const) {
      const { data } = await ask(query)
      expect({ query, acciones: data.map(({ accion }: Row) => accion) }).toEqual({
        query,
        acciones,
      })
    }
    const both = (await ask('idUsuario=1&entidad=usuario')).data
    expect(both).not.toEqual([])
    for (const row of both) {
      expect(row).toMatchObject({ idUsuario: 1, entidad: 'usuario' })
    }
  })
})

describe('the rows by which a user got a permission', () => {
  const MODULO = 'ALMACÉN'
  /** Sends a write; returns the id of its row about this kind of record. */
  async function writeRow(entidad: string, ...request: Parameters<typeof write>) {
    const { rows } = await write(...request)
    return Number(rows.find((row) => row.entidad === entidad)?.id)
  }
  const grant = (idPerfil: number, idModulo: number, more: object) => {
    const matriz = { idPerfil, permisos: [{ idModulo, ...more }] }
    return writeRow('permisos', 'POST', 'permisos/guardar-matriz', matriz)
  }
  const move = (id: number, idPerfil: number) => {
    const moved = usuario(`juan${id}`, { idPerfil, strPwd: undefined })
    return writeRow('usuario', 'PUT', `usuario/${id}`, moved)
  }

  const flag = (id: number, bitAdministrador: boolean) =>
    writeRow('perfil', 'PUT', `perfil/${id}`, { strNombrePerfil: 'Perfil', bitAdministrador })
  const rename = (id: number, strNombreModulo: string) =>
    writeRow('modulo', 'PUT', `modulo/${id}`, { strNombreModulo })

  /** Returns the ids of the rows. */
  async function origenOf(idUsuario: number, modulo = MODULO, accion = 'bitEliminar') {
    const query = new URLSearchParams({ idUsuario: String(idUsuario), modulo, accion })
    const { status, body } = await call('GET', `/api/auditoria/origen?${query}`)
    expect(status).toBe(200)
    return body.data.map(({ id }: Row) => id)
  }

  it('are those of the profile that the user had then, also when the user is deleted', async () => {
    const idModulo = await addModulo(MODULO)
    const [dos, tres] = [await addPerfil(), await addPerfil()]
    const juan = await addUsuario(dos)
    const edited = await grant(dos, idModulo, { bitEditar: true })
    const granted = await grant(dos, idModulo, { bitEliminar: true })
    expect(await origenOf(juan, MODULO, 'bitEditar')).toEqual([edited])
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

  it('are each change of the profile, the user or the module that gave the permission, in their order', async () => {
    const idModulo = await addModulo(MODULO)
    const [sin, con] = [await addPerfil(), await addPerfil()]
    const juan = await addUsuario(sin)
    const granted = await grant(con, idModulo, { bitEliminar: true })
    const moved = await move(juan, con)
    await rename(idModulo, 'OTRO')
    const named = await rename(idModulo, MODULO)
    // This matrix leaves the flag as it was.
    await grant(con, idModulo, ALL)
    await grant(con, idModulo, { bitEditar: true })
    const grantedAgain = await grant(con, idModulo, { bitEliminar: true })
    await grant(con, idModulo, {})
    const raised = await flag(con, true)
    await flag(con, false)
    const raisedAgain = await flag(con, true)
    const rows = [granted, moved, named, grantedAgain, raised, raisedAgain]
    expect(await origenOf(juan)).toEqual(rows)
    await write('DELETE', `modulo/${idModulo}`)
  })

  it('is the row by which the module got its name, also when it was renamed twice', async () => {
    const idModulo = await addModulo('OTRO NOMBRE')
    const perfil = await addPerfil()
    const juan = await addUsuario(perfil)
    const granted = await grant(perfil, idModulo, { bitEliminar: true })
    const named = await rename(idModulo, MODULO)
    await rename(idModulo, 'EL TERCERO')
    expect(await origenOf(juan)).toEqual([named])
    expect(await origenOf(juan, 'otro nombre')).toEqual([granted])
    expect(await origenOf(juan, 'NUNCA')).toEqual([])
  })

  it('is found by a name that the module has lost, although delete_auditoria has removed the row that gave it', async () => {
    const idModulo = await addModulo('ANTES')
    const [sin, con] = [await addPerfil(), await addPerfil()]
    const juan = await addUsuario(sin)
    await grant(con, idModulo, { bitEliminar: true })
    await sql`select delete_auditoria(now())`
    const moved = await move(juan, con)
    await rename(idModulo, 'DESPUÉS')
    expect(await origenOf(juan, 'ANTES')).toEqual([moved])
  })
})

it.each([
  ['?antes=x', 'El campo antes debe ser un número entero distinto de 0'],
  ['?idUsuario=1.5', 'El campo idUsuario debe ser un número entero distinto de 0'],
  ['?entidad=otra', 'El campo entidad debe ser usuario o perfil o modulo o permisos o auditoria'],
  ['?id=3', 'El campo entidad es obligatorio si hay un id'],
  ['?entidad=perfil&id=0', 'El campo id debe ser un número entero distinto de 0'],
  ['?desde=ayer', 'El campo desde debe ser una fecha ISO 8601'],
  ['?desde=2026-02-30', 'El campo desde debe ser una fecha ISO 8601'],
  ['?hasta=2026-13-01T00:00:00Z', 'El campo hasta debe ser una fecha ISO 8601'],
  ['?hasta=2026-01-01T25:00', 'El campo hasta debe ser una fecha ISO 8601'],
  ['/origen?modulo=X&accion=bitEditar', 'El campo idUsuario es obligatorio'],
  ['/origen?idUsuario=1&accion=bitEditar', 'El campo modulo es obligatorio'],
  ['/origen?idUsuario=1&modulo=X', 'El campo accion es obligatorio'],
  ['/origen?idUsuario=1&modulo=X&accion=bitTodo', `El campo accion debe ser ${FLAGS.join(' o ')}`],
])('GET /api/auditoria%s is refused with the text: %s', async (path, message) => {
  const answer = await call('GET', `/api/auditoria${path}`)
  expect(withoutHeaders(answer)).toEqual(statusCodeAnswer(400, message))
})

// Connections of the pool have these settings.
const SETTINGS = { random_page_cost: '1.1', plan_cache_mode: 'force_generic_plan' }

it.each([
  ['without statistics', 'select'],
  ['with statistics', 'analyze auditoria'],
])('PostgreSQL reads at most 60 rows for a page of the audit, %s', async (_, statement) => {
  // A new connection has no plans from a time when the audit was small.
  const copy = connectTo(await cloneDatabase(), SETTINGS)
  await copy`
    insert into auditoria (fecha, "idUsuario", "strNombreUsuario", accion, entidad, "idEntidad")
    select '2020-01-01'::timestamptz + n * interval '1 second', n % 2, 'x', 'login',
      (array['perfil', 'usuario', 'modulo', 'permisos'])[1 + n % 4], n % 500
    from generate_series(1, 60000) as n
  `
  await copy.unsafe(statement)
  const [middle] = await copy<[Row]>`
    select id::int from auditoria where fecha < '2020-01-01T09:00Z' order by id desc limit 1
  `
  const filters: AuditoriaFiltro[] = [
    {},
    { idUsuario: 1 },
    { entidad: 'perfil' },
    { entidad: 'auditoria' },
    { entidad: 'perfil', id: 4 },
    { desde: 0, hasta: Date.parse('2020-01-01T09:00Z') },
    { antes: middle?.id, idUsuario: 1 },
    { antes: middle?.id, entidad: 'perfil', id: 4 },
    { entidad: 'perfil', hasta: Date.parse('2020-01-01T00:10Z') },
  ]
  for (const filter of filters) {
    const list = (tx: unknown) => listAuditoria(tx as Sql, filter)
    // From the sixth execution of a statement on, PostgreSQL may use a generic plan.
    for (let round = 0; round < 7; round += 1) {
      const reads = await countReads(copy, 'auditoria', list)
      // PostgreSQL reads some rows for its estimates.
      expect(reads, JSON.stringify(filter)).toBeLessThanOrEqual(60)
    }
  }
})
