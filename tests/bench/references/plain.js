// @ts-nocheck: type annotations would make this look like more code than it is.
//
// The plain way: the endpoints that the bench measures, without any optimization, with Fastify and
// its logger, @fastify/jwt and postgres.js in their default configuration. Each request makes one
// query for the caller's permission and then the queries for the answer. There are no versions of
// the permission maps. Of the writes, only the replacement of a matrix acquires a lock by a
// statement of its own. The file is JavaScript, because Node runs it without a TypeScript loader.
//
// By default it has no rules against privilege escalation. With RULES=true, a write, or a read of
// one user, is refused if it breaks one of the first three rules in README.md. The plain way checks
// them by further queries, and without locks.
import jwt from '@fastify/jwt'
import Fastify from 'fastify'
import postgres from 'postgres'

const { DATABASE_URL, JWT_SECRET, PORT, RULES } = process.env

const sql = postgres(DATABASE_URL, { max: 10 })
const app = Fastify({ logger: true })
app.decorateRequest('caller', null)
await app.register(jwt, { secret: JWT_SECRET, verify: { algorithms: ['HS256'] } })

app.setErrorHandler((error, _request, reply) => {
  const { statusCode = 500, message } = error
  return reply.code(statusCode).send({ statusCode, message })
})

function failure(statusCode, message) {
  return Object.assign(new Error(message), { statusCode })
}
const unauthenticated = () => failure(401, 'Sesión no válida o expirada')
const forbidden = () => failure(403, 'No tiene permiso para realizar esta acción')

/** Returns the token's active user, with the flags that the user's profile has on the module. */
async function findCaller(request, modulo) {
  try {
    await request.jwtVerify()
  } catch {
    throw unauthenticated()
  }
  const [caller] = await sql`
    select usuario.id, usuario."idPerfil", "bitAdministrador", "bitAgregar", "bitEditar",
      "bitConsulta", "bitEliminar", "bitDetalle"
    from usuario
    join perfil on perfil.id = usuario."idPerfil"
    left join modulo on "strNombreModulo" = ${modulo}
    left join permisos_perfil
      on permisos_perfil."idPerfil" = perfil.id and "idModulo" = modulo.id
    where usuario.id = ${request.user.id} and "idEstadoUsuario"
  `
  if (!caller) throw unauthenticated()
  return caller
}

/** Lets any active user through. */
async function session(request) {
  await findCaller(request, null)
}

/**
 * Lets three kinds of users through: administrators, users whose profile has the flag on the
 * module, and users for whom `isOwn` returns true.
 */
function permission(modulo, flag, isOwn = () => false) {
  return async (request) => {
    const caller = await findCaller(request, modulo)
    request.caller = caller
    if (caller.bitAdministrador || caller[flag]) return
    if (!isOwn(request.params, caller)) throw forbidden()
  }
}

const FLAGS = ['bitAgregar', 'bitEditar', 'bitConsulta', 'bitEliminar', 'bitDetalle']
const isLimited = (caller) => RULES === 'true' && !caller.bitAdministrador

/** Refuses the request if one of the profiles holds something that the caller's does not hold. */
async function refuseBeyond(caller, ...idPerfiles) {
  if (!isLimited(caller)) return
  for (const id of new Set(idPerfiles)) {
    if (id === caller.idPerfil) continue
    const [beyond] = await sql`
      select id
      from perfil
      where id = ${id} and ("bitAdministrador" or exists (
        select
        from permisos_perfil as suyo
        left join permisos_perfil as propio
          on propio."idPerfil" = ${caller.idPerfil} and propio."idModulo" = suyo."idModulo"
        where suyo."idPerfil" = ${id} and (
          suyo."bitAgregar" and propio."bitAgregar" is not true
          or suyo."bitEditar" and propio."bitEditar" is not true
          or suyo."bitConsulta" and propio."bitConsulta" is not true
          or suyo."bitEliminar" and propio."bitEliminar" is not true
          or suyo."bitDetalle" and propio."bitDetalle" is not true
        )
      ))
    `
    if (beyond) throw forbidden()
  }
}

