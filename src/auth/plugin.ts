import cookie from '@fastify/cookie'
import jwt from '@fastify/jwt'
import { Value } from '@sinclair/typebox/value'
import type { FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { Token } from './schemas.js'

/** The client keeps the token in it (contract, section 5). */
export const COOKIE = 'auth_token'
/** 8 hours (contract, section 8). */
const TOKEN_SECONDS = 28_800

declare module 'fastify' {
  interface FastifyRequest {
    /** What the request's token says; undefined without one that is ours and not expired. */
    verifyToken(): Promise<Token | undefined>
  }
}
declare module '@fastify/jwt' {
  interface FastifyJWT {
    payload: Token
  }
}

/** Signs and checks tokens: HS256 alone, `exp` demanded (decisions, section 4). */
export default fp<{ jwtSecret: string }>(async (app, { jwtSecret }) => {
  await app.register(cookie)
  await app.register(jwt, {
    secret: jwtSecret,
    sign: { algorithm: 'HS256', expiresIn: TOKEN_SECONDS },
    verify: { algorithms: ['HS256'], requiredClaims: ['exp'], extractToken },
  })
  app.decorateRequest('verifyToken', async function (this: FastifyRequest) {
    const payload = await this.jwtVerify<object>().catch(() => undefined)
    return Value.Check(Token, payload) ? payload : undefined
  })
})

/** The bearer token decides where both come (decisions, section 4). */
const extractToken = (request: FastifyRequest) => bearerToken(request) ?? request.cookies[COOKIE]

/** The token of the Authorization header, which no other site can make a browser send. */
export function bearerToken({ headers }: FastifyRequest) {
  return /^Bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1]
}
