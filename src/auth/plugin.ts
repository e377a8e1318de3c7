import cookie from '@fastify/cookie'
import jwt from '@fastify/jwt'
import { Value } from '@sinclair/typebox/value'
import type { FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { Failure } from '../failure.js'
import { MAX_ID } from '../schemas.js'
import { findSesion } from './queries.js'
import { type Sesion, Token } from './schemas.js'

/** 8 hours (contract, section 8). */
const TOKEN_SECONDS = 28_800

declare module 'fastify' {
  interface FastifyRequest {
    /** Who is calling; there on every route that demands a session. */
    sesion: Sesion
  }
}
declare module '@fastify/jwt' {
  interface FastifyJWT {
    payload: Token
    user: unknown
  }
}

/** Signs and checks tokens, and decorates each request with `sesion`, for requireSesion to fill. */
export default fp<{ jwtSecret: string }>(async (app, { jwtSecret }) => {
  await app.register(cookie)
  await app.register(jwt, {
    secret: jwtSecret,
    sign: { algorithm: 'HS256', expiresIn: TOKEN_SECONDS },
    verify: { algorithms: ['HS256'], requiredClaims: ['exp'], extractToken },
  })
  app.decorateRequest('sesion', null as unknown as Sesion)
})

/** The bearer token decides where both come (decisions, section 4). */
function extractToken(request: FastifyRequest) {
  const bearer = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '')
  return bearer?.[1] ?? request.cookies.auth_token
}

/**
 * Hook: fills `request.sesion` with the active user that the token speaks for. Throws the Failure
 * `unauthenticated` when there is none (contract, section 5).
 */
export async function requireSesion(request: FastifyRequest) {
  const token = await request.jwtVerify<object>().catch(() => undefined)
  const sesion =
    Value.Check(Token, token) && token.id > 0 && token.id <= MAX_ID
      ? await findSesion(request.server.sql, token.id)
      : undefined
  if (!sesion) throw new Failure('unauthenticated', 'Sesión no válida o expirada')
  request.sesion = sesion
}