/** Refuses the write if one of the records grants something that the caller does not hold. */
async function refuseGranting(caller, permisos) {
  if (!isLimited(caller)) return
  const ids = permisos.map(({ idModulo }) => idModulo)
  const propios = await sql`
    select "idModulo", "bitAgregar", "bitEditar", "bitConsulta", "bitEliminar", "bitDetalle"
    from permisos_perfil
    where "idPerfil" = ${caller.idPerfil} and "idModulo" = any(${ids})
  `
  const byModulo = new Map(propios.map((propio) => [propio.idModulo, propio]))
  for (const permiso of permisos) {
    const propio = byModulo.get(permiso.idModulo)
    if (FLAGS.some((flag) => permiso[flag] && !propio?.[flag])) throw forbidden()
  }
}

const boolean = { type: 'boolean' }
const flag = { type: 'boolean', default: false }
const integer = { type: 'integer' }
const string = { type: 'string' }
const nullableString = { type: 'string', nullable: true }
const flags = {
  bitAgregar: flag,
  bitEditar: flag,
  bitConsulta: flag,
  bitEliminar: flag,
  bitDetalle: flag,
}

const array = (items) => ({ type: 'array', items })
const object = (properties, required = []) => ({ type: 'object', properties, required })
const success = (data) => ({ 200: object({ success: boolean, data }) })
const page = (row) => ({
  200: object({ success: boolean, data: array(row), totalPages: integer }),
})

const Modulo = object({ id: integer, strNombreModulo: string })
const PerfilBreve = object({ id: integer, strNombrePerfil: string })
const Perfil = object({ id: integer, strNombrePerfil: string, bitAdministrador: boolean })
const Accion = object({ nombreModulo: string, ...flags })
const permiso = { id: integer, idPerfil: integer, idModulo: integer, ...flags }
const Permiso = object(permiso)
const PermisoConNombres = object({ ...permiso, nombrePerfil: string, nombreModulo: string })
const usuario = {
  id: integer,
  strNombreUsuario: string,
  idPerfil: integer,
  strCorreo: string,
  strNumeroCelular: nullableString,
  idEstadoUsuario: boolean,
  imagenUrl: nullableString,
}
const UsuarioVisto = object({ ...usuario, nombrePerfil: string })
const Usuario = object({ ...usuario, strPwd: string })

const IdParams = object({ id: integer })
const PageQuery = object({ page: { type: 'integer', minimum: 1, default: 1 } })
const PerfilEditado = object(
  { strNombrePerfil: { type: 'string', minLength: 1 }, bitAdministrador: boolean },
  ['strNombrePerfil', 'bitAdministrador'],
)
const PermisoEnviado = object({ idPerfil: integer, idModulo: integer, ...flags }, [
  'idPerfil',
  'idModulo',
])
const UsuarioEditado = object(
  {
    strNombreUsuario: string,
    idPerfil: integer,
    strCorreo: string,
    strNumeroCelular: nullableString,
    idEstadoUsuario: boolean,
  },
  ['strNombreUsuario', 'idPerfil', 'strCorreo', 'idEstadoUsuario'],
)
const Entrada = object({ idModulo: integer, ...flags }, ['idModulo'])
const Matriz = object({ idPerfil: integer, permisos: array(Entrada) }, ['idPerfil'])

const PAGE_SIZE = 5
const offset = (page) => (page - 1) * PAGE_SIZE

/** Sends the query for a page's rows and the query for their total, and returns the answer. */
async function readPage(rows, count) {
  const [data, [total]] = await Promise.all([rows, count])
  return { success: true, data, totalPages: Math.ceil(total.rows / PAGE_SIZE) }
}

app.get('/health/live', { logLevel: 'silent' }, async () => ({ status: 'ok' }))

app.get('/api/permisos/mis-permisos/:idPerfil', {
  onRequest: permission(
    'PERMISOS',
    'bitConsulta',
    (params, caller) => Number(params.idPerfil) === caller.idPerfil,
  ),
  schema: {
    params: object({ idPerfil: integer }),
    response: {
      200: object({
        success: boolean,
        permisos: { type: 'object', additionalProperties: Accion },
      }),
    },
  },
  handler: async ({ params }) => {
    const rows = await sql`
      select "strNombreModulo" as "nombreModulo", "bitAgregar", "bitEditar", "bitConsulta",
        "bitEliminar", "bitDetalle"
      from permisos_perfil
      join modulo on modulo.id = "idModulo"
      where "idPerfil" = ${params.idPerfil}
      order by permisos_perfil.id
    `
    const permisos = {}
    for (const row of rows) permisos[row.nombreModulo] = row
    return { success: true, permisos }
  },
})

