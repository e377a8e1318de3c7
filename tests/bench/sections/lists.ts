import type { Bench } from '../bench.js'
import { authorization, readData, seed } from '../data.js'
import { type Section, spread } from '../measure.js'
import { SERVERS } from '../processes.js'

const REQUESTS = 15
/** The numbers of profiles in the measured databases. */
const SIZES = [10, 1000, 20_000]
const RECORDS = 100

/** Measures how long administrators wait for a page of permission records. */
export async function lists(bench: Bench): Promise<Section> {
  const rows: Section['rows'] = []
  for (const perfiles of SIZES) {
    const database = await bench.createDatabase(`listas_${perfiles}`)
    await seed(database, perfiles)
    const { url, stop } = await bench.startServer(SERVERS.service, { DATABASE_URL: database })
    const [administrador] = (await readData(database)).administradores
    if (!administrador) throw new Error('no administrator')
    const headers = authorization(administrador)
    const get = async (page: number) => {
      const answer = await fetch(`${url}/api/permisos?page=${page}`, { headers })
      const body = (await answer.json()) as { totalPages: number }
      if (answer.status !== 200) throw new Error(`page ${page} was answered with ${answer.status}`)
      return body.totalPages
    }
    const last = await get(1)
    for (const page of [1, Math.ceil(last / 2), last]) {
      // The first requests open connections and let PostgreSQL cache its plans.
      for (let turn = 0; turn < 8; turn += 1) await get(page)
      const times: number[] = []
      for (let turn = 0; turn < REQUESTS; turn += 1) {
        const begin = performance.now()
        await get(page)
        times.push(performance.now() - begin)
      }
      rows.push({ records: perfiles * RECORDS, page, ms: spread(times) })
    }
    await stop()
  }
  return {
    title: 'Pages of permission records',
    about: `Medians (min–max) of ${REQUESTS} single requests, HTTP included.`,
    rows,
  }
}
