import cookie from '@fastify/cookie'
import jwt, { type JWT } from '@fastify/jwt'
import { TypeCompiler } from '@sinclair/typebox/compiler'
import type { FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { Config } from '../config.js'
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

const verify = { algorithms: ['HS256' as const], requiredClaims: ['exp'] }

/**
 * Signs and checks tokens: HS256 alone, `exp` demanded. A previous secret
 * checks only, so that its tokens live on while the secret is exchanged.
 */
export default fp<Pick<Config, 'JWT_SECRET' | 'JWT_SECRET_PREVIOUS'>>(
  async (app, { JWT_SECRET, JWT_SECRET_PREVIOUS }) => {
    await app.register(cookie)
    await app.register(jwt, {
      secret: JWT_SECRET,
      sign: { algorithm: 'HS256', expiresIn: TOKEN_SECONDS },
      verify,
    })
    const keys = [app.jwt]
    if (JWT_SECRET_PREVIOUS) {
      await app.register(jwt, { secret: JWT_SECRET_PREVIOUS, namespace: 'previous', verify })
      keys.push((app.jwt as unknown as { previous: JWT }).previous)
    }

    app.decorateRequest('verifyToken', function (this: FastifyRequest) {
      const token = bearerToken(this) ?? this.cookies[COOKIE]
      if (!token) return undefined
      for (const key of keys) {
        try {
          const payload = key.verify<object>(token)
          return isToken.Check(payload) ? payload : undefined
        } catch {
          // Perhaps the other one's.
        }
      }
      return undefined
    })
  },
)

const isToken = TypeCompiler.Compile(Token)

/**
 * The token of a Bearer header, which no other site can make a browser send; undefined without one.
 * It decides, malformed or not, where the cookie comes too.
 */
export function bearerToken({ headers: { authorization = '' } }: FastifyRequest) {
  return /^Bearer\b/i.test(authorization) ? authorization.slice(6).trim() : undefined
}
