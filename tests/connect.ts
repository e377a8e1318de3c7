import postgres from 'postgres'
import { closeAtEnd } from './cleanup.js'

/**
 * Opens one connection with these settings of PostgreSQL. It is closed after the tests of the file.
 */
export function connectTo(url: string, connection: object = {}) {
  const sql = postgres(url, { max: 1, onnotice: () => {}, connection })
  closeAtEnd(() => sql.end({ timeout: 1 }))
  return sql
}
