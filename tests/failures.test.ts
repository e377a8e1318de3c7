import { expect, it } from 'vitest'
import {
  Failure,
  type FailureAnswers,
  renderFailure,
  statusFailure,
  successFailure,
} from '../src/http/answers/failures.js'

it('renders the message of the Failure, else of the route, else the default message', () => {
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
})

it('renders the default message for a Failure without a message if the route lists several', () => {
  const conflict = new Failure('conflict')
  const withTexts = { conflict: statusFailure(500, ['uno', 'otro']) }
  expect(renderFailure(conflict, withTexts)).toMatchObject({
    status: 500,
    body: { message: 'La petición es incompatible con los datos existentes' },
  })
})

it('throws when a Failure is created with an empty message', () => {
  expect(() => new Failure('invalid', '')).toThrow('the text of the Failure invalid is empty')
})

it('does not compile when a message is missing or would be ignored', () => {
  const failures: FailureAnswers = {
    // @ts-expect-error Every Failure of this kind has its own message, so a route has none.
    invalid: statusFailure(400, 'texto'),
    // @ts-expect-error No Failure of this kind has its own message, so a route has just one.
    tooLarge: statusFailure(413, ['uno', 'otro']),
  }
  // @ts-expect-error A Failure of this kind needs a message that names the violated constraint.
  const withoutText = new Failure('malformed')
  // @ts-expect-error A Failure of this kind takes no message, because the route's is always sent.
  const withText = new Failure('unexpected', 'texto')
  expect([failures, withoutText, withText]).toHaveLength(3)
})
