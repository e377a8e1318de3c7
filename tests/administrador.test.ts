import { beforeEach, describe, expect, it } from 'vitest'
import { ConfigError } from '../src/config.js'
import { ensureAdministrador } from '../src/usuario/administrador.js'
import { ADMIN, ADMIN_ENV, testApp } from './app.js'
import { ALL } from './endpoints.js'
import { sendDuring } from './hold.js'
import { readTables } from './tables.js'

const { app, pool, passwords, config, call, readLog, sql } = await testApp()

/** Sets up the administrator of ADMIN_ENV, in which `changes` replace variables. */
const ensure = (changes: object = {}) =>
  ensureAdministrador(pool, passwords, { ...config, ...ADMIN_ENV, ...changes }, app.log)

beforeEach(async () => {
  await sql`truncate perfil, permisos_perfil, usuario restart identity`
})

describe('the administrator of ADMIN_*', () => {
  it('is created with a new profile that has every flag, although another profile is named ADMINISTRADOR', async () => {
    await sql`insert into perfil ("strNombrePerfil") values ('ADMINISTRADOR')`
    await sql`insert into modulo ("strNombreModulo") values ('VENTAS')`
    await ensure()
    expect(await readTables(sql)).toMatchObject({
      perfil: [
        { id: 1, strNombrePerfil: 'ADMINISTRADOR', bitAdministrador: false },
        { id: 2, strNombrePerfil: 'ADMINISTRADOR', bitAdministrador: true },
      ],
      usuario: [
        {
          strNombreUsuario: 'raiz',
          idPerfil: 2,
          strPwd: expect.stringMatching(/^\$2b\$/),
          strCorreo: 'raiz@ejemplo.com',
          strNumeroCelular: null,
          idEstadoUsuario: true,
          imagenUrl: null,
        },
      ],
      permisos_perfil: [1, 2, 3, 4, 5].map((idModulo) => ({ idPerfil: 2, idModulo, ...ALL })),
    })
    const rows = await sql`
      select entidad, accion, "strNombreUsuario" from auditoria order by id desc limit 3
    `
    expect(rows).toEqual(
      ['usuario', 'permisos', 'perfil'].map((entidad) => ({
        entidad,
        accion: 'insert',
        strNombreUsuario: 'ADMIN_*',
      })),
    )
  })

  it('is the existing user of that name, who gets the oldest administrator profile', async () => {
    // The first profile has the name but not the flag, the second one has the flag but another
    // name, and no user is active.
    await sql`
      insert into perfil ("strNombrePerfil", "bitAdministrador")
      values ('ADMINISTRADOR', false), ('Dirección', true), ('ADMINISTRADOR', true)
    `
    await sql`
      insert into usuario
        ("strNombreUsuario", "idPerfil", "strPwd", "strCorreo", "strNumeroCelular", "idEstadoUsuario")
      values ('otra', 2, 'x', 'otra@ejemplo.com', null, false),
        ('raiz', 1, 'x', 'propio@ejemplo.com', '555', false)
    `
    const before = await readTables(sql)
    await ensure()
    const taken = {
      ...before,
      usuario: [
        before.usuario[0],
        {
          ...before.usuario[1],
          idPerfil: 2,
          idEstadoUsuario: true,
          // The new password ends the sessions that began with the old one.
          versionSesion: expect.any(Number),
          strPwd: expect.stringMatching(/^\$2b\$/),
        },
      ],
    }
    expect(await readTables(sql)).toEqual(taken)
    const credentials = { ...ADMIN, captchaToken: 'humano' }
    const { body } = await call('POST', '/api/auth/login', credentials, { token: null })
    expect(body.user).toMatchObject({ id: 2, idPerfil: 2, correo: 'propio@ejemplo.com' })

    // Now that an administrator is active, ADMIN_* changes nothing, and the log has a line about
    // it.
    await ensure({ ADMIN_USERNAME: 'nueva', ADMIN_EMAIL: 'nueva@x.es' })
    expect(await readTables(sql)).toEqual(taken)
    expect(readLog()).toContain('"msg":"an active administrator exists: ADMIN_* is ignored"')
  })

  it('is set up by one of two replicas that start while a module is being renamed', async () => {
    const start = () =>
      Promise.all([
        ensure({ ADMIN_USERNAME: 'una', ADMIN_EMAIL: 'una@ejemplo.com' }),
        ensure({ ADMIN_USERNAME: 'otra', ADMIN_EMAIL: 'otra@ejemplo.com' }),
      ])
    await sendDuring(sql, (tx) => tx`select lock_modulos()`, start, { count: 2 })
    const { perfil, usuario } = await readTables(sql)
    expect(perfil).toHaveLength(1)
    expect(usuario).toHaveLength(1)
  })

  it.each([
    ['the user is deleted', 'delete from usuario'],
    ['the profile loses the flag', 'update perfil set "bitAdministrador" = false'],
  ])('is active in the end, although %s meanwhile', async (_, change) => {
    await sql`insert into perfil ("strNombrePerfil", "bitAdministrador") values ('Dirección', true)`
    await sql`
      insert into usuario
        ("strNombreUsuario", "idPerfil", "strPwd", "strCorreo", "idEstadoUsuario")
      values ('raiz', 1, 'x', 'raiz@ejemplo.com', false)
    `
    await sendDuring(sql, (tx) => tx.unsafe(change), ensure)
    const administradores = await sql`
      select from usuario
      join perfil on perfil.id = "idPerfil"
      where "idEstadoUsuario" and "bitAdministrador"
    `
    expect(administradores).toHaveLength(1)
  })

  it('is set up beside a write in which that user changes the name of another one', async () => {
    await sql`insert into perfil ("strNombrePerfil") values ('Otro')`
    await sql`
      insert into usuario ("strNombreUsuario", "idPerfil", "strPwd", "strCorreo")
      values ('raiz', 1, 'x', 'raiz@ejemplo.com')
    `
    const actor = sql.json({ id: 1, ver: 0, enforced: false })
    await sendDuring(sql, (tx) => tx`select begin_write('{}', ${actor})`, ensure, {
      // The lock of names and emails (prepare_usuario in sql/migrations/0008_auditoria.sql).
      meanwhile: (tx) => tx`select pg_advisory_xact_lock(7305511407)`,
    })
    expect((await readTables(sql)).perfil).toMatchObject([{}, { bitAdministrador: true }])
  })

  it.each([
    // The user `sola` would keep her own email, so ADMIN_EMAIL would not be stored. It is refused
    // all the same, because another user has it.
    [
      { ADMIN_USERNAME: 'sola', ADMIN_EMAIL: 'otra@EJEMPLO.com' },
      'ADMIN_EMAIL: another user has it',
    ],
    [
      { ADMIN_USERNAME: 'OTRA' },
      'ADMIN_USERNAME: another user has it, in other upper or lower case',
    ],
  ])('is refused and changes nothing with %j', async (changes, message) => {
    await sql`insert into perfil ("strNombrePerfil") values ('Otro')`
    await sql`
      insert into usuario ("strNombreUsuario", "idPerfil", "strPwd", "strCorreo")
      values ('otra', 1, 'x', 'Otra@ejemplo.com'), ('sola', 1, 'x', 'sola@ejemplo.com')
    `
    const before = await readTables(sql)
    await expect(ensure(changes)).rejects.toEqual(new ConfigError(message))
    expect(await readTables(sql)).toEqual(before)
  })
})
