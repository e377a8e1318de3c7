import { type Browser, chromium, type Locator } from 'playwright-core'
import type postgres from 'postgres'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { cloneDatabase } from '../app.js'
import { connectTo } from '../connect.js'
import { readTables } from '../tables.js'
import { installed } from './program.js'
import { startService } from './service.js'

const executablePath = installed('chromium')
const skipNote = executablePath ? '' : ' (skipped: chromium is not installed)'
/** Switches off what the browser would load besides the page. */
const QUIET = ['--disable-background-networking', '--disable-component-update', '--disable-sync']

let address: string
let browser: Browser
let sql: postgres.Sql
beforeAll(async () => {
  if (!executablePath) return
  const DATABASE_URL = await cloneDatabase('template0')
  sql = connectTo(DATABASE_URL)
  // The document has the credentials of this administrator as the example of a login.
  const ADMIN_USERNAME = 'admin'
  const ADMIN_PASSWORD = 'llavero-admin'
  address = (await startService({ DATABASE_URL, ADMIN_USERNAME, ADMIN_PASSWORD })).address
  browser = await chromium.launch({ executablePath, args: ['--no-sandbox', ...QUIET] })
})
afterAll(() => browser?.close())

/** The writes that have no id, neither in the path nor in the body. */
const WRITES_WITHOUT_ID = ['login', 'updatePassword', 'logout', 'createPerfil', 'createModulo']

/** Returns the operations of all other writes in the document. */
async function listWritesWithId() {
  const document: any = await (await fetch(`${address}/docs/json`)).json()
  return Object.values<any>(document.paths)
    .flatMap(({ post, put, delete: deletion }) => [post, put, deletion])
    .flatMap((operation) => operation?.operationId ?? [])
    .filter((operationId) => !WRITES_WITHOUT_ID.includes(operationId))
}

/**
 * Clicks an element. Playwright's own `click` first waits until the element stands still. That sometimes
 * took more than 30 s, for an unknown cause.
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

  const blockOf = (operationId: string) => page.locator(`.opblock[id$="-${operationId}"]`)

  /** Opens an operation, so that its prefilled request can be sent. */
  async function open(operationId: string) {
    await press(blockOf(operationId).locator('.opblock-summary-control').first())
    await press(blockOf(operationId).getByRole('button', { name: 'Try it out' }))
  }

  /** Closes an operation. Each open one makes the page slower. */
  const close = (operationId: string) =>
    press(blockOf(operationId).locator('.opblock-summary-control').first())

  /** Sends the request of an open operation. Returns the status and the body of the answer. */
  async function execute(operationId: string) {
    const answered = page.waitForResponse((response) => response.url().includes('/api/'))
    await press(blockOf(operationId).getByRole('button', { name: 'Execute' }))
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

  return { page, hosts, errors, open, close, execute, authorize }
}

it.skipIf(!executablePath)(
  `the page logs in, lists and writes, and loads nothing from another host${skipNote}`,
  async () => {
    const { hosts, errors, open, execute, authorize } = await openPage()
    await open('login')
    const login = await execute('login')
    expect(login).toMatchObject({ status: 200, body: { success: true } })
    await authorize(login.body.token)

    await open('listPerfiles')
    expect(await execute('listPerfiles')).toMatchObject({ status: 200, body: { success: true } })
    await open('createModulo')
    expect(await execute('createModulo')).toMatchObject({ status: 200, body: { success: true } })
    expect(errors).toEqual([])
    expect([...hosts]).toEqual([new URL(address).host])
  },
  60_000,
)

it.skipIf(!executablePath)(
  `a prefilled write of an operation that takes an id changes nothing${skipNote}`,
  async () => {
    const { open, close, execute, authorize } = await openPage()
    await open('login')
    const { body } = await execute('login')
    await authorize(body.token)

    const before = await readTables(sql)
    for (const operationId of await listWritesWithId()) {
      await open(operationId)
      const { status } = await execute(operationId)
      expect([401, 403], operationId).not.toContain(status)
      await close(operationId)
    }
    expect(await readTables(sql)).toEqual(before)
  },
  120_000,
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
