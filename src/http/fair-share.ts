import { Failure } from './failures.js'

/** The connection of a request. It closes when the client disconnects. */
interface Client {
  destroyed: boolean
  once(event: 'close', listener: () => void): unknown
  off(event: 'close', listener: () => void): unknown
}

/** A request that waits until its key may hold `amount` more. `begin` ends the wait. */
interface Waiting {
  amount: number
  begin(): void
}

/** The amount that one key holds, and its waiting requests, oldest first. */
interface Account {
  taken: number
  waiting: Waiting[]
}

/**
 * Divides a scarce resource among keys. The amounts that one key holds at a time add up to at most
 * `share`. A request that would exceed this sum waits until the key has given enough back. A single
 * amount above `share` is granted when its key holds nothing else.
 *
 * The number of waiting requests is not limited here: the caller must refuse a request when `isFull`
 * returns true, so that at most `maxWaiting` requests of one key wait.
 */
export function fairShare(share: number, maxWaiting = Infinity) {
  const accounts = new Map<string, Account>()

  /** Returns whether `account` may hold `amount` more. */
  function fits({ taken }: Account, amount: number) {
    return taken === 0 || taken + amount <= share
  }

  /** Grants the waiting requests their amounts, oldest first, until one does not fit. */
  function admit(account: Account) {
    for (;;) {
      const [first] = account.waiting
      if (!first || !fits(account, first.amount)) return
      account.waiting.shift()
      account.taken += first.amount
      first.begin()
    }
  }

  /** Resolves when `amount` has been granted. Rejects when the client disconnects before. */
  function wait(account: Account, amount: number, client: Client) {
    return new Promise<void>((resolve, reject) => {
      const request: Waiting = { amount, begin }

      function begin() {
        client.off('close', leave)
        resolve()
      }

      function leave() {
        const index = account.waiting.indexOf(request)
        account.waiting.splice(index, 1)
        // A smaller request behind this one may fit now.
        admit(account)
        reject(new Failure('unreadable'))
      }

      account.waiting.push(request)
      client.once('close', leave)
    })
  }

  return {
    /** Returns whether `maxWaiting` requests of `key` are already waiting. */
    isFull(key: string) {
      const waiting = accounts.get(key)?.waiting ?? []
      return waiting.length >= maxWaiting
    },

    /**
     * Takes `amount` of the share of `key`, after all earlier requests of that key. Returns a
     * function that gives the amount back. The caller must call that function exactly once. Throws
     * the Failure `unreadable` when the client disconnects while its request waits.
     */
    async take(key: string, amount: number, client: Client): Promise<() => void> {
      const account = accounts.get(key) ?? { taken: 0, waiting: [] }
      accounts.set(key, account)
      const mustWait = account.waiting.length > 0 || !fits(account, amount)
      if (mustWait) {
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
