import { randomBytes } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import postgres, { type Sql } from 'postgres'
import { beforeEach, describe, expect, inject, it, onTestFinished } from 'vitest'
import { MIGRATION_LOCK, migrate } from '../src/database/migrations.js'
import { cloneDatabase } from './app.js'
import { databaseUrl } from './postgres.js'

/** Reads the files of a folder of sql/; returns their names and texts in the order of the names. */
async function readSql(folder: string): Promise<[name: string, text: string][]> {
  const url = new URL(`../sql/${folder}/`, import.meta.url)
  const names = (await readdir(url)).sort()
  return Promise.all(names.map(async (name) => [name, await readFile(new URL(name, url), 'utf8')]))
}

const migrations = await readSql('migrations')
const functions = [...(await readSql('functions')), ...(await readSql('transactions'))]
const MIGRATIONS = migrations.map(([name]) => name)

/** Returns the names of the functions that a file creates. */
const createdIn = (text: string) =>
  [...text.matchAll(/^create (?:or replace )?function (\w+)/gm)].map(([, name]) => name ?? '')

let open: () => Sql

beforeEach(async () => {
  const server = postgres(inject('serverUrl'), { max: 1, onnotice: () => {} })
  const name = `vacia_${randomBytes(6).toString('hex')}`
  await server.unsafe(`create database ${name} template template0 encoding 'UTF8'`)
  open = () => {
    const sql = postgres(databaseUrl(inject('serverUrl'), name), { max: 1, onnotice: () => {} })
    onTestFinished(() => sql.end())
    return sql
  }
  return async () => {
    await server.unsafe(`drop database ${name} with (force)`)
    await server.end()
  }
})

/** Connects to a database that has been migrated. */
async function openMigrated() {
  const sql = postgres(await cloneDatabase(), { max: 1, onnotice: () => {} })
  onTestFinished(() => sql.end())
  return sql
}

it('applies every migration once, in order, and returns their names', async () => {
  const sql = open()
  expect(await migrate(sql)).toEqual(MIGRATIONS)
  expect(await migrate(sql)).toEqual([])
  const rows = await sql<
    { nombre: string }[]
  >`select nombre from migracion order by aplicada, nombre`
  expect(rows.map(({ nombre }) => nombre)).toEqual(MIGRATIONS)
})

it('waits for a migration by another replica, whatever the defaults of the server are', async () => {
  const [holder, watcher, one, other] = [open(), open(), open(), open()]
  for (const sql of [one, other]) {
    await sql`set statement_timeout = 100`
    await sql`set default_transaction_isolation = 'repeatable read'`
  }
  const ended: string[] = []
  let answers: Promise<unknown[]> | undefined
  await holder.begin(async (tx) => {
    await tx`select pg_advisory_xact_lock(${MIGRATION_LOCK})`
    answers = Promise.all([migrate(one), migrate(other)]).finally(() => ended.push('migrate'))
    const waiting = () => watcher`
      select from pg_stat_activity
      where datname = current_database() and wait_event = 'advisory'
    `
    await expect.poll(waiting).toHaveLength(2)
    await sleep(250)
    expect(await waiting()).toHaveLength(2)
    ended.push('holder')
  })
  expect((await answers)?.toSorted()).toEqual([[], MIGRATIONS])
  expect(ended).toEqual(['holder', 'migrate'])
})

it('rolls everything back when a migration fails', async () => {
  const sql = open()
  await sql`create table usuario ()`
  await expect(migrate(sql)).rejects.toThrow('relation "usuario" already exists')
  expect(await sql`select to_regclass('migracion') as tabla`).toEqual([{ tabla: null }])
})

