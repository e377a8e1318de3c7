import cookie from '@fastify/cookie'
import jwt from '@fastify/jwt'
import { Value } from '@sinclair/typebox/value'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Config } from '../config.js'
import { Token } from './schemas.js'

/** The cookie in which the client keeps the token (contract, section 5). */
export const COOKIE = 'auth_token'
/** How long a token is valid, in seconds: 8 hours (contract, section 8). */
const TOKEN_SECONDS = 28_800

/** The options with which every token is verified. */
const VERIFY = { algorithms: ['HS256' as const], requiredClaims: ['exp'] }

declare module '@fastify/jwt' {
  interface FastifyJWT {
    payload: Token
  }
}

/**
 * Returns the payload of a request's token. Returns undefined if there is no token, or if the token has
 * expired, has a wrong signature, or has a payload that is not a Token.
 */
export type VerifyToken = (request: FastifyRequest) => Token | undefined

/**
 * Adds `app.jwt`, which signs tokens, and returns the function that verifies them. Tokens must be
 * signed with HS256 and have an expiry date (`exp`). While the operator replaces JWT_SECRET,
 * JWT_SECRET_PREVIOUS is the old secret: it still verifies tokens, but new tokens are not signed with it.
 */
export async function addTokens(app: FastifyInstance, config: Config): Promise<VerifyToken> {
  const { JWT_SECRET, JWT_SECRET_PREVIOUS } = config
  const keys = [JWT_SECRET, JWT_SECRET_PREVIOUS].filter((key) => key !== undefined)
  await app.register(cookie)
  await app.register(jwt, {
    secret: JWT_SECRET,
    sign: { algorithm: 'HS256', expiresIn: TOKEN_SECONDS },
  })

  return (request) => {
    const token = bearerToken(request) ?? request.cookies[COOKIE]
    if (!token) return undefined
    for (const key of keys) {
      try {
        const payload = app.jwt.verify<object>(token, { ...VERIFY, key })
        return Value.Check(Token, payload) ? payload : undefined
      } catch {
        // The token may be signed with the previous secret, which is tried next.
      }
    }
    return undefined
  }
}

/**
 * Returns the token in a Bearer header, even if it is malformed. Returns undefined if the request
 * has no such header.
 *
 * A request with a Bearer header is never identified by its cookie. So isForgeable in
 * guard.ts can treat every request with this header as one that no other site has forged:
 * another site can make a browser send the cookie, but not the header.
 */
export function bearerToken({ headers }: FastifyRequest) {
  const { authorization = '' } = headers
  const isBearer = /^Bearer\b/i.test(authorization)
  return isBearer ? authorization.slice('Bearer'.length).trim() : undefined
}
