import { expect, it } from 'vitest'
import {
  Failure,
  type FailureAnswers,
  renderFailure,
  statusFailure,
  successFailure,
} from '../src/http/failures.js'

it('sends the text of the Failure, else that of the route, else the usual one', () => {
  const conflict = new Failure('conflict')
  const failures: FailureAnswers = { conflict: successFailure(200, 'de la ruta') }
  expect(renderFailure(new Failure('conflict', 'propio'), failures)).toEqual({
    status: 200,
    shape: 'success',
    body: { success: false, message: 'propio' },
  })
  expect(renderFailure(conflict, failures).body).toEqual({ success: false, message: 'de la ruta' })
  expect(renderFailure(conflict).body).toEqual({
    statusCode: 409,
    message: 'La petición es incompatible con los datos existentes',
  })
  const withTexts = { conflict: statusFailure(500, ['uno', 'otro']) }
  expect(renderFailure(conflict, withTexts)).toMatchObject({
    status: 500,
    body: { message: 'La petición es incompatible con los datos existentes' },
  })
})

it('throws for an empty text', () => {
  expect(() => new Failure('invalid', '')).toThrow('the text of the Failure invalid is empty')
})

it('does not compile where a text is missing or would be dropped', () => {
  const failures: FailureAnswers = {
    // @ts-expect-error Each Failure of this kind has its own text.
    invalid: statusFailure(400, 'texto'),
    // @ts-expect-error No Failure of this kind has a text of its own.
    tooLarge: statusFailure(413, ['uno', 'otro']),
  }
  // @ts-expect-error The route would have to know which constraint is broken.
  const withoutText = new Failure('malformed')
  // @ts-expect-error The text of the route is always sent.
  const withText = new Failure('unexpected', 'texto')
  expect([failures, withoutText, withText]).toHaveLength(3)
})