describe('the functions', () => {
  /** Reads each function's name and its `xmin`, which changes whenever the function is replaced. */
  const readCatalogue = (sql: Sql) => sql`
    select proname, xmin::text as version from pg_proc
    where pronamespace = 'public'::regnamespace order by 1, 2
  `
  const isSistema = (sql: Sql) => sql`select is_modulo_de_sistema('USUARIO') as si`

  /** Replaces is_modulo_de_sistema by a function that always returns false. */
  const falsify = (sql: Sql) => sql`
    create or replace function is_modulo_de_sistema(p_nombre text) returns boolean
    language sql immutable as 'select false'
  `

  /** Replaces is_modulo_de_sistema as a release of that version would. */
  async function makeAs(sql: Sql, version: string) {
    await falsify(sql)
    await sql.unsafe(`comment on table migracion is 'functions ${version} 0123456789abcdef'`)
  }

  it('have one file each, which has their name', () => {
    const named = functions.map(([name]) => [name.replace('.sql', '')])
    expect(functions.map(([, text]) => createdIn(text))).toEqual(named)
  })

  it('are exactly those that the files create', async () => {
    const sql = await openMigrated()
    const rows = await sql<{ name: string }[]>`
      select proname as name from pg_proc
      where pronamespace = 'public'::regnamespace
        and not exists (select from pg_depend where objid = pg_proc.oid and deptype = 'e')
    `
    const inMigrations = new Set(migrations.flatMap(([, text]) => createdIn(text)))
    // Migration 0004 creates these, and 0008 drops them.
    for (const event of ['inserted', 'deleted', 'updated']) {
      inMigrations.delete(`permisos_${event}`)
    }
    const inFiles = functions.flatMap(([, text]) => createdIn(text))
    expect(rows.map(({ name }) => name).toSorted()).toEqual(
      [...inMigrations, ...inFiles].toSorted(),
    )
  })

  it('are not replaced when their text has not changed', async () => {
    const sql = await openMigrated()
    const before = await readCatalogue(sql)
    await migrate(sql)
    expect(await readCatalogue(sql)).toEqual(before)
  })

  it('are replaced if release 0.2.0 has created them, which kept a checksum for each of them', async () => {
    const sql = await openMigrated()
    await falsify(sql)
    await sql`comment on table migracion is null`
    await sql`
      comment on function is_modulo_de_sistema(text)
        is 'llavero 0.2.0 is_modulo_de_sistema.sql 0123456789abcdef'
    `
    await migrate(sql)
    expect(await isSistema(sql)).toEqual([{ si: true }])
  })

  it('are replaced when an older release has created them, but not when a newer one has', async () => {
    const sql = await openMigrated()
    const file = new URL('../package.json', import.meta.url)
    const { version } = JSON.parse(await readFile(file, 'utf8'))
    const [major, minor, patch] = version.split('.').map(Number)
    for (const [maker, si] of [
      ['0.0.0', true],
      [version, true],
      [`${major}.${minor}.${patch + 1}`, false],
      [`${major}.${minor + 10}.0`, false],
      [`${major + 1}.0.0`, false],
    ]) {
      await makeAs(sql, maker)
      await migrate(sql)
      expect({ maker, si: await isSistema(sql) }).toEqual({ maker, si: [{ si }] })
    }
  })

  it('are kept when they belong to an older release and have no file', async () => {
    const sql = await openMigrated()
    await sql`create function antigua() returns integer language sql as 'select 1'`
    await makeAs(sql, '0.0.0')
    await migrate(sql)
    expect(await sql`select antigua()`).toEqual([{ antigua: 1 }])
  })

  it('are left unchanged when the database has a migration of a newer release', async () => {
    const sql = await openMigrated()
    // These two statements remove a function and a migration that this release would add.
    await sql`drop function is_modulo_de_sistema`
    await sql`delete from migracion where nombre = ${MIGRATIONS[0] ?? ''}`
    await sql`insert into migracion (nombre) values ('9999_siguiente.sql')`
    expect(await migrate(sql)).toBe(undefined)
    expect(await sql`select to_regproc('is_modulo_de_sistema') as funcion`).toEqual([
      { funcion: null },
    ])
  })
})