app.get('/api/usuario', {
  onRequest: permission('USUARIO', 'bitConsulta'),
  schema: { querystring: PageQuery, response: page(UsuarioVisto) },
  handler: ({ query }) =>
    readPage(
      sql`
        select usuario.id, "strNombreUsuario", "idPerfil", "strCorreo", "strNumeroCelular",
          "idEstadoUsuario", "imagenUrl", "strNombrePerfil" as "nombrePerfil"
        from usuario
        join perfil on perfil.id = "idPerfil"
        order by usuario.id desc
        limit ${PAGE_SIZE} offset ${offset(query.page)}
      `,
      sql`select count(*)::integer as rows from usuario`,
    ),
})

app.get('/api/perfil', {
  onRequest: permission('PERFIL', 'bitConsulta'),
  schema: { querystring: PageQuery, response: page(Perfil) },
  handler: ({ query }) =>
    readPage(
      sql`
        select id, "strNombrePerfil", "bitAdministrador"
        from perfil
        order by id desc
        limit ${PAGE_SIZE} offset ${offset(query.page)}
      `,
      sql`select count(*)::integer as rows from perfil`,
    ),
})

app.get('/api/modulo', {
  onRequest: permission('MODULO', 'bitConsulta'),
  schema: { querystring: PageQuery, response: page(Modulo) },
  handler: ({ query }) =>
    readPage(
      sql`
        select id, "strNombreModulo"
        from modulo
        order by id desc
        limit ${PAGE_SIZE} offset ${offset(query.page)}
      `,
      sql`select count(*)::integer as rows from modulo`,
    ),
})

app.get('/api/permisos', {
  onRequest: permission('PERMISOS', 'bitConsulta'),
  schema: { querystring: PageQuery, response: page(PermisoConNombres) },
  handler: ({ query }) =>
    readPage(
      sql`
        select permisos_perfil.id, "idPerfil", "idModulo", "strNombrePerfil" as "nombrePerfil",
          "strNombreModulo" as "nombreModulo", "bitAgregar", "bitEditar", "bitConsulta",
          "bitEliminar", "bitDetalle"
        from permisos_perfil
        join perfil on perfil.id = "idPerfil"
        join modulo on modulo.id = "idModulo"
        order by permisos_perfil.id
        limit ${PAGE_SIZE} offset ${offset(query.page)}
      `,
      sql`select count(*)::integer as rows from permisos_perfil`,
    ),
})

app.get('/api/modulo/list', {
  onRequest: session,
  schema: { response: success(array(Modulo)) },
  handler: async () => {
    const data = await sql`select id, "strNombreModulo" from modulo order by id`
    return { success: true, data }
  },
})

app.get('/api/perfil/list', {
  onRequest: session,
  schema: { response: success(array(PerfilBreve)) },
  handler: async () => {
    const data = await sql`select id, "strNombrePerfil" from perfil order by id`
    return { success: true, data }
  },
})

app.get('/api/usuario/:id', {
  onRequest: permission(
    'USUARIO',
    'bitDetalle',
    (params, caller) => Number(params.id) === caller.id,
  ),
  schema: { params: IdParams, response: success(UsuarioVisto) },
  handler: async ({ params, caller }) => {
    const [data] = await sql`
      select usuario.id, "strNombreUsuario", "idPerfil", "strCorreo", "strNumeroCelular",
        "idEstadoUsuario", "imagenUrl", "strNombrePerfil" as "nombrePerfil"
      from usuario
      join perfil on perfil.id = "idPerfil"
      where usuario.id = ${params.id}
    `
    if (!data) throw failure(404, 'Usuario no encontrado')
    if (data.id !== caller.id) await refuseBeyond(caller, data.idPerfil)
    return { success: true, data }
  },
})

app.put('/api/perfil/:id', {
  onRequest: permission('PERFIL', 'bitEditar'),
  schema: { params: IdParams, body: PerfilEditado, response: success(Perfil) },
  handler: async ({ params, body, caller }) => {
    if (isLimited(caller)) {
      const [antes] = await sql`
        select "strNombrePerfil", "bitAdministrador" from perfil where id = ${params.id}
      `
      if (!antes) throw failure(404, 'Perfil no encontrado')
      if (antes.bitAdministrador !== body.bitAdministrador) throw forbidden()
      if (antes.strNombrePerfil !== body.strNombrePerfil) await refuseBeyond(caller, params.id)
    }
    const [data] = await sql`
      update perfil
      set "strNombrePerfil" = ${body.strNombrePerfil},
        "bitAdministrador" = ${body.bitAdministrador}
      where id = ${params.id}
      returning id, "strNombrePerfil", "bitAdministrador"
    `
    if (!data) throw failure(404, 'Perfil no encontrado')
    return { success: true, data }
  },
})

