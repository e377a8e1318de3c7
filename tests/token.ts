import { createHmac } from 'node:crypto'
import { SECRETS } from './service.js'

/** Returns a JWT with this payload. With the algorithm `none` its signature is empty. */
export function sign(payload: object, alg = 'HS256', key = SECRETS.JWT_SECRET) {
  const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url')
  const text = `${encode({ alg, typ: 'JWT' })}.${encode(payload)}`
  if (alg === 'none') return `${text}.`
  return `${text}.${createHmac(alg.replace('HS', 'sha'), key).update(text).digest('base64url')}`
}
