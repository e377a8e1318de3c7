import postgres from 'postgres'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { cloneDatabase } from './app.js'
import { countReads } from './reads.js'

/** How many profiles there are: so many that the planner may prefer a sequential scan. */
const PERFILES = 2000
/** How many permission records each profile has. */
const RECORDS = 100

const sql = postgres(await cloneDatabase(), { max: 1, onnotice: () => {} })
afterAll(() => sql.end())

/**
 * The id of the template's administrator, and the id of another user whose profile has every
 * permission. Each has the same id as its profile.
 */
const ADMIN = 1
const JEFE = 2

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
    insert into usuario ("strNombreUsuario", "idPerfil", "strPwd", "strCorreo")
    select 'usuario' || id, id, 'hash', id || '@x.es' from perfil where id between 2 and 10
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

/** Returns how many permission records a query reads. */
const countPermisos = (query: (tx: postgres.Sql) => Promise<unknown>) =>
  countReads(sql, 'permisos_perfil', query)

const perfil = { strNombrePerfil: 'otro', bitAdministrador: false }
const usuario = (idPerfil: number) => ({
  strNombreUsuario: 'otro',
  idPerfil,
  strCorreo: 'otro@x.es',
  idEstadoUsuario: true,
})

describe('a write that no rule limits reads no permission record', () => {
  it.each([
    ['when the caller is an administrator', actorOf(ADMIN)],
    ['with AUTHORIZATION=client', actorOf(JEFE, { enforced: false })],
  ])('%s', async (_, actor) => {
    const answers = [
      await countPermisos(
        (tx) => tx`select update_perfil(5, ${tx.json(perfil)}, ${tx.json(actor)})`,
      ),
      await countPermisos(
        (tx) => tx`select update_usuario(5, ${tx.json(usuario(6))}, ${tx.json(actor)})`,
      ),
      await countPermisos((tx) => tx`select insert_perfil(${tx.json(perfil)}, ${tx.json(actor)})`),
      await countPermisos((tx) => tx`select end_sesiones(${tx.json(actor)})`),
    ]
    expect(answers).toEqual([0, 0, 0, 0])
  })
})

describe('a rule reads only the records of the profiles that it compares', () => {
  const actor = actorOf(JEFE, { modulo: 'USUARIO' })
  /** The records of at most four profiles, and the record with the caller's permission. */
  const MOST = 4 * RECORDS + 1

  it.each(['without statistics', 'with statistics'])('%s', async (how) => {
    if (how === 'with statistics') await sql`analyze`
    // From the sixth execution of a statement on, PostgreSQL may use a generic plan.
    for (let round = 0; round < 8; round += 1) {
      const reads = await countPermisos(
        (tx) => tx`select update_usuario(5, ${tx.json(usuario(6 + round))}, ${tx.json(actor)})`,
      )
      expect(reads, `round ${round}`).toBeLessThanOrEqual(MOST)
      const compared = await countPermisos((tx) => tx`select needs_for(7, ${JEFE})`)
      expect(compared, `round ${round}`).toBeLessThanOrEqual(MOST)
      expect(await countPermisos((tx) => tx`select needs_for(${JEFE}, ${JEFE})`)).toBe(0)
    }
  })
})

it('refuse_granting names the first permission of a matrix that the caller lacks, not that of the first module', async () => {
  const own = postgres(await cloneDatabase(), { max: 1, onnotice: () => {} })
  await own`
    insert into modulo ("strNombreModulo") select 'M' || n from generate_series(1, 1000) as n
  `
  await own`insert into perfil ("strNombrePerfil") values ('Ventas')`
  await own`insert into permisos_perfil ("idPerfil", "idModulo") select 2, id from modulo`
  await own`analyze`
  const permisos = await own`
    select id as "idModulo", true as "bitEditar" from modulo order by id desc
  `
  const refused = own`select refuse_granting(${own.json(permisos as never)}, 2)`
  await expect(refused).rejects.toMatchObject({
    code: 'LL403',
    detail: '{"accion": "bitEditar", "modulo": "M1000"}',
  })
  await own.end()
})

describe('begin_write', () => {
  const begin = (actor: object) =>
    sql`select limite from begin_write('{}', ${sql.json(actor as never)})`.then(
      ([row]) => row?.limite,
      ({ code }) => code,
    )

  it('checks the permission that the endpoint needs, if it needs one', async () => {
    expect(await begin(actorOf(JEFE))).toBe(JEFE)
    expect(await begin(actorOf(JEFE, { modulo: 'NINGUNO' }))).toBe('LL403')
    expect(await begin(actorOf(JEFE, { accion: 'ninguna' }))).toBe('LL403')
    expect(await begin(actorOf(JEFE, { modulo: null, accion: null }))).toBe(JEFE)
  })

  it('raises LL403 or LL401 when a field of the caller is missing', async () => {
    expect(await begin({ id: JEFE, ver: 0, enforced: true })).toBe('LL403')
    expect(await begin({ id: JEFE, ver: 0 })).toBe('LL403')
    expect(await begin({ id: JEFE, enforced: true })).toBe('LL401')
    expect(await begin({})).toBe('LL401')
  })

  it('raises LL401 for an inactive user, even if no trigger has ended the sessions', async () => {
    await sql`alter table usuario disable trigger prepare_usuario`
    await sql`update usuario set "idEstadoUsuario" = false where id = ${JEFE}`
    expect(await begin(actorOf(JEFE))).toBe('LL401')
    await sql`update usuario set "idEstadoUsuario" = true where id = ${JEFE}`
    await sql`alter table usuario enable trigger prepare_usuario`
  })

  it('returns null as the limit of an administrator, and of any caller with AUTHORIZATION=client', async () => {
    expect(await begin(actorOf(ADMIN, { modulo: 'NINGUNO' }))).toBe(null)
    expect(await begin(actorOf(JEFE, { modulo: 'NINGUNO', enforced: false }))).toBe(null)
  })
})
