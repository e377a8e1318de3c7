import { type Browser, chromium } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { insertMuestra } from '../../src/dev/muestra.js'
import { cloneDatabase } from '../app.js'
import { DEV_ADMIN, type Example, examplesOf, GIVEN_ALREADY } from '../examples.js'
import { installed } from './program.js'
import { startService } from './service.js'

const executablePath = installed('chromium')
/** Switches off what the browser would load besides the page. */
const QUIET = ['--disable-background-networking', '--disable-component-update', '--disable-sync']

let address: string
let browser: Browser
let examples: Example[]
beforeAll(async () => {
  if (!executablePath) return
  const DATABASE_URL = await cloneDatabase()
  const { strNombreUsuario: ADMIN_USERNAME, strPwd: ADMIN_PASSWORD } = DEV_ADMIN
  address = (await startService({ DATABASE_URL, ADMIN_USERNAME, ADMIN_PASSWORD })).address
  await insertMuestra(DATABASE_URL)
  examples = examplesOf(await (await fetch(`${address}/docs/json`)).json())
  browser = await chromium.launch({ executablePath, args: ['--no-sandbox', ...QUIET] })
})
afterAll(() => browser?.close())

const DONE = { status: 200, body: { success: true } }

/** Opens the page and waits for the operations. */
async function openPage() {
  const page = await browser.newPage()
  const hosts = new Set<string>()
  const errors: string[] = []
  page.on('request', (request) => hosts.add(new URL(request.url()).host))
  page.on('pageerror', ({ message }) => errors.push(message))
  page.on('console', (message) => message.type() === 'error' && errors.push(message.text()))
  await page.goto(address)
  await page.locator('.opblock').first().waitFor()

  const blockOf = (operationId: string) => page.locator(`.opblock[id$="-${operationId}"]`)

  /** Opens an operation, so that its prefilled request can be sent. */
  async function open(operationId: string) {
    await blockOf(operationId).locator('.opblock-summary-control').first().click()
    await blockOf(operationId).getByRole('button', { name: 'Try it out' }).click()
  }

  /** Closes an operation. Each open one makes the page slower. */
  const close = (operationId: string) =>
    blockOf(operationId).locator('.opblock-summary-control').first().click()

  /** Sends the request of an open operation. Returns the status and the body of the answer. */
  async function execute(operationId: string) {
    const answered = page.waitForResponse((response) => response.url().includes('/api/'))
    await blockOf(operationId).getByRole('button', { name: 'Execute' }).click()
    const answer = await answered
    return { status: answer.status(), body: await answer.json() }
  }

  async function authorize(token: string) {
    await page.getByRole('button', { name: 'Authorize' }).first().click()
    await page.locator('.auth-container input').fill(token)
    await page.locator('.auth-container button[type=submit]').click()
    await page.reload()
    await page.locator('.opblock').first().waitFor()
  }

  return { page, hosts, errors, open, close, execute, authorize }
}

it.skipIf(!executablePath)(
  'the page carries out every prefilled request, twice',
  async () => {
    const { hosts, errors, open, close, execute, authorize } = await openPage()
    await open('login')
    await execute('login')
    const login = await execute('login')
    expect(login).toMatchObject({ status: 200, body: { success: true } })
    await authorize(login.body.token)

    for (const { operationId } of examples) {
      if (operationId === 'login' || operationId === 'logout') continue
      await open(operationId)
      const first = await execute(operationId)
      expect({ operationId, ...first }).toMatchObject({ operationId, ...DONE })
      const second = await execute(operationId)
      // A profile has at most one record for each module.
      const expected = operationId === 'createPermiso' ? GIVEN_ALREADY : DONE
      expect({ operationId, ...second }).toMatchObject({ operationId, ...expected })
      await close(operationId)
    }
    // It ends the session, so it comes last.
    await open('logout')
    expect(await execute('logout')).toMatchObject(DONE)
    expect([...hosts]).toEqual([new URL(address).host])
    expect(errors).toEqual([expect.stringContaining('409')])
  },
  300_000,
)

it.skipIf(!executablePath)(
  'the page has its own title and no link that leads nowhere',
  async () => {
    const { page, errors } = await openPage()
    expect(new URL(page.url()).pathname).toBe('/docs')
    expect(await page.title()).toBe('Llavero')
    expect(await page.locator('.topbar, img[alt*="Swagger"]').count()).toBe(0)
    const links = await page
      .locator('a[href]')
      .evaluateAll((found) => found.map(({ href }: any) => href))
    expect(links.length).toBeGreaterThan(1)
    for (const link of new Set(links)) {
      expect(new URL(link).host).toBe(new URL(address).host)
      expect({ link, status: (await fetch(link)).status }).toEqual({ link, status: 200 })
    }
    expect(errors).toEqual([])
  },
)
