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

const VERIFY = { algorithms: ['HS256' as const], requiredClaims: ['exp'] }

/**
 * Signs and checks tokens: HS256 alone, `exp` demanded (decisions, section 4). A previous secret
 * checks only, so that its tokens live on while the secret is exchanged.
 */
export default fp<Pick<Config, 'jwtSecret' | 'jwtSecretPrevious'>>(
  async (app, { jwtSecret, jwtSecretPrevious }) => {
    await app.register(cookie)
    await app.register(jwt, {
      secret: jwtSecret,
      sign: { algorithm: 'HS256', expiresIn: TOKEN_SECONDS },
      verify: VERIFY,
    })
    const keys = [app.jwt]
    if (jwtSecretPrevious) {
      await app.register(jwt, { secret: jwtSecretPrevious, namespace: 'previous', verify: VERIFY })
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
 * The token of the Authorization header, which no other site can make a browser send. It decides
 * where the cookie comes too (decisions, section 4).
 */
export function bearerToken({ headers }: FastifyRequest) {
  return /^Bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1]
}
