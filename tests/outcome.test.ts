import postgres from 'postgres'
import { describe, expect, it } from 'vitest'
import { AnswerTimeout, mayHaveHappened, StatementNotSent } from '../src/database/sql.js'
import { Failure } from '../src/http/answers/failures.js'

const postgresError = (code: string) =>
  Object.assign(new postgres.PostgresError('from the server'), { code })

describe('a write that has failed', () => {
  it.each([
    ['was refused by the service', new Failure('forbidden')],
    ['was not sent', new StatementNotSent(new Error('no connection'))],
    ['violates a constraint', postgresError('23505')],
    ['was cancelled', postgresError('57014')],
  ])('has changed nothing if it %s', (_, error) => {
    expect(mayHaveHappened(error)).toBe(false)
  })

  it.each([
    ['had no answer in time', new AnswerTimeout()],
    ['lost its connection', Object.assign(new Error('lost'), { code: 'CONNECTION_CLOSED' })],
    ['was sent by a pooler that lost the server', postgresError('08P01')],
  ])('may have been executed if it %s', (_, error) => {
    expect(mayHaveHappened(error)).toBe(true)
  })
})
