import { execFile, spawnSync } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, inject, it } from 'vitest'
import { cloneDatabase, testApp } from './app.js'
import { connectTo } from './connect.js'
import { readTables, TABLES } from './tables.js'

const run = promisify(execFile)
const [server] = await connectTo(
  inject('serverUrl'),
)`select current_setting('server_version_num')::integer / 10000 as major`
const dumpVersion = spawnSync('pg_dump', ['--version'], { encoding: 'utf8' }).stdout?.match(
  /\d+/,
)?.[0]
/** Whether pg_dump can dump the server. It refuses a server that is newer than itself. */
const isUsable = Number(dumpVersion ?? 0) >= server?.major

/** The tables besides those of the records. */
const MORE = ['migracion', 'auditoria']

/** Statements that remove the whole schema, or only the rows. */
const WITHOUT_SCHEMA = 'drop schema public cascade; create schema public'
const WITHOUT_ROWS = `
  set session_replication_role = replica;
  truncate ${[...TABLES, ...MORE]}`

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
    const target = connectTo(url)
    await target.unsafe(emptying)
    const restoring = run('pg_restore', [...options, '--no-owner', `--dbname=${url}`], {
      env: { ...process.env, PGOPTIONS },
    })
    restoring.child.stdin?.end(dump)
    expect((await restoring).stderr).toBe('')

    expect(await readTables(target, ...MORE)).toEqual(await readTables(sql, ...MORE))
    const restored = await testApp({ DATABASE_URL: url })
    const created = await restored.call('POST', '/api/perfil', { strNombrePerfil: 'nuevo' })
    expect(created.body.data).toMatchObject({ id: id + 2 })
  },
)
