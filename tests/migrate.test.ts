import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import postgres, { type Sql } from 'postgres'
import { beforeEach, expect, inject, it, onTestFinished } from 'vitest'
import { migrate } from '../src/database/migrations.js'
import { databaseUrl } from './postgres.js'

/** A folder of sql/: its files' names and texts. */
async function readSql(folder: string): Promise<[name: string, text: string][]> {
  const url = new URL(`../sql/${folder}/`, import.meta.url)
  const names = (await readdir(url)).sort()
  return Promise.all(names.map(async (name) => [name, await readFile(new URL(name, url), 'utf8')]))
}

const migrations = await readSql('migrations')
const functions = [...(await readSql('functions')), ...(await readSql('transactions'))]
const MIGRATIONS = migrations.map(([name]) => name)

/** The newest migration, and a hash over the functions that belong to it. */
const VERSION = [
  '0006_restauracion.sql',
  '15d54cfe63b3caf0ee37e22614a6ef127a986a589b7ba1490fa13ca651ec099c',
]

let open: () => Sql

beforeEach(async () => {
  const server = postgres(inject('serverUrl'), { max: 1, onnotice: () => {} })
  const name = `vacia_${process.pid}_${Date.now()}`
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

it('applies every migration once, in order, and says which', async () => {
  const sql = open()
  expect(await migrate(sql)).toEqual(MIGRATIONS)
  expect(await migrate(sql)).toEqual([])
  const rows = await sql<
    { nombre: string }[]
  >`select nombre from migracion order by aplicada, nombre`
  expect(rows.map(({ nombre }) => nombre)).toEqual(MIGRATIONS)
})

it('puts the functions back every time', async () => {
  const sql = open()
  await migrate(sql)
  await sql`drop function is_modulo_de_sistema`
  await migrate(sql)
  expect(await sql`select is_modulo_de_sistema('USUARIO') as si`).toEqual([{ si: true }])
})

it('changes nothing where a newer release has been, and says so', async () => {
  const sql = open()
  await migrate(sql)
  await sql`drop function is_modulo_de_sistema`
  await sql`delete from migracion where nombre = ${MIGRATIONS[0] ?? ''}`
  await sql`insert into migracion (nombre) values ('9999_siguiente.sql')`
  expect(await migrate(sql)).toBe(undefined)
  expect(await sql`select to_regproc('is_modulo_de_sistema') as funcion`).toEqual([
    { funcion: null },
  ])
})

it('comes with a migration for every change to the functions', () => {
  const hash = createHash('sha256')
  for (const [, text] of functions) hash.update(text.replace(/^ *--.*\n/gm, ''))
  expect(
    [MIGRATIONS.at(-1), hash.digest('hex')],
    'The functions have changed: replicas of the release before would put theirs back. Add a ' +
      'migration, be it of one comment, unless the newest is of this release; then set VERSION.',
  ).toEqual(VERSION)
})

it('leaves the functions of sql/, once each, and no other', async () => {
  const sql = open()
  await migrate(sql)
  const rows = await sql<{ name: string }[]>`
    select proname as name from pg_proc
    where pronamespace = 'public'::regnamespace
      and not exists (select from pg_depend where objid = pg_proc.oid and deptype = 'e')
  `
  const declared = [...migrations, ...functions].flatMap(([, text]) =>
    [...text.matchAll(/^create (?:or replace )?function (\w+)/gm)].map(([, name]) => name),
  )
  expect(rows.map(({ name }) => name).toSorted()).toEqual(declared.toSorted())
})

it('lets those that start together wait for one another, however long', async () => {
  const [holder, one, other] = [open(), open(), open()]
  for (const sql of [one, other]) await sql`set statement_timeout = 200`
  const ended: string[] = []
  let answers: Promise<unknown[]> | undefined
  await holder.begin(async (tx) => {
    // The lock that migrate() takes.
    await tx`select pg_advisory_xact_lock(7305511402)`
    answers = Promise.all([migrate(one), migrate(other)]).finally(() => ended.push('migrate'))
    await new Promise((done) => setTimeout(done, 500))
    ended.push('holder')
  })
  expect((await answers)?.toSorted()).toEqual([[], MIGRATIONS])
  expect(ended).toEqual(['holder', 'migrate'])
})

it('leaves nothing behind when it fails', async () => {
  const sql = open()
  await sql`create table usuario ()`
  await expect(migrate(sql)).rejects.toThrow('relation "usuario" already exists')
  expect(await sql`select to_regclass('migracion') as tabla`).toEqual([{ tabla: null }])
})
