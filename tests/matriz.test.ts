import { beforeAll, describe, expect, it } from 'vitest'
import {
  type Answer,
  DELETED,
  MATRIX_REPLACED,
  statusCodeAnswer,
  withoutHeaders,
} from './answers.js'
import { testApp } from './app.js'
import { FLAGS } from './endpoints.js'

const WRITERS = 16
const READERS = 4
const ROUNDS = 5
const PERMISOS_URL = '/api/permisos'

let test: Awaited<ReturnType<typeof testApp>>
let modulos: { id: number; strNombreModulo: string }[]

beforeAll(async () => {
  // All requests come from one user, who may use half of the connections.
  test = await testApp({ DATABASE_POOL_MAX: String(2 * (WRITERS + READERS)) })
  for (let n = 1; n <= 8; n++) {
    await test.call('POST', '/api/modulo', { strNombreModulo: `modulo ${n}` })
  }
  modulos = (await test.call('GET', '/api/modulo/list')).body.data
  // A pause between the delete and the insert of a replace gives other writes time to interfere.
  await test.sql`
    create function pausa() returns trigger language plpgsql
    as 'begin perform pg_sleep(0.003); return null; end'
  `
  await test.sql`
    create trigger pausa after delete on permisos_perfil execute function pausa()
  `
})

async function insertPerfil(nombre: string): Promise<number> {
  const [perfil] = await test.sql`
    insert into perfil ("strNombrePerfil") values (${nombre}) returning id
  `
  return perfil?.id
}

const flags = (bits: number) =>
  Object.fromEntries(FLAGS.map((name, bit) => [name, Boolean(bits & (1 << bit))]))

/** Returns matrix `n`: some of the modules, each with the flags that the bits of `n` stand for. */
const matriz = (n: number) =>
  modulos
    .filter((_, index) => (index + n) % 12 < 6 + (n % 6))
    .map(({ id, strNombreModulo }) => ({ id, strNombreModulo, ...flags(n) }))

const entradas = (n: number) =>
  matriz(n).map(({ id, strNombreModulo: _, ...flags }) => ({ idModulo: id, ...flags }))

const mapa = (n: number) =>
  Object.fromEntries(
    matriz(n).map(({ id: _, strNombreModulo: nombreModulo, ...flags }) => [
      nombreModulo,
      { nombreModulo, ...flags },
    ]),
  )

const mapaDeAdministrador = () =>
  Object.fromEntries(
    modulos.map(({ strNombreModulo: nombreModulo }) => [
      nombreModulo,
      { nombreModulo, ...flags(31) },
    ]),
  )

/** Returns a text that is the same for equal maps, whatever the order of their keys. */
const key = (map: Record<string, object>) =>
  JSON.stringify(
    Object.entries(map)
      .map(([name, value]) => [name, Object.entries(value).sort()])
      .sort(),
  )

const save = (idPerfil: number, n: number) =>
  test
    .call('POST', '/api/permisos/guardar-matriz', { idPerfil, permisos: entradas(n) })
    .then(withoutHeaders)

const read = (idPerfil: number) =>
  test.call('GET', `/api/permisos/mis-permisos/${idPerfil}`).then(withoutHeaders)

/**
 * Runs WRITERS loops of writes and READERS loops of reads at the same time. Returns all answers.
 */
async function contend(idPerfil: number, write: (writer: number, round: number) => Promise<any>) {
  const writes: any[] = []
  const reads: Awaited<ReturnType<typeof read>>[] = []
  let writing = true
  const readers = Array.from({ length: READERS }, async () => {
    while (writing) reads.push(await read(idPerfil))
  })
  await Promise.all(
    Array.from({ length: WRITERS }, async (_, writer) => {
      for (let round = 0; round < ROUNDS; round++) writes.push(await write(writer, round))
    }),
  )
  writing = false
  await Promise.all(readers)
  return { writes, reads }
}

