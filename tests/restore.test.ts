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

const TABLES = ['perfil', 'modulo', 'permisos_perfil', 'usuario', 'migracion', 'auditoria']

/** Statements that remove the whole schema, or only the rows. */
const WITHOUT_SCHEMA = 'drop schema public cascade; create schema public'
const WITHOUT_ROWS = `
  set session_replication_role = replica;
  truncate ${TABLES}`

/** Reads all rows, in the order of their primary keys, which are the first columns. */
const content = (sql: postgres.Sql) =>
  Promise.all(TABLES.map((table) => sql`select * from ${sql(table)} order by 1`))

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

    const url = await cloneDatabase()
    const target = postgres(url, { max: 1, onnotice: () => {} })
    await target.unsafe(emptying)
    const restoring = run('pg_restore', [...options, '--no-owner', `--dbname=${url}`], {
      env: { ...process.env, PGOPTIONS },
    })
    restoring.child.stdin?.end(dump)
    expect((await restoring).stderr).toBe('')

    expect(await content(target)).toEqual(await content(sql))
    await target.end()
    const restored = await testApp({ DATABASE_URL: url })
    const created = await restored.call('POST', '/api/perfil', { strNombrePerfil: 'nuevo' })
    expect(created.body.data).toMatchObject({ id: id + 2 })
  },
)
