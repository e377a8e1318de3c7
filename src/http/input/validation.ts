import type { TObject } from '@sinclair/typebox'
import type { FastifyInstance } from 'fastify'
import { readObject } from './fields.js'

/**
 * Checks and decodes requests by the schemas of their routes. The path parameters are checked
 * before the body is read. Fastify has them checked again after that, so a decoded value must stay the
 * same when it is decoded again, as ids do.
 */
export function validateRequests(app: FastifyInstance) {
  app.addHook('preParsing', (request, _reply, _payload, done) => {
    const { params } = request.routeOptions.schema ?? {}
    if (params) request.params = readObject(params as TObject, request.params)
    done()
  })
  app.setValidatorCompiler<TObject>(({ schema }) => {
    return (input) => ({ value: readObject(schema, input) })
  })
}
