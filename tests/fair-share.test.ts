import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeEach, expect, it } from 'vitest'
import { BUSY } from './answers.js'
import { PNG, testApp } from './app.js'
import { countWaiting } from './hold.js'
import { serve } from './serve.js'
import { addSessions } from './users.js'

const POOL_MAX = 4
const SHARE = POOL_MAX / 2
const MAX_WAITING = 64

const service = await testApp({ DATABASE_POOL_MAX: String(POOL_MAX) })
const { app, call, sql } = service

/** A user who sends too many requests, and another one. Each test has new ones. */
let one: { id: number; token: string }
let other: typeof one
beforeEach(async () => {
  const [first, second] = await addSessions(service, 2)
  if (!first || !second) throw new Error('no sessions')
  one = first
  other = second
})

const list = (token: string) => call('GET', '/api/modulo/list', undefined, { token })

/** Sends a write that waits for the row that `whileLocked` has locked. */
function write({ token }: typeof one) {
  const body = { strNombrePerfil: 'otro', bitAdministrador: true }
  return call('PUT', '/api/perfil/1', body, { token })
}

const whileLocked = (work: () => Promise<unknown>) =>
  sql.begin(async (tx) => {
    await tx`select from perfil where id = 1 for update`
    await work()
  })

/** Waits until `count` sessions of the database wait for a lock. */
const expectLocked = (count: number) => expect.poll(() => countWaiting(sql)).toBe(count)

it('answers another session while one session sends 200 statements that wait for a lock', async () => {
  let writes: Promise<unknown[]> | undefined
  await whileLocked(async () => {
    writes = Promise.all(Array.from({ length: 200 }, () => write(one)))
    await expectLocked(SHARE)
    for (let request = 0; request < 20; request += 1) {
      const begin = performance.now()
      expect(await list(other.token)).toMatchObject({ status: 200 })
      expect(performance.now() - begin).toBeLessThan(1000)
    }
    expect(await countWaiting(sql)).toBe(SHARE)
  })
  await writes
})

it('lets 64 statements of one session wait, and answers 503 to the next', async () => {
  let writes: Promise<{ status: number }[]> | undefined
  await whileLocked(async () => {
    writes = Promise.all(Array.from({ length: SHARE + MAX_WAITING }, () => write(one)))
    await expectLocked(SHARE)
    const refused = await list(one.token)
    expect(refused).toMatchObject({ ...BUSY, headers: { 'retry-after': '5' } })
  })
  const statuses = (await writes)?.map(({ status }) => status)
  expect(new Set(statuses)).toEqual(new Set([200]))
})

it('counts the requests of all tokens of one user together', async () => {
  const again = app.jwt.sign({ id: one.id, idPerfil: 1, nombre: 'otra', extra: 1 } as never)
  const writes: Promise<unknown>[] = []
  await whileLocked(async () => {
    for (const token of [one.token, again]) {
      for (let request = 0; request < SHARE; request += 1) writes.push(write({ ...one, token }))
    }
    await expectLocked(SHARE)
    expect(service.pool.usage()).toEqual({ running: SHARE, waiting: 0 })
  })
  await Promise.all(writes)
})

it('lets the look-ups of sessions have two connections at most', async () => {
  const lists: Promise<unknown>[] = []
  await sql.begin(async (tx) => {
    await tx`lock table usuario`
    while (lists.length < POOL_MAX) {
      lists.push(list(one.token))
      await sleep(20)
    }
    expect(service.pool.usage()).toEqual({ running: 2, waiting: 0 })
  })
  expect(await Promise.all(lists)).toMatchObject(Array(POOL_MAX).fill({ status: 200 }))
})

it('answers requests for the user’s own permission map while the user’s statements wait', async () => {
  let writes: Promise<unknown[]> | undefined
  await whileLocked(async () => {
    writes = Promise.all(Array.from({ length: 2 * SHARE }, () => write(one)))
    await expectLocked(SHARE)
    const { token } = one
    const map = await call('GET', '/api/permisos/mis-permisos/1', undefined, { token })
    expect(map).toMatchObject({ status: 200 })
  })
  await writes
})

it('answers the other requests of a user whose uploads wait for a silent image host', async () => {
  const received: Socket[] = []
  const url = await serve(({ socket }) => void received.push(socket))
  const silent = await testApp({
    DATABASE_POOL_MAX: '2',
    CLOUDINARY_URL: `cloudinary://1:x@nube?upload_prefix=${url}`,
  })
  const [uploader] = await addSessions(silent, 1)
  const token = uploader?.token ?? ''
  const usuario = { idPerfil: 1, strPwd: 'una clave', imagenBase64: PNG }
  const uploads = ['a', 'b', 'c'].map((nombre) => {
    const names = { strNombreUsuario: `${nombre} sube`, strCorreo: `${nombre}@sube.es` }
    return silent.call('POST', '/api/usuario', { ...usuario, ...names }, { token })
  })
  await expect.poll(() => received.length).toBe(3)
  for (let request = 0; request < 10; request += 1) {
    const begin = performance.now()
    const answer = await silent.call('GET', '/api/modulo/list', undefined, { token })
    expect(answer).toMatchObject({ status: 200 })
    expect(performance.now() - begin).toBeLessThan(1000)
  }
  for (const connection of received) connection.destroy()
  for (const { status } of await Promise.all(uploads)) expect(status).toBe(500)
})
