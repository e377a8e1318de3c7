import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { BUSY } from './answers.js'
import { PNG, testApp } from './app.js'
import { usuario } from './endpoints.js'
import { type Step, sendDuring } from './hold.js'
import { serve } from './serve.js'
import { addSessions } from './users.js'

const POOL_MAX = 4
const SHARE = POOL_MAX / 2
const MAX_WAITING = 64

const service = await testApp({ DATABASE_POOL_MAX: String(POOL_MAX) })
const { app, call, sql } = service

/** The sessions of a user who sends too many requests, and of another one. */
const [one = '', other = ''] = (await addSessions(service, 2)).map(({ token }) => token)

const list = (token: string) => call('GET', '/api/modulo/list', undefined, { token })

/** Locks a table that neither look-ups of sessions nor lists nor maps read. */
const lock: Step = (tx) => tx`lock table auditoria`
/** Sends a request that waits for this lock. */
const read = (token: string) => call('GET', '/api/auditoria', undefined, { token })
/** Sends `requests`, of which SHARE wait for the lock, and calls `meanwhile`. */
const whileLocked = (requests: (() => ReturnType<typeof read>)[], meanwhile: () => Promise<void>) =>
  sendDuring(sql, lock, () => Promise.all(requests.map((send) => send())), {
    count: SHARE,
    meanwhile,
  })

it('lets 64 statements of one session wait, refuses the next, and answers other sessions and own maps', async () => {
  const requests = Array(SHARE + MAX_WAITING).fill(() => read(one))
  const answers = await whileLocked(requests, async () => {
    const refused = await list(one)
    expect(refused).toMatchObject({ ...BUSY, headers: { 'retry-after': '5' } })
    expect(await list(other)).toMatchObject({ status: 200 })
    const map = await call('GET', '/api/permisos/mis-permisos/1', undefined, { token: one })
    expect(map).toMatchObject({ status: 200 })
  })
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
})

it('counts the requests of all tokens of one user together', async () => {
  const again = app.jwt.sign({ ...app.jwt.decode<object>(one), extra: 1 } as never)
  const requests = [one, one, again, again].map((token) => () => read(token))
  await whileLocked(requests, async () => {
    expect(service.pool.usage()).toEqual({ running: SHARE, waiting: 0 })
  })
})

it('lets the look-ups of sessions have two connections at most', async () => {
  const lists: Promise<unknown>[] = []
  await sql.begin(async (tx) => {
    await tx`lock table usuario`
    while (lists.length < POOL_MAX) {
      lists.push(list(one))
      await sleep(20)
    }
    expect(service.pool.usage()).toEqual({ running: 2, waiting: 0 })
  })
  expect(await Promise.all(lists)).toMatchObject(Array(POOL_MAX).fill({ status: 200 }))
})

it('answers the other requests of a user whose uploads wait for a silent image host', async () => {
  const received: Socket[] = []
  const url = await serve(({ socket }) => void received.push(socket))
  const silent = await testApp({
    DATABASE_POOL_MAX: '2',
    CLOUDINARY_URL: `cloudinary://1:x@nube?upload_prefix=${url}`,
  })
  const uploads = ['a', 'b', 'c'].map((nombre) =>
    silent.call('POST', '/api/usuario', usuario(nombre, { imagenBase64: PNG })),
  )
  await expect.poll(() => received.length).toBe(3)
  const answer = await silent.call('GET', '/api/modulo/list')
  expect(answer).toMatchObject({ status: 200 })
  for (const connection of received) connection.destroy()
  for (const { status } of await Promise.all(uploads)) expect(status).toBe(500)
})
