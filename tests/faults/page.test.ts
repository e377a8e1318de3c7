import { type Browser, chromium } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { cloneDatabase } from '../app.js'
import { installed } from './program.js'
import { startService } from './service.js'

const executablePath = installed('chromium')
/** What it would else do beside showing a page. */
const QUIET = ['--disable-background-networking', '--disable-component-update', '--disable-sync']

let address: string
let browser: Browser
beforeAll(async () => {
  if (!executablePath) return
  const DATABASE_URL = await cloneDatabase()
  // As in `npm run dev`, which the examples of the document are of.
  const admin = { ADMIN_USERNAME: 'admin', ADMIN_PASSWORD: 'llavero-admin' }
  address = (await startService({ DATABASE_URL, ...admin })).address
  browser = await chromium.launch({ executablePath, args: ['--no-sandbox', ...QUIET] })
})
afterAll(() => browser?.close())

it.skipIf(!executablePath)('the page logs in, is authorized and lists users', async () => {
  const page = await browser.newPage()
  const hosts = new Set<string>()
  const errors: string[] = []
  page.on('request', (request) => hosts.add(new URL(request.url()).host))
  page.on('pageerror', ({ message }) => errors.push(message))
  page.on('console', (message) => message.type() === 'error' && errors.push(message.text()))

  /** Sends the request of an operation as it is prefilled; gives status and body. */
  async function execute(path: string) {
    const operation = page.locator('.opblock', { has: page.locator(`[data-path="${path}"]`) })
    await operation.locator('.opblock-summary-control').first().click()
    await operation.getByRole('button', { name: 'Try it out' }).click()
    await operation.getByRole('button', { name: 'Execute' }).click()
    const answer = operation.locator('.live-responses-table .response').first()
    const status = Number(await answer.locator('.response-col_status').first().innerText())
    return {
      status,
      body: JSON.parse(await answer.locator('.highlight-code code').first().innerText()),
    }
  }

  await page.goto(address)
  await page.locator('.opblock').first().waitFor()
  expect(new URL(page.url()).pathname).toBe('/docs')
  expect(await page.title()).toBe('Llavero')
  expect(await page.locator('.topbar, img[alt*="Swagger"]').count()).toBe(0)

  const login = await execute('/api/auth/login')
  expect(login).toMatchObject({ status: 200, body: { success: true } })

  await page.getByRole('button', { name: 'Authorize' }).first().click()
  await page.locator('.auth-container input').fill(login.body.token)
  await page.locator('.auth-container button[type=submit]').click()
  await page.reload()
  await page.locator('.opblock').first().waitFor()
  const users = await execute('/api/usuario')
  expect(users).toMatchObject({ status: 200, body: { data: [{ strNombreUsuario: 'admin' }] } })

  expect([...hosts]).toEqual([new URL(address).host])
  expect(errors).toEqual([])
})
