import type { TObject } from '@sinclair/typebox'
import type { FastifyInstance } from 'fastify'
import { readObject } from './fields.js'

/**
 * Checks and decodes requests by the schemas of their routes. The path parameters are checked here
 * before the body is read, and all other parts by Fastify afterwards. Of the parameters, the query
 * and the body a handler sees only what the schemas name. Of the headers it sees all.
 */
export function validateRequests(app: FastifyInstance) {
  app.addHook('preParsing', (request, _reply, _payload, done) => {
    const { params } = request.routeOptions.schema ?? {}
    if (params) request.params = readObject(params as TObject, request.params)
    done()
  })
  app.setValidatorCompiler<TObject>(({ schema, httpPart }) => {
    return (input) => ({ value: httpPart === 'params' ? input : readObject(schema, input) })
  })
}
