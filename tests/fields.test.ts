import type { TSchema } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { describe, expect, it } from 'vitest'
import {
  Booleano,
  BooleanoDeConsulta,
  Correo,
  Flag,
  findFault,
  Id,
  IdDeConsulta,
  IdDeRuta,
  Page,
  Password,
  Search,
  Texto,
} from '../src/fields.js'
import { ModuloEnviado } from '../src/modulo/schemas.js'
import { UsuarioEditado, UsuarioNuevo } from '../src/usuario/schemas.js'

const KEY = '🗝'
const { strNombreModulo: NombreDeModulo } = ModuloEnviado.properties
const { imagenBase64: Imagen } = UsuarioNuevo.properties
const { strPwd: PasswordNuevo } = UsuarioEditado.properties

/** Values that a field takes, each with what handlers see. */
const TAKEN: [name: string, field: TSchema, values: [unknown, unknown][]][] = [
  [
    'Id',
    Id(),
    [
      [1, 1],
      ['2', 2],
      [' 3 ', 3],
      [1e3, 1000],
      [2_147_483_647, 2_147_483_647],
      [2_147_483_648, -1],
      [-7, -1],
      ['99999999999999999999', -1],
      ['1e400', -1],
      [1e300, -1],
    ],
  ],
  [
    'IdDeConsulta',
    IdDeConsulta,
    [
      ['', undefined],
      ['3', 3],
      ['2147483648', -1],
    ],
  ],
  [
    'Flag',
    Flag,
    [
      [true, true],
      [false, false],
      [null, false],
      [0, false],
      ['', false],
    ],
  ],
  [
    'Booleano',
    Booleano(),
    [
      [true, true],
      [false, false],
    ],
  ],
  ['Texto', Texto(), ['x', ' x ', 'x'.repeat(255), KEY.repeat(255)].map((text) => [text, text])],
  ['Texto, blank', Texto({ blank: true }), ['', ' ', 'x'].map((text) => [text, text])],
  ['Texto of 3', Texto({ max: 3 }), ['abc', KEY.repeat(3)].map((text) => [text, text])],
  [
    'Correo',
    Correo,
    [
      'a@b.cc',
      'ana.b+c@x-y.ejemplo.com',
      'ñu@ñandú.es',
      "o'brien@1.es",
      `${'a'.repeat(250)}@x.es`,
    ].map((text) => [text, text]),
  ],
  ['Password', Password(), ['x', ' ', 'ñ'.repeat(36)].map((text) => [text, text])],
  [
    'PasswordNuevo',
    PasswordNuevo,
    [
      ['', undefined],
      ['x', 'x'],
    ],
  ],
  [
    'Page',
    Page,
    [
      ['', 1],
      ['1', 1],
      ['3', 3],
      ['99999999999', 2_147_483_647],
    ],
  ],
  [
    'Search',
    Search,
    [
      ['', undefined],
      [' ', ' '],
      ['x', 'x'],
    ],
  ],
  [
    'BooleanoDeConsulta',
    BooleanoDeConsulta,
    [
      ['', undefined],
      ['true', true],
      ['false', false],
    ],
  ],
  [
    'NombreDeModulo',
    NombreDeModulo,
    [
      ['órdenes', 'ÓRDENES'],
      ['x'.repeat(255), 'X'.repeat(255)],
    ],
  ],
  [
    'Imagen',
    Imagen,
    [
      ['', undefined],
      ...[
        'data:image/png;base64,iVBO',
        'data:image/svg+xml;base64,PHN2Zz4=',
        'data:image/svg+xml;base64,PHN2Zz4',
        'data:image/svg+xml;base64,PHN2\nZz4=\n',
        'data:image/vnd.x-icon_1;base64,AA==',
        'data:image/svg+xml.1;charset=utf-8;base64,Az09+/aZ',
        `data:image/${'a'.repeat(30)}+${'b'.repeat(10)};${'c'.repeat(20)}=${'d'.repeat(20)};base64,AAAA`,
      ].map((uri): [string, string] => [uri, uri]),
    ],
  ],
]

