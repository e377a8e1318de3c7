import { compareSync } from 'bcryptjs'
import { beforeEach, describe, expect, it } from 'vitest'
import { PNG, testApp } from './app.js'

const { app, call, images } = await testApp()

const ANA = {
  strNombreUsuario: 'ana',
  idPerfil: 1,
  strPwd: 'clave de ana',
  strCorreo: 'ana@ejemplo.com',
  strNumeroCelular: '555 0101',
  idEstadoUsuario: true,
}
const NO_PASSWORD = { ...ANA, strPwd: undefined }
const EVA = { ...ANA, strNombreUsuario: 'eva', strCorreo: 'eva@ejemplo.com' }
const fails = (message: string) => ({ status: 500, body: { statusCode: 500, message } })
const NOT_UPDATED = fails(
  'Error al actualizar: la imagen es demasiado grande o el servidor tardó demasiado.',
)

const send = async (method: 'POST' | 'PUT', id: number | '', body: object, through = call) => {
  const answer = await through(method, `/api/usuario${id && `/${id}`}`, body)
  return { status: answer.status, body: answer.body }
}
const create = async (changes: object = {}) =>
  (await send('POST', '', { ...ANA, ...changes })).body.data
const stored = async (id: number) => {
  const [user] = await app.sql`
    select id, "strNombreUsuario", "idPerfil", "strPwd", "strCorreo", "strNumeroCelular",
      "idEstadoUsuario", "imagenUrl"
    from usuario where id = ${id}
  `
  return user
}
const hosted = async (url: string) => (await fetch(url)).status === 200

beforeEach(async () => {
  await app.sql`delete from usuario where id > 1`
  images.uploads.length = 0
  images.destroyed.length = 0
})

describe('the password', () => {
  it('is kept as its bcrypt hash of 10 rounds alone, which the answer carries', async () => {
    const data = await create()
    expect(data.strPwd).toMatch(/^\$2[aby]\$10\$/)
    expect(compareSync(ANA.strPwd, data.strPwd)).toBe(true)
    expect(await stored(data.id)).toEqual(data)
    expect((await create(EVA)).strPwd).not.toBe(data.strPwd)
  })

  it('is changed by an update that has one, and by no other', async () => {
    const { id, strPwd: hash } = await create()
    for (const strPwd of [undefined, null, ''])
      expect((await send('PUT', id, { ...ANA, strPwd })).body.data.strPwd).toBe(hash)
    const { data } = (await send('PUT', id, { ...ANA, strPwd: 'nueva' })).body
    expect(data.strPwd).toMatch(/^\$2[aby]\$10\$/)
    expect(compareSync('nueva', data.strPwd)).toBe(true)
    expect(await stored(id)).toEqual(data)
  })
})

it('an update overwrites all but the password and the image, and no other user', async () => {
  const eva = await create(EVA)
  const ana = await create({ imagenBase64: PNG })
  const changes = { strNombreUsuario: 'Ana', strCorreo: 'otra@ejemplo.com', idEstadoUsuario: false }
  const { strNumeroCelular: _, ...body } = { ...NO_PASSWORD, ...changes }
  const answer = await send('PUT', ana.id, body)
  const data = { ...ana, ...changes, strNumeroCelular: null }
  expect(answer).toEqual({ status: 200, body: { success: true, data } })
  expect(await stored(ana.id)).toEqual(data)
  expect(await stored(eva.id)).toEqual(eva)
})

it('of many equal emails at once one is created', async () => {
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, n) =>
      send('POST', '', { ...ANA, strNombreUsuario: `ana${n}`, imagenBase64: PNG }),
    ),
  )
  const refused = answers.filter(({ status }) => status !== 200)
  expect(refused).toEqual(Array(7).fill(fails('El correo electrónico ya está registrado')))
  await expect.poll(() => images.destroyed.length).toBe(7)
})

describe('the image', () => {
  it('goes to usuarios_corp, at most 1000 px wide, and its address to imagenUrl', async () => {
    const { id, imagenUrl } = await create({ imagenBase64: PNG })
    expect(images.uploads).toEqual([
      {
        publicId: expect.stringMatching(/^usuarios_corp\/[^/]+$/),
        transformation: 'c_limit,q_auto,w_1000',
      },
    ])
    expect(await hosted(imagenUrl)).toBe(true)

    const { data } = (await send('PUT', id, { ...NO_PASSWORD, imagenBase64: PNG })).body
    expect(data.imagenUrl).not.toBe(imagenUrl)
    expect(await hosted(data.imagenUrl)).toBe(true)
    expect(images.uploads[1]).toEqual({ ...images.uploads[0], publicId: expect.any(String) })
    for (const imagenBase64 of [undefined, null, ''])
      expect((await send('PUT', id, { ...NO_PASSWORD, imagenBase64 })).body.data).toEqual(data)
    expect(images.uploads).toHaveLength(2)
  })

  it('is not uploaded for a request that is refused before', async () => {
    for (const wrong of [{ strCorreo: 'ana' }, { strPwd: 'x'.repeat(73) }, { idPerfil: 0 }])
      for (const [method, id] of [
        ['POST', ''],
        ['PUT', 1],
      ] as const)
        expect((await send(method, id, { ...ANA, ...wrong, imagenBase64: PNG })).status).toBe(400)
    expect(images.uploads).toEqual([])
  })

  it.each([
    ['a create', 'POST', '', { strCorreo: EVA.strCorreo }],
    ['a create for no profile', 'POST', '', { idPerfil: 999 }],
    ['an update', 'PUT', 2, { strCorreo: EVA.strCorreo }],
    ['an update of nobody', 'PUT', 999_999, {}],
  ] as const)('is removed again after %s that stores nothing', async (_, method, id, changes) => {
    await create(EVA)
    const ana = method === 'PUT' && id === 2 ? (await create()).id : id
    const { body } = await send(method, ana, { ...ANA, ...changes, imagenBase64: PNG })
    expect(body.data).toBeUndefined()
    const uploaded = images.uploads.map(({ publicId }) => publicId)
    expect(new Set(uploaded).size).toBe(uploaded.length)
    await expect.poll(() => images.destroyed).toEqual(uploaded)
  })

  it('is removed again when the database fails', async () => {
    const { id } = await create()
    await app.sql`alter table usuario rename "strNumeroCelular" to roto`
    const created = await send('POST', '', { ...EVA, imagenBase64: PNG })
    const updated = await send('PUT', id, { ...ANA, imagenBase64: PNG })
    await app.sql`alter table usuario rename roto to "strNumeroCelular"`
    expect(created).toEqual(fails('Error interno del servidor'))
    expect(updated).toEqual(NOT_UPDATED)
    await expect
      .poll(() => images.destroyed)
      .toEqual(images.uploads.map(({ publicId }) => publicId))
  })

  it.each([
    ['refuses', 'cloudinary://clave:otro@nube'],
    ['cannot be reached', undefined],
  ])('fails the request when the host %s', async (_, address) => {
    const cloudinaryUrl = address
      ? `${address}?upload_prefix=${images.url}`
      : 'cloudinary://clave:secreto@nube?upload_prefix=http://127.0.0.1:1'
    const through = await testApp({ CLOUDINARY_URL: cloudinaryUrl })
    const body = { ...ANA, imagenBase64: PNG }
    expect(await send('POST', '', body, through.call)).toEqual(fails('No se pudo subir la imagen'))
    expect(await send('PUT', 1, body, through.call)).toEqual(NOT_UPDATED)
    expect(await through.app.sql`select "strNombreUsuario" from usuario`).toEqual([
      { strNombreUsuario: 'raiz' },
    ])
  })
})
