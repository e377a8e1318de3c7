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
    body: { success: false, message: 'propio' },
  })
  expect(renderFailure(conflict, failures).body).toEqual({ success: false, message: 'de la ruta' })
  expect(renderFailure(conflict).body).toEqual({
    statusCode: 409,
    message: 'La petición es incompatible con los datos existentes',
  })
})

it('renders the first message of the route for a Failure without a message', () => {
  const conflict = new Failure('conflict')
  const withTexts = { conflict: statusFailure(500, 'uno', 'otro') }
  expect(renderFailure(conflict, withTexts)).toEqual({
    status: 500,
    body: { statusCode: 500, message: 'uno' },
  })
})
