import { readdir } from 'node:fs/promises'
import postgres, { type Sql } from 'postgres'
import { beforeEach, expect, inject, it, onTestFinished } from 'vitest'
import { migrate } from '../src/database/migrations.js'
import { databaseUrl } from './postgres.js'

const MIGRATIONS = (await readdir(new URL('../sql/migrations/', import.meta.url))).sort()

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

it('lets those that start together wait for one another, however long', async () => {
  const [holder, one, other] = [open(), open(), open()]
  for (const sql of [one, other]) await sql`set statement_timeout = 200`
  const ended: string[] = []
  let answers: Promise<string[][]> | undefined
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
