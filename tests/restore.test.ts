import { execFile, spawnSync } from 'node:child_process'
import { promisify } from 'node:util'
import postgres from 'postgres'
import { expect, inject, it } from 'vitest'
import { cloneDatabase, testApp } from './app.js'

const run = promisify(execFile)
const admin = postgres(inject('serverUrl'), { max: 1 })
const [server] = await admin`select current_setting('server_version_num')::integer / 10000 as major`
await admin.end()
const dumpVersion = spawnSync('pg_dump', ['--version'], { encoding: 'utf8' }).stdout?.match(
  /\d+/,
)?.[0]
/** Whether pg_dump can dump the server. It refuses a server that is newer than itself. */
const isUsable = Number(dumpVersion ?? 0) >= server?.major

/** Copies the migrated database and empties the copy with a statement; returns its URL. */
async function cloneEmptied(statement: string) {
  const url = await cloneDatabase()
  const sql = postgres(url, { max: 1, onnotice: () => {} })
  await sql.unsafe(statement)
  await sql.end()
  return url
}

/** Statements that remove the whole schema, or only the rows. */
const WITHOUT_SCHEMA = 'drop schema public cascade; create schema public'
const WITHOUT_ROWS = `
  set session_replication_role = replica;
  truncate perfil, modulo, permisos_perfil, usuario, migracion, auditoria`

const content = (sql: postgres.Sql) =>
  Promise.all([
    sql`select * from perfil order by id`,
    sql`select * from modulo order by id`,
    sql`select * from permisos_perfil order by id`,
    sql`select * from usuario order by id`,
    sql`select * from auditoria order by id`,
    sql`select nombre, aplicada from migracion order by nombre`,
  ])

it.skipIf(!isUsable).each([
  ['schema and data into an empty database', WITHOUT_SCHEMA, [], ''],
  ['data alone', WITHOUT_ROWS, ['--data-only'], '-c session_replication_role=replica'],
])(
  `restores a backup completely: %s (pg_dump ${dumpVersion}, server ${server?.major})`,
  async (_, emptying, options, PGOPTIONS) => {
    const { config, call, sql } = await testApp()
    const perfil = { strNombrePerfil: 'otro', bitAdministrador: true }
    const { id } = (await call('POST', '/api/perfil', perfil)).body.data
    await call('POST', '/api/modulo', { strNombreModulo: 'ventas' })
    await call('POST', '/api/permisos/guardar-matriz', {
      idPerfil: (await call('POST', '/api/perfil', { strNombrePerfil: 'ventas' })).body.data.id,
      permisos: [{ idModulo: 1, bitEditar: true }, { idModulo: 5 }],
    })
    await call('DELETE', `/api/perfil/${id}`)
    const { stdout: dump } = await run('pg_dump', ['--format=custom', config.DATABASE_URL.url], {
      encoding: 'buffer',
    })

    const url = await cloneEmptied(emptying)
    const restoring = run('pg_restore', [...options, '--no-owner', `--dbname=${url}`], {
      env: { ...process.env, PGOPTIONS },
    })
    restoring.child.stdin?.end(dump)
    expect((await restoring).stderr).toBe('')

    const direct = postgres(url, { max: 1 })
    expect(await content(direct)).toEqual(await content(sql))
    await direct.end()
    const restored = await testApp({ DATABASE_URL: url })
    const created = await restored.call('POST', '/api/perfil', { strNombrePerfil: 'nuevo' })
    expect(created.body.data).toMatchObject({ id: id + 2 })
  },
)