/** Values that a field does not take, by what is wrong with them. */
const FAULTY: [name: string, field: TSchema, faults: Record<string, unknown[]>][] = [
  [
    'Id',
    Id(),
    {
      missing: [undefined, null, ''],
      number: [0, '0', '-0', 1.5, '1.5', ' ', 'Infinity', '-INFINITY', 'uno', true, [2], {}],
    },
  ],
  ['IdDeConsulta', IdDeConsulta, { number: ['0', '1.5', 'x', ' ', ['1']] }],
  ['Flag', Flag, { flag: [1, 'true', 'false', [], {}] }],
  ['Booleano', Booleano(), { missing: [undefined, null], boolean: [0, 1, '', 'true', []] }],
  [
    'Texto',
    Texto(),
    {
      missing: [undefined, null, '', ' \t'],
      text: [1, true, ['x']],
      characters: ['a\0b'],
      length: ['x'.repeat(256), 'x'.repeat(511), KEY.repeat(256)],
    },
  ],
  ['Texto, blank', Texto({ blank: true }), { missing: [undefined, null], characters: ['\0'] }],
  ['Texto of 3', Texto({ max: 3 }), { length: ['abcd'] }],
  [
    'Correo',
    Correo,
    {
      missing: ['', ' ', null],
      text: [1],
      characters: ['a\0@x.es'],
      length: [`${'a'.repeat(251)}@x.es`],
      email: [
        ...['ana', '@x.es', 'a@', 'a@x', 'a@.es', 'a@x.', 'a@-x.es', 'a@x-.es', 'a@x_y.es'],
        ...['a b@x.es', 'a..b@x.es', '.a@x.es', 'a.@x.es', 'a@x.es.', 'a@@x.es', 'a@x.es\n'],
        ...[
          'a"@x.es',
          'a(@x.es',
          'a,@x.es',
          'a:@x.es',
          'a;@x.es',
          'a<@x.es',
          'a[@x.es',
          'a\\@x.es',
        ],
        ...['a\u0007@x.es', ' a@x.es', 'a@x.es b'],
      ],
    },
  ],
  [
    'Password',
    Password(),
    {
      missing: [undefined, null, ''],
      text: [1, ['x']],
      characters: ['a\0b'],
      bytes: [`${'ñ'.repeat(36)}x`],
    },
  ],
  ['PasswordNuevo', PasswordNuevo, { text: [1], characters: ['\0'], bytes: ['x'.repeat(73)] }],
  ['Page', Page, { page: ['0', '-1', '1.5', 'x', ' ', '1\0', ['1']] }],
  ['Search', Search, { text: [1, ['a']], characters: ['a\0'] }],
  ['BooleanoDeConsulta', BooleanoDeConsulta, { choice: ['TRUE', '1', ' ', true] }],
  [
    'NombreDeModulo',
    NombreDeModulo,
    {
      missing: [undefined, null, '', 0, false, ' '],
      text: [1, true],
      characters: ['a\0'],
      length: ['x'.repeat(256)],
    },
  ],
  [
    'Imagen',
    Imagen,
    {
      text: [1, true, []],
      prefix: ['x', '/etc/hostname', 'https://x/data:image/png;base64,AAAA', ' data:image/png'],
      image: [
        ...[
          'data:image',
          'data:image/png',
          'data:image/png,AAAA',
          'data:image/png,AAAAAAAAAA',
          'data:image/;base64,AAAA',
        ],
        ...['data:imagen/png;base64,AAAA', 'data:image/p g;base64,AAAA'],
        ...['data:image/png;base64,', 'data:image/png;base64,\nAA', 'data:image/png;base64,A==='],
        ...[
          'data:image/png;base64,=AAA',
          'data:image/png;base64,AA=A',
          'data:image/png;base64,AA A',
        ],
        ...[
          'data:image/png;base64,AAA-',
          'data:image/png;base64,AA=\n=',
          'data:image/png;base64,AA=\n\n',
        ],
        ...['data:image/png;x;base64,AAAA', 'data:image/png;x=;base64,AAAA'],
        ...['data:image/png;a=b;c=d;base64,AAAA', 'data:image/svg+;base64,AAAA'],
        ...[31, 32].map((n) => `data:image/${'a'.repeat(n)};base64,AAAA`),
        `data:image/a+${'b'.repeat(11)};base64,AAAA`,
        `data:image/a;${'c'.repeat(21)}=d;base64,AAAA`,
        `data:image/a;c=${'d'.repeat(21)};base64,AAAA`,
      ],
    },
  ],
]

const short = (value: unknown) => JSON.stringify(value)?.slice(0, 60)

describe.each(TAKEN)('%s', (_, field, values) => {
  it.each(values.map(([sent, seen]) => [short(sent), sent, seen]))('takes %s', (_, sent, seen) => {
    expect(Value.Check(field, sent)).toBe(true)
    expect(findFault(field, sent)).toBeUndefined()
    expect(Value.Decode(field, sent)).toBe(seen)
  })
})

describe.each(FAULTY)('%s', (_, field, faults) => {
  const cases = Object.entries(faults).flatMap(([fault, values]) =>
    values.map((value) => [short(value), fault, value] as const),
  )
  it.each(cases)('refuses %s: %s', (_, fault, value) => {
    expect(Value.Check(field, value)).toBe(false)
    expect(findFault(field, value)?.fault).toBe(fault)
  })
})

it('gives the text of the contract where there is one', () => {
  expect(findFault(Id({ missing: 'falta' }), '')).toEqual({ fault: 'missing', message: 'falta' })
  expect(findFault(Id({ missing: 'falta' }), 0)).toEqual({ fault: 'number', message: undefined })
  for (const [value, fault] of [
    ['', 'missing'],
    ['x', 'number'],
  ])
    expect(findFault(IdDeRuta('no vale'), value)).toEqual({ fault, message: 'no vale' })
  expect(findFault(NombreDeModulo, '\0')?.message).toBe('El nombre del módulo es obligatorio.')
  expect(findFault(NombreDeModulo, 'x'.repeat(256))?.message).toBe(
    'El campo strNombreModulo no puede superar los 255 caracteres',
  )
})
