import { execFile, spawnSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { testApp } from '../app.js'
import { installed } from './program.js'

const promtool = installed('promtool')
const skipNote = promtool ? '' : ' (skipped: promtool is not installed)'

const { app, call } = await testApp({ METRICS: 'true' })
await call('GET', '/api/perfil')
const { body: metrics } = await app.inject('/metrics')

it.skipIf(!promtool)(
  `the alert rules fire when they should, with their severities${skipNote}`,
  async () => {
    const args = ['test', 'rules', 'tests/alerts.yml']
    const { stdout } = await promisify(execFile)(promtool ?? '', args)
    expect(stdout).toContain('SUCCESS')
  },
)

it.skipIf(!promtool)(`promtool check metrics accepts the metrics${skipNote}`, () => {
  const options = { input: metrics, encoding: 'utf8' } as const
  const { status, stdout, stderr } = spawnSync(promtool ?? '', ['check', 'metrics'], options)
  expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: '', stderr: '' })
})

it('the alert rules name metrics and labels that exist', async () => {
  const rules = await readFile(new URL('../../deploy/alerts.yml', import.meta.url), 'utf8')
  const names = rules.match(/\b(http|llavero)_\w+/g) ?? []
  const labels = rules.match(/(?<=[{ ])\w+="/g) ?? []
  // Prometheus adds the label `job`.
  const asked = new Set([...names, ...labels.filter((label) => label !== 'job="')])
  expect(asked.size).toBe(10)
  const backup = await readFile(new URL('../../deploy/backup', import.meta.url), 'utf8')
  for (const text of asked) expect(metrics + backup).toContain(text)
})
