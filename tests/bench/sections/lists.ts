import type { Bench } from '../bench.js'
import { authorization, openDatabase, readData, seed } from '../data.js'
import { type Section, type Spread, spread } from '../measure.js'
import { SERVERS } from '../processes.js'

const REQUESTS = 15
const NAMES = 1_000_000
/** Profiles, with about as many records each. */
const SIZES = [10, 1000, 20_000]
const RECORDS = 100

/** What administrators wait for: single requests, one after the other. */
export async function lists(bench: Bench): Promise<Section> {
  const rows: Section['rows'] = []
  for (const perfiles of SIZES) {
    const database = await bench.createDatabase(`listas_${perfiles}`)
    await seed(database, perfiles)
    const ways = await timeLists(bench, database, async (get) => {
      const { totalPages } = await get('/api/permisos?page=1')
      return {
        'page 1': '/api/permisos?page=1',
        'middle page': `/api/permisos?page=${Math.ceil(totalPages / 2)}`,
        'last page': `/api/permisos?page=${totalPages}`,
      }
    })
    for (const [what, ms] of Object.entries(ways)) {
      rows.push({ list: 'permission records', rows: perfiles * RECORDS, what, ms })
    }
  }

  const database = await bench.copyData('nombres')
  await addNames(database)
  for (const [list, url] of [
    ['modules', '/api/modulo'],
    ['profiles', '/api/perfil'],
  ] as const) {
    const ways = await timeLists(bench, database, async () => ({
      'page 1, no search': `${url}?page=1`,
      'page 1, search: rare word': `${url}?page=1&search=ornitorrinco`,
      'page 1, search: frequent word': `${url}?page=1&search=almacen`,
      'page 1, search: no hit': `${url}?page=1&search=xilografo`,
    }))
    for (const [what, ms] of Object.entries(ways)) rows.push({ list, rows: NAMES, what, ms })
  }

  return {
    title: 'Lists',
    about: `Medians (min–max) of ${REQUESTS} single requests, HTTP included.`,
    rows,
  }
}

type Get = (path: string) => Promise<{ totalPages: number }>

async function timeLists(
  bench: Bench,
  database: string,
  pathsOf: (get: Get) => Promise<Record<string, string>>,
) {
  const { url, stop } = await bench.startServer(SERVERS.service, { DATABASE_URL: database })
  const { administradores } = await readData(database)
  const [administrador] = administradores
  if (!administrador) throw new Error('no administrator')
  const headers = authorization(administrador)
  const get: Get = async (path) => {
    const answer = await fetch(url + path, { headers })
    const text = await answer.text()
    if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${text}`)
    return JSON.parse(text)
  }
  const times: Record<string, Spread> = {}
  for (const [what, path] of Object.entries(await pathsOf(get))) {
    // The first ones make connections, and statements that the database has planned for good.
    for (let turn = 0; turn < 8; turn += 1) await get(path)
    const each: number[] = []
    for (let turn = 0; turn < REQUESTS; turn += 1) {
      const begin = performance.now()
      await get(path)
      each.push(performance.now() - begin)
    }
    times[what] = spread(each)
  }
  await stop()
  return times
}

/** Fills modules and profiles up to NAMES; one name in ten has the frequent word, 10 the rare one. */
async function addNames(database: string) {
  const sql = openDatabase(database)
  const names = (table: string) => sql`
    select concat(
      case when numero % 10 = 0 then 'Almacen ' else 'Oficina ' end, md5(numero::text),
      case when numero % 100000 = 7 then ' ornitorrinco' end
    )
    from generate_series((select count(*) + 1 from ${sql(table)}), ${NAMES}::integer) as numero
  `
  await sql`insert into modulo ("strNombreModulo") ${names('modulo')}`
  await sql`insert into perfil ("strNombrePerfil") ${names('perfil')}`
  await sql`vacuum analyze modulo, perfil`
  await sql.end()
}
