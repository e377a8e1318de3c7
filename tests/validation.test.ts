import { type TObject, Type } from '@sinclair/typebox'
import { describe, expect, it } from 'vitest'
import { Failure } from '../src/failure.js'
import {
  Booleano,
  BooleanoDeConsulta,
  Correo,
  Flag,
  Id,
  Page,
  Password,
  Search,
  Texto,
} from '../src/fields.js'
import { UsuarioNuevo } from '../src/usuario/schemas.js'
import { validatorCompiler } from '../src/validation.js'

const Entrada = Type.Object({ idModulo: Id(), bitEditar: Flag })
const Todo = Type.Object({
  nombre: Texto({ faults: { missing: 'El nombre es obligatorio' } }),
  clave: Password(),
  activo: Type.Optional(Booleano()),
  lista: Type.Optional(Type.Array(Entrada)),
})
const GOOD = { nombre: 'x', clave: 'x' }

const validate = (schema: TObject, input: unknown) =>
  validatorCompiler({ schema, method: 'POST', url: '/', httpPart: 'body' })(input)
const invalid = (message: string) => ({ error: new Failure('invalid', message) })
const malformed = (message: string) => ({ error: new Failure('malformed', message) })

describe('a request', () => {
  it('is decoded, and the input left as it was', () => {
    const input = { ...GOOD, activo: null, lista: [{ idModulo: '2', bitEditar: 0 }] }
    const before = structuredClone(input)
    expect(validate(Todo, input)).toEqual({
      value: { ...GOOD, lista: [{ idModulo: 2, bitEditar: false }] },
    })
    expect(input).toEqual(before)
  })

  it('loses its unknown keys, in lists too', () => {
    const input = { ...GOOD, otra: 1, lista: [{ idModulo: 2, '\0': 1, otra: { mas: 1 } }] }
    expect(validate(Todo, input)).toEqual({ value: { ...GOOD, lista: [{ idModulo: 2 }] } })
  })

  it.each([undefined, null, 'x', 1, [], [{ nombre: 'x', clave: 'x' }]])(
    'that is no object has none of the fields: %j',
    (input) => {
      expect(validate(Todo, input)).toEqual(invalid('El nombre es obligatorio'))
      expect(validate(Type.Object({ page: Page }), input)).toEqual({ value: {} })
    },
  )

  it('is not refused for what it may leave out', () => {
    const Filtro = Type.Object({ page: Page, isAdmin: Type.Optional(BooleanoDeConsulta) })
    expect(validate(Filtro, { isAdmin: 'x' })).toEqual(
      malformed('El campo isAdmin debe ser true o false'),
    )
  })

  it('is refused for the first fault that has a text of its own, else for the first', () => {
    expect(validate(Todo, { ...GOOD, clave: 1, activo: 'x' })).toEqual(
      malformed('El campo clave debe ser texto'),
    )
    const reversed = Type.Object({ clave: Password(), nombre: Todo.properties.nombre })
    expect(validate(reversed, {})).toEqual(invalid('El nombre es obligatorio'))
    expect(validate(reversed, { nombre: 'x' })).toEqual(malformed('El campo clave es obligatorio'))
  })

  it('without an optional field is not refused for it', () => {
    expect(validate(Todo, { nombre: 'x', clave: 1 })).toEqual(
      malformed('El campo clave debe ser texto'),
    )
    expect(validate(Todo, { nombre: 'x', clave: 'x', activo: undefined })).toEqual({ value: GOOD })
  })
})

describe('a list', () => {
  it('is one of objects, each as its schema says', () => {
    const refusal = (lista: unknown) => validate(Todo, { ...GOOD, lista })
    expect(refusal([])).toEqual({ value: { ...GOOD, lista: [] } })
    for (const none of ['x', 1, {}]) {
      expect(refusal(none)).toEqual(malformed('El campo lista debe ser una lista'))
    }
    for (const entry of [null, 1, 'x', [], [1]]) {
      expect(refusal([{ idModulo: 1 }, entry])).toEqual(
        malformed('El campo lista debe ser una lista de objetos'),
      )
    }
    expect(refusal([{ idModulo: 1 }, { idModulo: 0 }])).toEqual(
      malformed('El campo idModulo debe ser un número entero distinto de 0'),
    )
  })

  it('without a fault is not what a request is refused for', () => {
    const First = Type.Object({ lista: Type.Array(Entrada), clave: Password() })
    expect(validate(First, { lista: [{ idModulo: 1 }], clave: 1 })).toEqual(
      malformed('El campo clave debe ser texto'),
    )
    expect(validate(First, { clave: 'x' })).toEqual(malformed('El campo lista debe ser una lista'))
  })
})

it.each([
  [Password(), undefined, 'El campo x es obligatorio'],
  [Id(), 0, 'El campo x debe ser un número entero distinto de 0'],
  [Page, '0', 'El campo x debe ser un entero mayor o igual a 1'],
  [Booleano(), 1, 'El campo x debe ser booleano'],
  [Flag, 1, 'El campo x debe ser booleano'],
  [Texto(), 1, 'El campo x debe ser texto'],
  [BooleanoDeConsulta, 'si', 'El campo x debe ser true o false'],
  [Search, '\0', 'El campo x contiene caracteres no permitidos'],
  [Texto({ max: 3 }), 'abcd', 'El campo x no puede superar los 3 caracteres'],
  [Password(), 'x'.repeat(73), 'La contraseña no puede superar los 72 bytes'],
  [Correo, 'x', 'El campo x debe ser un correo electrónico'],
  [UsuarioNuevo.properties.imagenBase64, 'x', 'El campo x debe empezar por data:image'],
  [
    UsuarioNuevo.properties.imagenBase64,
    'data:image',
    'El campo x debe ser una imagen completa en base64',
  ],
])('%# says %3$s', (field, value, message) => {
  expect(validate(Type.Object({ x: field }), { x: value })).toEqual(malformed(message))
})
