import cookie from '@fastify/cookie'
import jwt from '@fastify/jwt'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Config } from '../config.js'
import { Failure } from '../http/answers/failures.js'
import type { TokenPayload } from './caller.js'

/** The cookie in which the client keeps the token (contract, section 5). */
export const TOKEN_COOKIE = 'auth_token'
/** How long a token is valid, in seconds: 8 hours (contract, section 8). */
const TOKEN_SECONDS = 28_800

/**
 * Returns the payload of a request's token. Throws the Failure `unauthenticated` if the token is
 * missing, expired or wrongly signed, or if its `id` or `ver` does not fit a column of the type
 * integer.
 */
export type VerifyToken = (request: FastifyRequest) => TokenPayload

/**
 * Adds `app.jwt`, which signs tokens, and returns the function that verifies them. Tokens must be
 * signed with HS256 and have an expiry date (`exp`). While the operator replaces JWT_SECRET,
 * JWT_SECRET_PREVIOUS is the old secret: it still verifies tokens, but new tokens are not signed
 * with it.
 */
export async function addTokens(app: FastifyInstance, config: Config): Promise<VerifyToken> {
  const { JWT_SECRET, JWT_SECRET_PREVIOUS, CORS_ORIGIN } = config
  await app.register(cookie)
  await app.register(jwt, {
    secret: JWT_SECRET,
    sign: { algorithm: 'HS256', expiresIn: TOKEN_SECONDS },
    verify: { algorithms: ['HS256'], requiredClaims: ['exp'] },
  })

  /**
   * Returns the token in the Bearer header or, if there is no such header, the one in the cookie.
   *
   * A page of another site can make a browser send the cookie, but not the header. The browser then
   * sends `Sec-Fetch-Site: cross-site`. So the cookie does not count in such a request, unless
   * CORS_ORIGIN lists the origin of the page.
   */
  function tokenOf({ headers, cookies }: FastifyRequest) {
    const { authorization = '', origin = '' } = headers
    const [, bearer] = /^Bearer(?= |$) *(.*)/i.exec(authorization) ?? []
    if (bearer !== undefined) return bearer
    const isCrossSite = headers['sec-fetch-site'] === 'cross-site'
    return isCrossSite && !CORS_ORIGIN.includes(origin) ? undefined : cookies[TOKEN_COOKIE]
  }

  /** Returns the payload of a token that is signed with one of the two secrets. */
  function verify(token: string): TokenPayload {
    try {
      return app.jwt.verify(token)
    } catch (error) {
      if (!JWT_SECRET_PREVIOUS) throw error
      return app.jwt.verify(token, { key: JWT_SECRET_PREVIOUS })
    }
  }

  return (request) => {
    try {
      const payload = verify(tokenOf(request) ?? '')
      if (fitsInteger(payload.id) && fitsInteger(payload.ver ?? 0)) return payload
    } catch {
      // The token cannot be verified.
    }
    throw new Failure('unauthenticated')
  }
}

/**
 * Returns whether the value fits a column of the type integer. With any other value the look-up
 * would fail, and with it those of other requests in the same statement.
 */
const fitsInteger = (value: number) => (value | 0) === value
