import { once } from 'node:events'
import sonic from 'sonic-boom'

/** How many bytes of lines are kept in memory for a slow reader. Further lines are dropped. */
const MAX_WAITING_BYTES = 4 * 1024 * 1024
/** Lines are written at once if they have this many bytes together. */
const BATCH_BYTES = 8192
/**
 * How many bytes are written at a time. Each turn of the event loop writes once, and turns are long
 * under load. A file takes all of these bytes, a pipe at most 64 KiB.
 */
const MAX_WRITE_BYTES = 1024 * 1024
/** How long a line may wait for further lines, in milliseconds. */
const MAX_DELAY = 100
/** How long the end of the process may wait for a slow reader, in milliseconds. */
const END_DEADLINE = 500

/**
 * Returns the stream that writes log lines to the file descriptor `fd`. It never blocks the event
 * loop and never throws. While the reader of a pipe is slow, the lines wait in memory, up to
 * MAX_WAITING_BYTES. While nothing can be written, because the reader has closed the pipe or the
 * disk is full, further lines are dropped, and the lines that wait are tried again every MAX_DELAY.
 *
 * Pass `process.stdout.fd` and not 1: reading `process.stdout` makes a pipe non-blocking. With a
 * blocking pipe the process could not end while nobody reads.
 */
export function openDestination(fd: number) {
  const output = new sonic.SonicBoom({
    fd,
    minLength: BATCH_BYTES,
    maxLength: MAX_WAITING_BYTES,
    maxWrite: MAX_WRITE_BYTES,
    // The library would measure text that waits, up to MAX_WRITE_BYTES, again at each line.
    contentMode: 'buffer',
    periodicFlush: MAX_DELAY,
  })
  let isFailing = false
  output.on('write', () => {
    isFailing = false
  })
  output.on('error', () => {
    isFailing = true
  })
  output.on('drop', () => {
    destination.dropped += 1
  })

  const destination = {
    /** The number of lines that could not be written and were dropped. */
    dropped: 0,
    write(line: string) {
      if (isFailing) {
        destination.dropped += 1
        return
      }
      // The library's types lack buffers.
      output.write(Buffer.from(line) as unknown as string)
    },
    /** Writes the lines that still wait, unless that takes longer than END_DEADLINE or fails. */
    async end() {
      const signal = AbortSignal.timeout(END_DEADLINE)
      try {
        output.end()
        await once(output, 'close', { signal })
      } catch {
        // The deadline has passed, writing has failed, or the output has been closed before.
      }
    },
  }
  return destination
}
