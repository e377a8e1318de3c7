import { Failure } from './failures.js'

/** The connection of a request, which tells when its client has gone. */
interface Client {
  destroyed: boolean
  once(event: 'close', listener: () => void): unknown
  off(event: 'close', listener: () => void): unknown
}

/** What one key has taken, and who waits for more of it, first come, first served. */
interface Account {
  taken: number
  waiting: { amount: number; begin(): void }[]
}

export type FairShare = ReturnType<typeof fairShare>

/**
 * Divides something that the service has little of, so that nobody takes it from the others: each
 * key may have `share` of it at a time, and what asks for more waits until some is given back. An
 * amount that is larger than the share is taken alone.
 */
export function fairShare(share: number, maxWaiting = Infinity) {
  const accounts = new Map<number, Account>()

  const hasRoom = ({ taken }: Account, amount: number) => taken === 0 || taken + amount <= share

  /** Lets those who wait begin, as far as there is room. */
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
    /** Whether so many wait for the share of `key` that no other may. */
    isFull: (key: number) => (accounts.get(key)?.waiting.length ?? 0) >= maxWaiting,

    /**
     * Takes `amount` of the share of `key`, waiting for it behind those who came before. Returns
     * the function that gives it back, which must be called. Throws the Failure `unreadable` when
     * the client goes while it waits, which leaves its place to the others.
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
