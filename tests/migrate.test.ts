import { hash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Sql } from 'postgres'
import { describe, expect, it } from 'vitest'
import { MIGRATION_LOCK, migrate } from '../src/database/migrations.js'
import { VERSION } from '../src/version.js'
import { cloneDatabase } from './app.js'
import { connectTo } from './connect.js'
import { countWaiting } from './hold.js'
import { cells } from './markdown.js'

const MIGRATIONS = (await readdir('sql/migrations')).sort()

/** Connects to a database that has been migrated. */
const openMigrated = async () => connectTo(await cloneDatabase())
/** Connects to a database without tables. */
const openEmpty = async () => connectTo(await cloneDatabase('template0'))

it('applies every migration once, in order, and returns their names', async () => {
  const sql = await openEmpty()
  expect(await migrate(sql)).toEqual(MIGRATIONS)
  expect(await migrate(sql)).toEqual([])
  const [row] = await sql`select array(select nombre from migracion order by nombre) as nombres`
  expect(row?.nombres).toEqual(MIGRATIONS)
})

it('waits for a migration by another replica, whatever the defaults of the server are', async () => {
  const url = await cloneDatabase('template0')
  const defaults = {
    statement_timeout: '100',
    default_transaction_isolation: 'repeatable read',
  }
  const [holder, watcher] = [connectTo(url), connectTo(url)]
  const [one, other] = [connectTo(url, defaults), connectTo(url, defaults)]
  let answers: Promise<unknown[]> | undefined
  await holder.begin(async (tx) => {
    await tx`select pg_advisory_xact_lock(${MIGRATION_LOCK})`
    answers = Promise.all([migrate(one), migrate(other)])
    await expect.poll(() => countWaiting(watcher)).toBe(2)
    // Meanwhile the statement_timeout would cancel both.
    await sleep(250)
  })
  expect((await answers)?.toSorted()).toEqual([[], MIGRATIONS])
})

it('creates the triggers in the table of sql/README.md, and no others', async () => {
  const text = await readFile('sql/README.md', 'utf8')
  const [, section = ''] = text.split(/^## The (?:triggers|audit)$/m)
  const inCode = (cell = '') => [...cell.matchAll(/`([^`]+)`/g)].map(([, text]) => text)
  const listed = section.split('\n').flatMap((line) => {
    const [triggers, tables] = cells(line)
    return inCode(triggers).flatMap((name) => inCode(tables).map((table) => `${table}.${name}`))
  })

  const sql = await openMigrated()
  const rows = await sql<{ name: string }[]>`
    select tgrelid::regclass || '.' || tgname as name from pg_trigger where not tgisinternal
  `
  expect(listed.toSorted()).toEqual(rows.map(({ name }) => name).toSorted())
})

it('rolls everything back when a migration fails', async () => {
  const sql = await openEmpty()
  await sql`create table usuario ()`
  await expect(migrate(sql)).rejects.toThrow('relation "usuario" already exists')
  expect(await sql`select to_regclass('migracion') as tabla`).toEqual([{ tabla: null }])
})

describe('the functions', () => {
  const isSistema = async (sql: Sql) =>
    (await sql`select is_modulo_de_sistema('USUARIO') as si`)[0]?.si

  /** Replaces is_modulo_de_sistema by a function that always returns false. */
  const falsify = (sql: Sql) => sql`
    create or replace function is_modulo_de_sistema(p_nombre text) returns boolean
    language sql immutable as 'select false'
  `

  /** Sets the comment that says which release has created the functions. */
  const comment = (sql: Sql, text: string) => sql.unsafe(`comment on table migracion is '${text}'`)

  it('have one file each, which has their name', async () => {
    for (const folder of ['sql/functions', 'sql/transactions']) {
      for (const name of await readdir(folder)) {
        const created = (await readFile(`${folder}/${name}`, 'utf8')).match(/^create [^(]+\(/gm)
        expect(created).toEqual([`create or replace function ${name.replace('.sql', '(')}`])
      }
    }
  })

  it('have a checksum of all files', async () => {
    const sql = await openMigrated()
    const texts: string[] = []
    for (const folder of ['sql/functions', 'sql/transactions']) {
      for (const name of (await readdir(folder)).sort()) {
        texts.push(await readFile(`${folder}/${name}`, 'utf8'))
      }
    }
    const checksum = hash('sha256', texts.join(';\n'))
    const [row] = await sql`select obj_description('migracion'::regclass) as comment`
    expect(row?.comment).toBe(`functions ${VERSION} ${checksum}`)
  })

  it('stay as they are in the database when the text of the files has not changed', async () => {
    const sql = await openMigrated()
    await falsify(sql)
    await migrate(sql)
    expect(await isSistema(sql)).toBe(false)
  })

  it('are replaced unless a newer release has created them', async () => {
    const sql = await openMigrated()
    const [major = 0, minor = 0, patch = 0] = VERSION.split('.').map(Number)
    for (const [text, si] of [
      // Release 0.2.0 has no such comment, and an operator may remove it (sql/README.md).
      ['', true],
      ['functions 0.0.0 0123456789abcdef', true],
      [`functions ${VERSION} 0123456789abcdef`, true],
      [`functions ${major}.${minor}.${patch + 1} 0123456789abcdef`, false],
      [`functions ${major}.${minor + 10}.0 0123456789abcdef`, false],
    ] as const) {
      await falsify(sql)
      await comment(sql, text)
      await migrate(sql)
      expect({ text, si: await isSistema(sql) }).toEqual({ text, si })
    }
  })

  it('are kept when they belong to an older release and have no file', async () => {
    const sql = await openMigrated()
    await sql`create function antigua() returns integer language sql as 'select 1'`
    await comment(sql, 'functions 0.0.0 0123456789abcdef')
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
