// A thread that compares passwords with bcryptjs and does nothing else: two before it counts.
import { parentPort, workerData } from 'node:worker_threads'
import { compareSync } from 'bcryptjs'

const { plain, hash, seconds } = workerData
const compare = () => {
  if (!compareSync(plain, hash)) throw new Error('not the password')
}
compare()
compare()
const begin = performance.now()
let count = 0
while (performance.now() - begin < seconds * 1000) {
  compare()
  count += 1
}
parentPort?.postMessage(count / ((performance.now() - begin) / 1000))
