import type { RequestListener } from 'node:http'

/** How many chunks a body of any size may have. */
const FREE_CHUNKS = 1000
/** For each so many bytes, a body may have one more chunk. */
const BYTES_PER_CHUNK = 512

/**
 * Returns a listener that passes requests on to `next`. If a body has too many chunks, it closes
 * the connection. Each chunk takes time and memory of its own, and a client may send one for each
 * byte. Node makes a buffer of each chunk in the 64 KB that it reads at a time, even if nobody
 * reads the body yet. So the chunks are counted when they arrive.
 */
export function limitChunks(next: RequestListener): RequestListener {
  return (request, response) => {
    next(request, response)
    if (!request.headers['transfer-encoding']) return

    const { push } = request
    let left = FREE_CHUNKS
    request.push = (chunk) => {
      if (chunk) left += chunk.length / BYTES_PER_CHUNK - 1
      if (left >= 0) return push.call(request, chunk)
      request.socket.destroy()
      return false
    }
  }
}
