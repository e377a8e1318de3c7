import { writeSync } from 'node:fs'

/** How long the line of an answered request may wait for further lines, in milliseconds. */
const MAX_DELAY = 50
/** Waiting lines are written earlier when they have this many characters. */
const BATCH = 16 * 1024
/** How many bytes are kept while nobody reads them. Further lines are dropped and counted. */
const MAX_UNREAD = 4 * 1024 * 1024
/** How long the process waits for a slow reader of a line that must not be lost, in milliseconds. */
const PATIENCE = 1000

/** Where the logger writes its lines. */
export interface Output {
  write(line: string): void
  /** Writes all lines that are still waiting. */
  end(): void
}

/**
 * Writes log lines to `process.stdout` in their order. The lines of answered requests wait for
 * MAX_DELAY and are written together, because a system call for each line would take longer than
 * everything else that is done for it. Every other line is written before `write` returns: when the
 * process is killed, the audit has the line of every write that was answered.
 *
 * A reader that stops reading blocks the process once, for PATIENCE. From then on lines are kept in
 * memory up to MAX_UNREAD. Further lines are dropped and counted, lines of the audit as well. When the
 * reader has gone or the disk is full, all waiting lines are dropped.
 *
 * The parameter is the stream and not its descriptor, because Node makes a pipe non-blocking when it
 * opens the stream. A blocking pipe would block the process for as long as nobody reads.
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

  /** Waits for a slow reader, up to PATIENCE. Does not wait again for a reader that has stopped. */
  function flushPatiently() {
    const deadline = performance.now() + PATIENCE
    flush()
    while (unread > 0 && !hasStopped) {
      pause(1)
      flush()
      hasStopped = unread > 0 && performance.now() > deadline
    }
  }

  /** Writes as much as the reader accepts now. */
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
      const line = { level: 40, time: Date.now(), dropped, msg: 'log lines dropped' }
      lines = `${JSON.stringify(line)}\n`
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

/** Whether `line` is that of an answered request. The logger puts the message at the end. */
const mayWait = (line: string) => line.endsWith(',"msg":"request"}\n')

/** Blocks the process for `ms` milliseconds. */
function pause(ms: number) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}
