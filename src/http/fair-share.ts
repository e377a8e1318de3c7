import { Failure } from './failures.js'

/** The connection of a request, which closes when the client goes. */
interface Client {
  destroyed: boolean
  once(event: 'close', listener: () => void): unknown
  off(event: 'close', listener: () => void): unknown
}

/** How much one key has taken, and the requests that wait for more, oldest first. */
interface Account {
  taken: number
  waiting: { amount: number; begin(): void }[]
}

export type FairShare = ReturnType<typeof fairShare>

/**
 * Divides a scarce resource among keys. Each key may hold `share` of it at a time. A request for more
 * waits until enough has been given back, and `maxWaiting` requests of one key may wait. An amount
 * above `share` is granted while its key holds nothing else.
 */
export function fairShare(share: number, maxWaiting = Infinity) {
  const accounts = new Map<number, Account>()

  const hasRoom = ({ taken }: Account, amount: number) => taken === 0 || taken + amount <= share

  /** Grants the waiting requests their amounts, in their order, as long as there is room. */
  function admit(account: Account) {
    for (;;) {
      const [first] = account.waiting
      if (!first || !hasRoom(account, first.amount)) return
      account.waiting.shift()
      account.taken += first.amount
      first.begin()
    }
  }

  function wait(account: Account, amount: number, client: Client) {
    return new Promise<void>((resolve, reject) => {
      const entry = { amount, begin }
      function begin() {
        client.off('close', leave)
        resolve()
      }
      function leave() {
        account.waiting.splice(account.waiting.indexOf(entry), 1)
        admit(account)
        reject(new Failure('unreadable'))
      }
      account.waiting.push(entry)
      client.once('close', leave)
    })
  }

  return {
    /** Whether no further request of `key` may wait. */
    isFull: (key: number) => (accounts.get(key)?.waiting.length ?? 0) >= maxWaiting,

    /**
     * Takes `amount` of the share of `key`, after all earlier requests of that key. Returns the
     * function that gives it back, which the caller must call. Throws the Failure `unreadable` when
     * the client goes while its request waits.
     */
    async take(key: number, amount: number, client: Client): Promise<() => void> {
      const account = accounts.get(key) ?? { taken: 0, waiting: [] }
      accounts.set(key, account)
      if (account.waiting.length > 0 || !hasRoom(account, amount)) {
        if (client.destroyed) throw new Failure('unreadable')
        await wait(account, amount, client)
      } else {
        account.taken += amount
      }
      return () => {
        account.taken -= amount
        admit(account)
        if (account.taken === 0) accounts.delete(key)
      }
    },
  }
}
