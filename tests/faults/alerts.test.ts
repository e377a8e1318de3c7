import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { testApp } from '../app.js'
import { installed } from './program.js'

const promtool = installed('promtool')
const unless = promtool ? '' : ' (skipped: promtool is not installed)'

it.skipIf(!promtool).each([
  ['are valid', 'check', 'alerts.yml'],
  ['say what they should', 'test', 'tests/alerts.yml'],
])(`the alert rules %s${unless}`, async (_, command, file) => {
  const { stdout } = await promisify(execFile)(promtool ?? '', [command, 'rules', file])
  expect(stdout).toContain('SUCCESS')
})

it('the alert rules name metrics and labels that there are', async () => {
  const { app, call } = await testApp({ METRICS: 'true' })
  await call('GET', '/api/perfil')
  const { body: metrics } = await app.inject('/metrics')
  const rules = await readFile(new URL('../../alerts.yml', import.meta.url), 'utf8')
  const names = rules.match(/\b(http|llavero)_\w+/g) ?? []
  const labels = rules.match(/(?<=[{ ])\w+="/g) ?? []
  // Prometheus itself gives each its job.
  const asked = new Set([...names, ...labels.filter((label) => label !== 'job="')])
  expect(asked.size).toBe(7)
  for (const text of asked) expect(metrics).toContain(text)
})
