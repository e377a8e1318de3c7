import { writeSync } from 'node:fs'

/** How long the line of an answered request may wait for others, in milliseconds. */
const MAX_DELAY = 50
/** From how many characters on the lines that wait are written before that. */
const BATCH = 16 * 1024
/** How much is kept while nobody reads it, in bytes. Further lines are dropped and counted. */
const MAX_UNREAD = 4 * 1024 * 1024
/** How long the process waits for a slow reader where a line must not be lost, in milliseconds. */
const PATIENCE = 1000

/** What the logger writes its lines to. */
export interface Output {
  write(line: string): void
  /** Writes everything that is left. */
  end(): void
}

/**
 * Writes log lines to `process.stdout` in the order in which they come. The lines of answered
 * requests wait for MAX_DELAY and are written together, as one system call for each takes longer than
 * all the rest that is done for a line. Every other line is written before `write` returns, so that a
 * killed process has lost no line of the audit whose answer is out.
 *
 * A reader that stops holds up the process once, for PATIENCE. From then on lines are kept in memory
 * up to MAX_UNREAD, and further ones are dropped and counted, the audit's as well. When the reader is
 * gone or the disk is full, what was to be written is dropped.
 *
 * Only the descriptor of the stream is used. But Node makes a pipe non-blocking when it opens the
 * stream, and a blocking one would hold up the process for as long as nobody reads.
 */
export function openOutput({ fd }: { fd: number }): Output {
  let lines = ''
  let chunks: Buffer[] = []
  let unread = 0
  let dropped = 0
  let hasStopped = false
  let timer: NodeJS.Timeout | undefined

  function write(line: string) {
    if (unread + lines.length > MAX_UNREAD) {
      dropped += 1
      return
    }
    lines += line
    if (!mayWait(line)) flushPatiently()
    else if (lines.length >= BATCH && unread === 0) flush()
    flushLater()
  }

  function flushLater() {
    if (timer || (lines === '' && unread === 0)) return
    timer = setTimeout(() => {
      timer = undefined
      flush()
      flushLater()
    }, MAX_DELAY).unref()
  }

  /** Waits for a slow reader, and no second time for one that has stopped. */
  function flushPatiently() {
    const deadline = performance.now() + PATIENCE
    flush()
    while (unread > 0 && !hasStopped) {
      pause(1)
      flush()
      hasStopped = unread > 0 && performance.now() > deadline
    }
  }

  /** Writes as much as the reader takes at once. */
  function flush() {
    if (lines !== '') {
      const chunk = Buffer.from(lines)
      chunks.push(chunk)
      unread += chunk.length
      lines = ''
    }
    try {
      for (let [chunk] = chunks; chunk; [chunk] = chunks) {
        const written = writeSync(fd, chunk)
        unread -= written
        if (written < chunk.length) chunks[0] = chunk.subarray(written)
        else chunks.shift()
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return
      chunks = []
      unread = 0
    }
    hasStopped = false
    if (dropped > 0) {
      lines = `${JSON.stringify({ level: 40, time: Date.now(), dropped, msg: 'log lines dropped' })}\n`
      dropped = 0
      flush()
    }
  }

  function end() {
    hasStopped = false
    flushPatiently()
  }

  return { write, end }
}

/** Whether a line is that of an answered request: the logger puts the message at its end. */
const mayWait = (line: string) => line.endsWith(',"msg":"request"}\n')

/** Does nothing at all for some milliseconds. */
function pause(ms: number) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}
