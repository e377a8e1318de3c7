import { type Browser, chromium, type Locator } from 'playwright-core'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { cloneDatabase } from '../app.js'
import { installed } from './program.js'
import { startService } from './service.js'

const executablePath = installed('chromium')
const skipNote = executablePath ? '' : ' (skipped: chromium is not installed)'
/** Switches off what the browser would load besides the page. */
const QUIET = ['--disable-background-networking', '--disable-component-update', '--disable-sync']

let address: string
let browser: Browser
beforeAll(async () => {
  if (!executablePath) return
  const DATABASE_URL = await cloneDatabase('template0')
  // The document has the credentials of this administrator as the example of a login.
  const ADMIN_USERNAME = 'admin'
  const ADMIN_PASSWORD = 'llavero-admin'
  address = (await startService({ DATABASE_URL, ADMIN_USERNAME, ADMIN_PASSWORD })).address
  browser = await chromium.launch({ executablePath, args: ['--no-sandbox', ...QUIET] })
})
afterAll(() => browser?.close())

/**
 * Clicks an element. Playwright's own `click` first waits until the element stands still. That
 * sometimes took more than 30 s, for an unknown cause.
 */
const press = (element: Locator) => element.dispatchEvent('click')

/** Opens the page and waits for the operations. The page is closed after the test. */
async function openPage() {
  const page = await browser.newPage()
  onTestFinished(() => page.close())
  const hosts = new Set<string>()
  const errors: string[] = []
  page.on('request', (request) => hosts.add(new URL(request.url()).host))
  page.on('pageerror', ({ message }) => errors.push(message))
  page.on('console', (message) => message.type() === 'error' && errors.push(message.text()))
  await page.goto(address)
  await page.locator('.opblock').first().waitFor()

  /** Sends the prefilled request of an operation. Returns the status and the body of the answer. */
  async function execute(operationId: string) {
    const block = page.locator(`.opblock[id$="-${operationId}"]`)
    await press(block.locator('.opblock-summary-control').first())
    await press(block.getByRole('button', { name: 'Try it out' }))
    const answered = page.waitForResponse((response) => response.url().includes('/api/'))
    await press(block.getByRole('button', { name: 'Execute' }))
    const answer = await answered
    return { status: answer.status(), body: await answer.json() }
  }

  async function authorize(token: string) {
    await press(page.getByRole('button', { name: 'Authorize' }).first())
    await page.locator('.auth-container input').fill(token)
    await press(page.locator('.auth-container button[type=submit]'))
    await page.reload()
    await page.locator('.opblock').first().waitFor()
  }

  return { page, hosts, errors, execute, authorize }
}

it.skipIf(!executablePath)(
  `the page logs in, lists and writes, and loads nothing from another host${skipNote}`,
  async () => {
    const { hosts, errors, execute, authorize } = await openPage()
    const login = await execute('login')
    expect(login).toMatchObject({ status: 200, body: { success: true } })
    await authorize(login.body.token)
    expect(await execute('listPerfiles')).toMatchObject({ status: 200, body: { success: true } })
    expect(await execute('createModulo')).toMatchObject({ status: 200, body: { success: true } })
    expect(errors).toEqual([])
    expect([...hosts]).toEqual([new URL(address).host])
  },
  60_000,
)

it.skipIf(!executablePath)(
  `the page has its own title and no link that leads nowhere${skipNote}`,
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
