import type { Bench } from '../bench.js'
import { mapRequests, PASSWORD } from '../data.js'
import { alternate, p99, type Section, spread } from '../measure.js'
import { SERVERS } from '../processes.js'

const IN_FLIGHT = 20
const MAPS_PER_SECOND = 50
const ROUNDS = 3

/** Measures the latency of other requests during a storm of logins, and the logins per second. */
export async function login({ data, generator, startServer, ...bench }: Bench): Promise<Section> {
  const seconds = bench.seconds * 3
  const { url, stop } = await startServer(SERVERS.service)
  const maps = { url, seconds, perSecond: MAPS_PER_SECOND, requests: mapRequests(data.lectores) }
  const logins = data.lectores.map(({ nombre }) => ({
    method: 'POST' as const,
    path: '/api/auth/login',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ strNombreUsuario: nombre, strPwd: PASSWORD, captchaToken: 'humano' }),
  }))
  const readMaps = () => generator.run({ kind: 'paced', ...maps })
  const storm = (seconds: number) =>
    generator.run({ kind: 'flood', url, requests: logins, seconds, connections: IN_FLIGHT })

  await readMaps()
  // In a shorter warm-up possibly no login is answered, and then the bench fails.
  await storm(seconds)
  const results = await alternate(ROUNDS, ['idle', 'storm'] as const, async (name) => {
    const stormed = name === 'storm' ? storm(seconds) : undefined
    const [{ times }, load] = await Promise.all([readMaps(), stormed])
    return { maps: p99(times), logins: load ? load.answered / load.seconds : Number.NaN }
  })
  await stop()
  return {
    title: 'Login storm',
    about:
      `The permission map at ${MAPS_PER_SECOND} requests/s, alone and while ${IN_FLIGHT} logins ` +
      `are always in flight. ${ROUNDS} alternating rounds of ${seconds} s; median (min–max).`,
    rows: Object.entries(results).map(([state, rounds]) => ({
      state: state === 'storm' ? `${IN_FLIGHT} logins in flight` : state,
      'p99 of the map, ms': spread(rounds.map(({ maps }) => maps)),
      'logins/s': state === 'storm' ? spread(rounds.map(({ logins }) => logins)) : '',
    })),
  }
}
