import cookie from '@fastify/cookie'
import jwt, { type JWT } from '@fastify/jwt'
import { type Static, Type } from '@sinclair/typebox'
import { TypeCompiler } from '@sinclair/typebox/compiler'
import type { FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { LRUCache } from 'lru-cache'
import type { Config } from '../config.js'
import { Token } from './schemas.js'

/** The cookie in which the client keeps the token (contract, section 5). */
export const COOKIE = 'auth_token'
/** How long a token is valid, in seconds: 8 hours (contract, section 8). */
const TOKEN_SECONDS = 28_800

declare module 'fastify' {
  interface FastifyRequest {
    /**
     * Returns the payload of the request's token. Returns undefined if there is no token, or if the
     * token has expired, has a wrong signature, or has a payload that is not a Token.
     */
    verifyToken(): Token | undefined
  }
}
declare module '@fastify/jwt' {
  interface FastifyJWT {
    payload: Token
  }
}

/**
 * How many verified tokens are remembered. A page sends the same token with each request, and
 * verifying it again takes a tenth of the time of a short request. Whether the session still exists
 * is not remembered: auth/access.ts looks it up for each request.
 */
const MAX_VERIFIED = 1000

/** The options with which every token is verified. */
const verify = { algorithms: ['HS256' as const], requiredClaims: ['exp'] }

/**
 * Adds `app.jwt`, which signs tokens, and `request.verifyToken`. Tokens must be signed with HS256
 * and have an expiry date (`exp`). JWT_SECRET_PREVIOUS is the old secret while the operator
 * replaces it: tokens are still verified with it, but new ones are not signed with it.
 */
export default fp<Pick<Config, 'JWT_SECRET' | 'JWT_SECRET_PREVIOUS'>>(
  async (app, { JWT_SECRET, JWT_SECRET_PREVIOUS }) => {
    await app.register(cookie)
    await app.register(jwt, {
      secret: JWT_SECRET,
      sign: { algorithm: 'HS256', expiresIn: TOKEN_SECONDS },
      verify,
    })
    const verifiers = [app.jwt]
    if (JWT_SECRET_PREVIOUS) {
      await app.register(jwt, { secret: JWT_SECRET_PREVIOUS, namespace: 'previous', verify })
      verifiers.push((app.jwt as unknown as { previous: JWT }).previous)
    }

    /** Verifies a token that is not remembered. */
    function verifyAnew(token: string): VerifiedToken | undefined {
      for (const verifier of verifiers) {
        try {
          const payload = verifier.verify<object>(token)
          return isVerifiedToken.Check(payload) ? payload : undefined
        } catch {
          // The token may be signed with the previous secret, which is tried next.
        }
      }
      return undefined
    }

    const remembered = new LRUCache<string, VerifiedToken>({ max: MAX_VERIFIED })

    app.decorateRequest('verifyToken', function (this: FastifyRequest) {
      const token = bearerToken(this) ?? this.cookies[COOKIE]
      if (!token) return undefined
      const known = remembered.get(token)
      if (known && known.exp * 1000 > Date.now()) return known

      const payload = verifyAnew(token)
      if (payload) remembered.set(token, payload)
      return payload
    })
  },
)

/** The payload of a verified token. `exp` is when it expires, in seconds since 1970. */
const VerifiedToken = Type.Intersect([Token, Type.Object({ exp: Type.Number() })])
type VerifiedToken = Static<typeof VerifiedToken>

const isVerifiedToken = TypeCompiler.Compile(VerifiedToken)

/**
 * Returns the token in a Bearer header. Returns undefined if there is no such header. A malformed
 * token is returned too, because the cookie must be ignored if the header is there: another site
 * can make a browser send the cookie, but not the header.
 */
export function bearerToken({ headers }: FastifyRequest) {
  const { authorization = '' } = headers
  const isBearer = /^Bearer\b/i.test(authorization)
  return isBearer ? authorization.slice('Bearer'.length).trim() : undefined
}
