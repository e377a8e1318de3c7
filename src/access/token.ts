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
 * verifying it each time would take a tenth of the processor time of a short request. Whether the
 * session still exists is not remembered: guard.ts looks it up for each request.
 */
const MAX_VERIFIED = 1000

/** The options with which every token is verified. */
const verify = { algorithms: ['HS256' as const], requiredClaims: ['exp'] }

/**
 * Adds `app.jwt`, which signs tokens, and `request.verifyToken`. Tokens must be signed with HS256
 * and have an expiry date (`exp`). While the operator replaces JWT_SECRET, JWT_SECRET_PREVIOUS is
 * the old secret: it still verifies tokens, but new tokens are not signed with it.
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
      await app.register(jwt, {
        secret: JWT_SECRET_PREVIOUS,
        namespace: 'previous',
        verify,
      })
      // @fastify/jwt adds this verifier under the name of the namespace. Its types lack the name.
      const { previous } = app.jwt as unknown as { previous: JWT }
      verifiers.push(previous)
    }

    /**
     * Checks the signature, the expiry and the payload of a token. Returns the payload, or
     * undefined if one of the checks fails.
     */
    function checkToken(token: string): VerifiedToken | undefined {
      for (const verifier of verifiers) {
        try {
          const payload = verifier.verify<object>(token)
          return payloadChecker.Check(payload) ? payload : undefined
        } catch {
          // The token may be signed with the previous secret, which is tried next.
        }
      }
      return undefined
    }

    /** The payloads of verified tokens, by token. They may have expired since. */
    const remembered = new LRUCache<string, VerifiedToken>({ max: MAX_VERIFIED })

    app.decorateRequest('verifyToken', function (this: FastifyRequest) {
      const token = bearerToken(this) ?? this.cookies[COOKIE]
      if (!token) return undefined
      const known = remembered.get(token)
      if (known && known.exp * 1000 > Date.now()) return known

      const payload = checkToken(token)
      if (payload) remembered.set(token, payload)
      return payload
    })
  },
)

/** The payload of a verified token. `exp` is when the token expires, in seconds since 1970. */
const VerifiedToken = Type.Intersect([
  Token,
  Type.Object({
    exp: Type.Number(),
  }),
])
type VerifiedToken = Static<typeof VerifiedToken>

const payloadChecker = TypeCompiler.Compile(VerifiedToken)

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
