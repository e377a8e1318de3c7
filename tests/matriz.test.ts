import { isDeepStrictEqual } from 'node:util'
import { describe, expect, it } from 'vitest'
import { type Answer, MATRIX_REPLACED, withoutHeaders } from './answers.js'
import { testApp } from './app.js'
import { flagsOf } from './endpoints.js'
import { insertPerfil } from './tables.js'

const WRITERS = 16
const READERS = 4
const ROUNDS = 5
const PERMISOS_URL = '/api/permisos'

// All requests come from one user, who may use half of the connections.
const { call, sql } = await testApp({ DATABASE_POOL_MAX: String(2 * (WRITERS + READERS)) })
await sql`insert into modulo ("strNombreModulo") select 'M' || n from generate_series(1, 8) as n`
const modulos = await sql<{ id: number; strNombreModulo: string }[]>`
  select * from modulo order by id
`
// A pause between the delete and the insert of a replace gives other writes time to interfere.
await sql`
  create function pausa() returns trigger language plpgsql
  as 'begin perform pg_sleep(0.003); return null; end'
`
await sql`create trigger pausa after delete on permisos_perfil execute function pausa()`

/**
 * How many matrices there are. Matrix `n`, from 1 on, has the flags that the bits of `n` stand for.
 */
const MATRICES = 31

/** Returns the modules of matrix `n`. */
const modulosOf = (n: number) => modulos.filter((_, index) => (index + n) % 12 < 6 + (n % 6))

/** Returns the permission map of a profile that has matrix `n`. */
const mapa = (n: number) =>
  Object.fromEntries(
    modulosOf(n).map(({ strNombreModulo: nombreModulo }) => [
      nombreModulo,
      { nombreModulo, ...flagsOf(n) },
    ]),
  )

/** Saves one of the matrices. */
function save(idPerfil: number, turn: number) {
  const n = 1 + (turn % MATRICES)
  const permisos = modulosOf(n).map(({ id }) => ({ idModulo: id, ...flagsOf(n) }))
  return call('POST', '/api/permisos/guardar-matriz', { idPerfil, permisos })
}

/** Calls `write` ROUNDS times in each of WRITERS loops at once. Returns all answers. */
async function contend(write: (writer: number, round: number) => Promise<Answer>) {
  const answers: Answer[] = []
  const writers = Array.from({ length: WRITERS }, async (_, writer) => {
    for (let round = 0; round < ROUNDS; round += 1) answers.push(await write(writer, round))
  })
  await Promise.all(writers)
  return answers
}

describe('concurrent writers of one matrix', () => {
  it('let each reader see one complete matrix, and leave exactly one matrix', async () => {
    const idPerfil = await insertPerfil(sql, 'Disputado')
    const reads: Answer[] = []
    const read = async () => {
      reads.push(withoutHeaders(await call('GET', `/api/permisos/mis-permisos/${idPerfil}`)))
    }
    await save(idPerfil, 0)
    let isWriting = true
    const readers = Array.from({ length: READERS }, async () => {
      while (isWriting) await read()
    })
    const writes = await contend((writer, round) => save(idPerfil, writer + round * WRITERS))
    isWriting = false
    await Promise.all(readers)
    await read()

    expect(writes.map(withoutHeaders)).toEqual(Array(WRITERS * ROUNDS).fill(MATRIX_REPLACED))
    expect(reads.length).toBeGreaterThan(READERS)
    const complete = Array.from({ length: MATRICES }, (_, n) => ({
      status: 200,
      body: { success: true, permisos: mapa(n + 1) },
    }))
    const others = reads.filter((got) => !complete.some((one) => isDeepStrictEqual(got, one)))
    expect(others).toEqual([])
  })

  it('do not fail beside writes of single records and changes of the administrator flag', async () => {
    const strNombrePerfil = 'Conmutado'
    const idPerfil = await insertPerfil(sql, strNombrePerfil)
    const answers = await contend(async (writer, round) => {
      const kind = writer % 8
      if (kind < 2) return save(idPerfil, writer + round)
      if (kind === 2) {
        const perfil = { strNombrePerfil, bitAdministrador: round % 2 === 0 }
        return call('PUT', `/api/perfil/${idPerfil}`, perfil)
      }
      const permiso = { idPerfil, idModulo: modulos[(writer + round) % modulos.length]?.id }
      if (kind < 5) return call('POST', PERMISOS_URL, permiso)
      const [row] = await sql`
        select id from permisos_perfil where "idPerfil" = ${idPerfil} order by random() limit 1
      `
      const url = `${PERMISOS_URL}/${row?.id ?? 1_000_000}`
      return kind === 5 ? call('DELETE', url) : call('PUT', url, permiso)
    })
    // 404: another write has removed the record. 409: another write has added one for the module.
    const failed = answers.filter(({ status }) => ![200, 404, 409].includes(status))
    expect(failed).toEqual([])
  })
})
