import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { maxConnections } from '../src/descriptors.js'

const folder = await mkdtemp(join(tmpdir(), 'llavero-limits-'))
afterAll(() => rm(folder, { recursive: true }))

it.each([
  ['1024', 412],
  ['1048576', 524188],
  ['100', 1],
  ['unlimited', undefined],
])('with %s descriptors at most there are %s connections', async (soft, connections) => {
  const file = join(folder, soft)
  const limits = [
    'Limit                     Soft Limit           Hard Limit           Units',
    'Max processes             31234                31234                processes',
    `Max open files            ${soft.padEnd(20)} 1048576              files`,
    'Max locked memory         8388608              8388608              bytes',
  ]
  await writeFile(file, limits.join('\n'))
  expect(maxConnections(file)).toBe(connections)
})

it('where nothing says how many, there is no limit', async () => {
  const empty = join(folder, 'empty')
  await writeFile(empty, '')
  expect(maxConnections(empty)).toBeUndefined()
  expect(maxConnections(join(folder, 'nowhere'))).toBeUndefined()
})
