import { beforeAll, describe, expect, it } from 'vitest'
import { cloneDatabase } from './app.js'
import { connectTo } from './connect.js'
import { usuario } from './endpoints.js'
import { countReads } from './reads.js'

/** How many profiles there are: so many that the planner may prefer a sequential scan. */
const PERFILES = 2000
/** How many permission records each profile has. */
const RECORDS = 100

const sql = connectTo(await cloneDatabase())

/** The ids of two users who are no administrators. Each has the same id as its profile. */
const JEFE = 2
const INACTIVO = 10

const actorOf = (id: number, more: object = {}) => ({
  id,
  ver: 0,
  modulo: 'PERMISOS',
  accion: 'bitEditar',
  enforced: true,
  ...more,
})

beforeAll(async () => {
  await sql`
    insert into perfil ("strNombrePerfil") select n from generate_series(2, ${PERFILES}::integer) as n
  `
  await sql`
    insert into usuario (
      "strNombreUsuario", "idPerfil", "strPwd", "strCorreo", "idEstadoUsuario"
    )
    select 'usuario' || id, id, 'hash', id || '@x.es', id <> ${INACTIVO}
    from perfil
    where id between 2 and 10
    order by id
  `
  await sql`
    insert into modulo ("strNombreModulo") select n from generate_series(5, ${RECORDS}::integer) as n
  `
  // Autovacuum would collect statistics, and one test needs the table without them.
  await sql`alter table permisos_perfil set (autovacuum_enabled = false)`
  // Without triggers the insert is faster: they would check each key and count each record.
  await sql`set session_replication_role = replica`
  await sql`
    insert into permisos_perfil ("idPerfil", "idModulo", "bitAgregar", "bitEditar", "bitConsulta",
      "bitEliminar", "bitDetalle")
    select perfil.id, modulo.id, true, true, true, true, true
    from perfil
    cross join modulo
    where not "bitAdministrador"
  `
  await sql`set session_replication_role = origin`
})

const editado = (idPerfil: number) => usuario('otro', { idPerfil, strPwd: undefined })

describe('a rule reads only the records of the profiles that it compares', () => {
  const actor = actorOf(JEFE, { modulo: 'USUARIO' })
  /** The records of at most four profiles, and the record with the caller's permission. */
  const MOST = 4 * RECORDS + 1

  it.each(['without statistics', 'with statistics'])('%s', async (how) => {
    if (how === 'with statistics') await sql`analyze`
    // From the sixth execution of a statement on, PostgreSQL may use a generic plan.
    for (let round = 0; round < 8; round += 1) {
      const reads = await countReads(
        sql,
        'permisos_perfil',
        (tx) => tx`select update_usuario(5, ${tx.json(editado(6 + round))}, ${tx.json(actor)})`,
      )
      expect(reads, `round ${round}`).toBeLessThanOrEqual(MOST)
    }
  })
})

it('refuse_granting names the first permission of a matrix that the caller lacks, not that of the first module', async () => {
  // With so many modules, PostgreSQL would begin a join with them.
  await sql`insert into modulo ("strNombreModulo") select 'M' || n from generate_series(1, 1000) n`
  await sql`analyze`
  const permisos = await sql`
    select id as "idModulo", true as "bitEditar" from modulo order by id desc
  `
  const WITHOUT_RECORDS = 0
  const refused = sql`select refuse_granting(${sql.json(permisos as never)}, ${WITHOUT_RECORDS})`
  await expect(refused).rejects.toMatchObject({
    code: 'LL403',
    detail: '{"accion": "bitEditar", "modulo": "M1000"}',
  })
})

describe('begin_write', () => {
  it.each([
    [
      'refuses a permission for another module',
      actorOf(JEFE, { modulo: 'NINGUNO' }),
      '{"accion": "bitEditar", "modulo": "NINGUNO"}',
    ],
    [
      'refuses another permission',
      actorOf(JEFE, { accion: 'ninguna' }),
      '{"accion": "ninguna", "modulo": "PERMISOS"}',
    ],
    [
      'needs no permission if a replica of 0.2.0 sends null as `modulo`',
      actorOf(JEFE, { modulo: null, accion: null }),
      JEFE,
    ],
    [
      'refuses a caller without a permission',
      { id: JEFE, ver: 0, enforced: true },
      '{"administrador": true}',
    ],
    [
      'refuses a caller without the field `enforced`',
      { id: JEFE, ver: 0 },
      '{"administrador": true}',
    ],
    ['knows no session without a version', { id: JEFE, enforced: true }, 'LL401'],
    ['knows no session without an id', { ver: 0, enforced: true }, 'LL401'],
    ['knows no session of an inactive user', actorOf(INACTIVO), 'LL401'],
  ])('%s', async (_, actor, expected) => {
    const answer =
      await sql`select limite from begin_write('{}', ${sql.json(actor as never)})`.then(
        ([row]) => row?.limite,
        ({ code, detail }) => (code === 'LL403' ? detail : code),
      )
    expect(answer).toBe(expected)
  })
})