describe('concurrent writers of one matrix', () => {
  it('let each reader see one complete matrix, and leave exactly one matrix', async () => {
    const idPerfil = await insertPerfil('Disputado')
    // From 1 to 31, because matrix 0 would have no flag.
    const ofWriter = (writer: number, round: number) => 1 + ((writer + round * WRITERS) % 31)
    await save(idPerfil, 1)
    const { writes, reads } = await contend(idPerfil, (writer, round) =>
      save(idPerfil, ofWriter(writer, round)),
    )

    expect(writes).toEqual(Array(WRITERS * ROUNDS).fill(MATRIX_REPLACED))
    const submitted = new Set(Array.from({ length: 31 }, (_, n) => key(mapa(n + 1))))
    expect(submitted.size).toBe(31)
    expect(reads.length).toBeGreaterThan(READERS)
    const strange = reads.filter(
      ({ status, body }) =>
        status !== 200 || body.success !== true || !submitted.has(key(body.permisos)),
    )
    expect(strange).toEqual([])

    const last = await read(idPerfil)
    expect(submitted).toContain(key(last.body.permisos))
    const rows = (await test.call('GET', `/api/permisos/por-perfil/${idPerfil}`)).body.data
    expect(rows).toHaveLength(Object.keys(last.body.permisos).length)
  })

  it('do not fail beside writes of single records', async () => {
    const idPerfil = await insertPerfil('Con sueltos')
    await save(idPerfil, 1)
    const anyRow = async (n: number) => {
      const rows = await test.sql`
        select id, "idModulo" from permisos_perfil where "idPerfil" = ${idPerfil} order by id
      `
      return rows[n % Math.max(1, rows.length)] ?? { id: 1_000_000, idModulo: 1 }
    }
    const write = async (writer: number, round: number) => {
      const kind = writer % 8
      const other = modulos[(writer + round) % modulos.length]?.id
      if (kind === 0) return save(idPerfil, 1 + ((writer + round) % 31))
      if (kind <= 2)
        return withoutHeaders(await test.call('POST', PERMISOS_URL, { idPerfil, idModulo: other }))
      const { id, idModulo } = await anyRow(writer + round)
      if (kind === 3) return withoutHeaders(await test.call('DELETE', `${PERMISOS_URL}/${id}`))
      const edited = { idPerfil, idModulo: kind === 4 ? other : idModulo, ...flags(7) }
      return withoutHeaders(await test.call('PUT', `${PERMISOS_URL}/${id}`, edited))
    }
    const writes: Answer[] = []
    const reads: Answer[] = []
    const isCreated = ({ body }: Answer) => body.data?.bitAgregar === false
    const isEdited = ({ body }: Answer) => body.data?.bitAgregar === true
    // Most edits fail because a matrix has replaced their record meanwhile. Therefore the writers
    // may need more than one attempt until a record was created and one was edited.
    for (let attempt = 0; attempt < 10; attempt += 1) {
      const answers = await contend(idPerfil, write)
      writes.push(...answers.writes)
      reads.push(...answers.reads)
      if (writes.some(isCreated) && writes.some(isEdited)) break
    }

    const record = { id: expect.any(Number), idPerfil, idModulo: expect.any(Number) }
    const allowed = [
      MATRIX_REPLACED,
      DELETED,
      { status: 200, body: { success: true, data: { ...record, ...flags(0) } } },
      { status: 200, body: { success: true, data: { ...record, ...flags(7) } } },
      statusCodeAnswer(409, 'El perfil ya tiene permisos sobre ese módulo'),
      statusCodeAnswer(404, 'Permiso no encontrado'),
    ]
    for (const answer of writes) expect(allowed).toContainEqual(answer)
    expect(reads.every(({ status, body }) => status === 200 && body.success)).toBe(true)
    // Each kind of write has succeeded at least once, so the writers did compete with each other.
    for (const answer of allowed.slice(0, 4)) expect(writes).toContainEqual(answer)

    expect(await save(idPerfil, 5)).toEqual(MATRIX_REPLACED)
    expect(await read(idPerfil)).toEqual({
      status: 200,
      body: { success: true, permisos: mapa(5) },
    })
  })

  it('do not keep a module from being renamed', async () => {
    const idPerfil = await insertPerfil('Ocupado')
    let isRenamed = false
    const writers = Array.from({ length: WRITERS }, async () => {
      while (!isRenamed) expect(await save(idPerfil, 3)).toEqual(MATRIX_REPLACED)
    })
    const { id = 0, strNombreModulo } = modulos.at(-1) ?? {}
    for (const name of ['OTRO', strNombreModulo]) {
      const renamed = await test.call('PUT', `/api/modulo/${id}`, { strNombreModulo: name })
      expect(renamed.body).toEqual({ success: true, data: { id, strNombreModulo: name } })
    }
    isRenamed = true
    await Promise.all(writers)
  })

  it('do not fail beside changes of the administrator flag', async () => {
    const idPerfil = await insertPerfil('Conmutado')
    const perfil = (bitAdministrador: boolean) => ({
      strNombrePerfil: 'Conmutado',
      bitAdministrador,
    })
    const { writes, reads } = await contend(idPerfil, async (writer, round) => {
      if (writer % 2 === 0) return save(idPerfil, 1 + ((writer + round) % 31))
      const url = `/api/perfil/${idPerfil}`
      return withoutHeaders(await test.call('PUT', url, perfil((writer + round) % 4 < 2)))
    })

    const allowed = [
      MATRIX_REPLACED,
      { status: 200, body: { success: true, data: { id: idPerfil, ...perfil(true) } } },
      { status: 200, body: { success: true, data: { id: idPerfil, ...perfil(false) } } },
    ]
    for (const answer of writes) expect(allowed).toContainEqual(answer)
    const whole = new Set(
      [{}, mapaDeAdministrador(), ...Array.from({ length: 31 }, (_, n) => mapa(n + 1))].map(key),
    )
    const strange = [...reads, await read(idPerfil)].filter(
      ({ status, body }) => status !== 200 || !whole.has(key(body.permisos)),
    )
    expect(strange).toEqual([])
  })
})

describe('records that move between two profiles in both directions at once', () => {
  it('never deadlock', async () => {
    const perfiles = [await insertPerfil('Ida'), await insertPerfil('Vuelta')]
    const rows = await Promise.all(
      modulos.map(async ({ id: idModulo }, index) => {
        const idPerfil = perfiles[index % 2]
        return (await test.call('POST', PERMISOS_URL, { idPerfil, idModulo })).body.data
      }),
    )
    const answers = await Promise.all(
      rows.map(async ({ id, idModulo }, index) => {
        const moves = []
        for (let round = 1; round <= 8; round++) {
          const target = { idPerfil: perfiles[(index + round) % 2], idModulo }
          const answer = withoutHeaders(await test.call('PUT', `${PERMISOS_URL}/${id}`, target))
          moves.push({ answer, expected: { id, ...target, ...flags(0) } })
        }
        return moves
      }),
    )
    const all = answers.flat()
    expect(all.map(({ answer }) => answer)).toEqual(
      all.map(({ expected }) => ({ status: 200, body: { success: true, data: expected } })),
    )
  })
})
