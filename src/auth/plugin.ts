import cookie from '@fastify/cookie'
import jwt from '@fastify/jwt'
import { TypeCompiler } from '@sinclair/typebox/compiler'
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
    verifyToken(): Token | undefined
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
    verify: {
      algorithms: ['HS256'],
      requiredClaims: ['exp'],
      // Clients send the same token many times; what is kept still ends when the token does.
      cache: 10_000,
    },
  })
  app.decorateRequest('verifyToken', function (this: FastifyRequest) {
    const token = bearerToken(this) ?? this.cookies[COOKIE]
    if (!token) return undefined
    try {
      const payload = app.jwt.verify<object>(token)
      return isToken.Check(payload) ? payload : undefined
    } catch {
      return undefined
    }
  })
})

const isToken = TypeCompiler.Compile(Token)

/**
 * The token of the Authorization header, which no other site can make a browser send. It decides
 * where the cookie comes too (decisions, section 4).
 */
export function bearerToken({ headers }: FastifyRequest) {
  return /^Bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1]
}
