import { execFileSync, spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { installed } from './program.js'

const SCRIPTS = ['administrator', 'backup', 'replace', 'restore', 'rotate-key']
const shellcheck = installed('shellcheck')
const skipNote = shellcheck ? '' : ' (skipped: shellcheck is not installed)'

/** Runs a script of deploy/ as if no Docker engine answered. */
function run(name: string, ...args: string[]) {
  const options = { env: { PATH: '/usr/bin:/bin', DOCKER_HOST: 'tcp://127.0.0.1:1' } }
  const { status, stdout, stderr } = spawnSync(`deploy/${name}`, args, options)
  return { status, stdout: `${stdout}`, stderr: `${stderr}` }
}

it.skipIf(!shellcheck)(`the shell scripts pass ShellCheck${skipNote}`, () => {
  const scripts = [...SCRIPTS, 'common.sh'].map((name) => `deploy/${name}`)
  const own = readdirSync('.ci').map((name) => `.ci/${name}`)
  expect(execFileSync(shellcheck ?? '', [...scripts, ...own], { encoding: 'utf8' })).toBe('')
})

describe.each(SCRIPTS)('deploy/%s', (name) => {
  it('prints its usage with --help', () => {
    const { status, stdout, stderr } = run(name, '--help')
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(stdout).toMatch(new RegExp(`^Usage: deploy/${name}( .*)?\n\n.{60,}`, 's'))
  })

  it('refuses an option that it does not know', () => {
    const further = name === 'administrator' ? ['x@example.com'] : []
    const { status, stdout, stderr } = run(name, '--unknown', ...further)
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
    expect(stderr).toContain(`See deploy/${name} --help.`)
  })

  it('ends with an error of one line when no Docker engine answers', () => {
    const args = { restore: ['x.dump'], administrator: ['admin', 'admin@example.com'] }[name] ?? []
    const { status, stdout, stderr } = run(name, ...args)
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
    expect(stderr).toMatch(new RegExp(`^deploy/${name}: .*docker .*\\.\n$`, 'i'))
  })
})
