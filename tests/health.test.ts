import { expect, it } from 'vitest'
import { NOT_READY, READY, withoutHeaders } from './answers.js'
import { testApp } from './app.js'
import { holdStatements } from './hold.js'

const { call, pool, sql } = await testApp({ DATABASE_POOL_MAX: '1' })

const ask = async (url: string) =>
  withoutHeaders(await call('GET', url, undefined, { token: null }))

it('sends one statement for all requests to /health/ready that arrive together', async () => {
  let answers: Promise<unknown[]> | undefined
  await holdStatements(pool, sql, 1, async () => {
    await expect.poll(pool.usage).toEqual({ running: 1, waiting: 0 })
    answers = Promise.all(Array.from({ length: 20 }, () => ask('/health/ready')))
    await expect.poll(pool.usage).toEqual({ running: 1, waiting: 1 })
  })
  expect(await answers).toEqual(Array(20).fill(READY))
})

it('answers 503 at /health/ready while require_primary raises an error', async () => {
  await pool`alter function require_primary rename to require_primary_of_old`
  await pool`create function require_primary() returns boolean language plpgsql stable
    as 'begin raise read_only_sql_transaction; end'`
  expect(await ask('/health/ready')).toEqual(NOT_READY)
  expect(await ask('/health/live')).toEqual(READY)
  await pool`drop function require_primary`
  await pool`alter function require_primary_of_old rename to require_primary`
  expect(await ask('/health/ready')).toEqual(READY)
})
