import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import postgres from 'postgres'
import { expect, it } from 'vitest'
import { cloneDatabase } from '../app.js'
import { closeAtEnd } from '../cleanup.js'
import { READY, usuario } from '../endpoints.js'
import { type Service, startService } from './service.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const MIGRATION = '9999_siguiente.sql'

/** This build with a migration, a changed function, and a new one whose file comes before what it calls. */
async function makeNextRelease() {
  const folder = await mkdtemp(join(tmpdir(), 'llavero-next-'))
  closeAtEnd(() => rm(folder, { recursive: true }))
  for (const part of ['dist', 'sql', 'package.json'])
    await cp(join(ROOT, part), join(folder, part), { recursive: true })
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'))

  const sql = (path: string) => join(folder, 'sql', path)
  await writeFile(sql(`migrations/${MIGRATION}`), 'alter table usuario add column nueva text')
  const define = (name: string, body: string) =>
    writeFile(
      sql(`functions/${name}.sql`),
      `create or replace function ${name}() returns text language sql as $$ select ${body} $$`,
    )
  await define('a_caller', 'b_called()')
  await define('b_called', "' NUEVO'")
  const insertModulo = await readFile(sql('transactions/insert_modulo.sql'), 'utf8')
  const changed = insertModulo.replace('values (p_nombre)', 'values (p_nombre || a_caller())')
  expect(changed).not.toBe(insertModulo)
  await writeFile(sql('transactions/insert_modulo.sql'), changed)
  return [join(folder, 'dist/server.js')]
}

/**
 * Requests of every kind to a replica; gives how many it answered, and throws at one that fails.
 * `name` makes what they write theirs.
 */
async function useEverything(service: Service, name: string) {
  const token = await service.login()
  let answered = 1
  const ask = async (method: string, path: string, body?: object) => {
    const answer = await service.call(method, `/api/${path}`, body, token)
    expect({ path, ...answer }).toMatchObject({ path, status: 200, body: { success: true } })
    answered += 1
    return answer.body.data
  }
  const modulo = await ask('POST', 'modulo', { strNombreModulo: name })
  const perfil = await ask('POST', 'perfil', { strNombrePerfil: name })
  const permiso = { idPerfil: perfil.id, idModulo: modulo.id, bitConsulta: true }
  await ask('POST', 'permisos/guardar-matriz', { idPerfil: perfil.id, permisos: [permiso] })
  const otro = await ask('POST', 'permisos', { ...permiso, idModulo: 1 })
  const persona = usuario(name, { idPerfil: perfil.id })
  await ask('POST', 'usuario', persona)
  const [creado] = await ask('GET', `usuario?search=${name}`)

  await ask('PUT', `modulo/${modulo.id}`, { strNombreModulo: `${name} 2` })
  await ask('PUT', `perfil/${perfil.id}`, { strNombrePerfil: name, bitAdministrador: false })
  await ask('PUT', `permisos/${otro.id}`, { ...permiso, idModulo: 2 })
  await ask('PUT', `usuario/${creado.id}`, persona)
  for (const list of ['usuario', 'perfil', 'perfil/list', 'modulo', 'modulo/list', 'permisos'])
    await ask('GET', list)
  await ask('GET', `usuario/${creado.id}`)
  await ask('GET', `permisos/por-perfil/${perfil.id}`)
  await ask('GET', `permisos/mis-permisos/${perfil.id}`)

  await ask('DELETE', `permisos/${otro.id}`)
  await ask('DELETE', `usuario/${creado.id}`)
  await ask('DELETE', `perfil/${perfil.id}`)
  await ask('DELETE', `modulo/${modulo.id}`)
  return answered
}

it('an old replica serves beside a newer one, and started anew changes nothing', async () => {
  const env = { DATABASE_URL: await cloneDatabase() }
  const sql = postgres(env.DATABASE_URL, { max: 1 })
  closeAtEnd(() => sql.end())
  const readVersion = () => sql`
    select array(select nombre || aplicada from migracion order by nombre) as migraciones,
      array(select proname || prosrc from pg_proc where pronamespace = 'public'::regnamespace
        order by 1) as funciones
  `
  const old = await startService(env)
  let isRunning = true
  const load = async (client: number) => {
    let answered = 0
    for (let n = 0; isRunning; n++) answered += await useEverything(old, `C${client}N${n}`)
    return answered
  }
  const upgrade = async () => {
    await sleep(500)
    const started = await startService(env, await makeNextRelease())
    await sleep(1000)
    isRunning = false
    return started
  }
  const [next, ...answered] = await Promise.all([upgrade(), load(1), load(2), load(3)])
  console.log('requests to the old replica meanwhile:', answered)
  expect(next.lines()).toContainEqual(expect.objectContaining({ applied: [MIGRATION] }))
  const version = await readVersion()
  const body = { strNombreModulo: 'X' }
  const created = await old.call('POST', '/api/modulo', body, await old.login())
  expect(created.body.data).toMatchObject({ strNombreModulo: 'X NUEVO' })

  old.child.kill('SIGTERM')
  await old.ended
  const restarted = await startService(env)
  expect(await readVersion()).toEqual(version)
  const msg = 'the schema is newer than this release: nothing is changed'
  expect(restarted.lines()).toContainEqual(expect.objectContaining({ msg }))
  expect(await restarted.call('GET', '/health/ready')).toEqual(READY)
  await useEverything(restarted, 'restarted')
  await useEverything(next, 'next')
})