app.put('/api/permisos/:id', {
  onRequest: permission('PERMISOS', 'bitEditar'),
  schema: { params: IdParams, body: PermisoEnviado, response: success(Permiso) },
  handler: async ({ params, body, caller }) => {
    if (isLimited(caller)) {
      const [antes] = await sql`select "idPerfil" from permisos_perfil where id = ${params.id}`
      if (!antes) throw failure(404, 'Permiso no encontrado')
      await Promise.all([
        refuseBeyond(caller, antes.idPerfil, body.idPerfil),
        refuseGranting(caller, [body]),
      ])
    }
    const [data] = await sql`
      update permisos_perfil
      set "idPerfil" = ${body.idPerfil}, "idModulo" = ${body.idModulo},
        "bitAgregar" = ${body.bitAgregar}, "bitEditar" = ${body.bitEditar},
        "bitConsulta" = ${body.bitConsulta}, "bitEliminar" = ${body.bitEliminar},
        "bitDetalle" = ${body.bitDetalle}
      where id = ${params.id}
      returning id, "idPerfil", "idModulo", "bitAgregar", "bitEditar", "bitConsulta",
        "bitEliminar", "bitDetalle"
    `
    if (!data) throw failure(404, 'Permiso no encontrado')
    return { success: true, data }
  },
})

app.post('/api/permisos', {
  onRequest: permission('PERMISOS', 'bitAgregar'),
  schema: { body: PermisoEnviado, response: success(Permiso) },
  handler: async ({ body, caller }) => {
    await Promise.all([refuseBeyond(caller, body.idPerfil), refuseGranting(caller, [body])])
    const [data] = await sql`
      insert into permisos_perfil
        ("idPerfil", "idModulo", "bitAgregar", "bitEditar", "bitConsulta", "bitEliminar",
          "bitDetalle")
      values (${body.idPerfil}, ${body.idModulo}, ${body.bitAgregar}, ${body.bitEditar},
        ${body.bitConsulta}, ${body.bitEliminar}, ${body.bitDetalle})
      returning id, "idPerfil", "idModulo", "bitAgregar", "bitEditar", "bitConsulta",
        "bitEliminar", "bitDetalle"
    `
    return { success: true, data }
  },
})

app.put('/api/usuario/:id', {
  onRequest: permission('USUARIO', 'bitEditar'),
  schema: { params: IdParams, body: UsuarioEditado, response: success(Usuario) },
  handler: async ({ params, body, caller }) => {
    if (isLimited(caller)) {
      const [antes] = await sql`select "idPerfil" from usuario where id = ${params.id}`
      if (antes) await refuseBeyond(caller, antes.idPerfil, body.idPerfil)
    }
    const [data] = await sql`
      update usuario
      set "strNombreUsuario" = ${body.strNombreUsuario}, "idPerfil" = ${body.idPerfil},
        "strCorreo" = ${body.strCorreo}, "strNumeroCelular" = ${body.strNumeroCelular ?? null},
        "idEstadoUsuario" = ${body.idEstadoUsuario}
      where id = ${params.id}
      returning id, "strNombreUsuario", "idPerfil", "strPwd", "strCorreo", "strNumeroCelular",
        "idEstadoUsuario", "imagenUrl"
    `
    return { success: true, data }
  },
})

app.post('/api/permisos/guardar-matriz', {
  onRequest: permission('PERMISOS', 'bitEditar'),
  schema: {
    body: Matriz,
    response: { 200: object({ success: boolean, message: string }) },
  },
  handler: async ({ body, caller }) => {
    const { idPerfil, permisos = [] } = body
    await Promise.all([refuseBeyond(caller, idPerfil), refuseGranting(caller, permisos)])
    const rows = permisos.map((entrada) => ({ ...entrada, idPerfil }))
    await sql.begin(async (tx) => {
      await tx`select from perfil where id = ${idPerfil} for no key update`
      await tx`delete from permisos_perfil where "idPerfil" = ${idPerfil}`
      if (rows.length === 0) return
      await tx`insert into permisos_perfil ${tx(rows, 'idPerfil', 'idModulo', ...FLAGS)}`
    })
    return { success: true, message: 'Matriz actualizada correctamente' }
  },
})

await app.listen({ host: '127.0.0.1', port: Number(PORT) })
