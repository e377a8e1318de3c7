import { writeSync } from 'node:fs'

/** How long a line may wait for further lines, in milliseconds. */
const MAX_DELAY = 50
/** Waiting lines are written earlier if they have this many characters together. */
const BATCH = 16 * 1024
/** How many bytes are kept in memory for a slow reader. Further lines are dropped. */
const MAX_UNREAD = 4 * 1024 * 1024
/** How long a line that must not wait may block the process for a slow reader, in milliseconds. */
const PATIENCE = 1000

/** Where the logger writes its lines. */
export interface Output {
  write(line: string): void
  /** Writes all lines that are still waiting. */
  end(): void
}

/**
 * Returns an Output that writes log lines to `process.stdout` in their order. The lines of answered
 * requests wait for MAX_DELAY and are written together, because most of the cost of a line is its
 * system call. Every other line is written before `write` returns. So even if the process is killed,
 * the audit log has a line for every write that was answered.
 *
 * A reader that stops reading blocks the process for PATIENCE. From then on lines are kept in
 * memory, up to MAX_UNREAD, and lines beyond that are dropped, audit lines as well. When the reader
 * has read everything, a line with the number of dropped lines follows. At its end, the process
 * waits for the reader for PATIENCE once more. If the reader has closed the pipe or the disk is
 * full, all waiting lines are lost and not counted.
 *
 * The caller must pass `process.stdout` and not the number of its descriptor. Node opens the stream at
 * the first access, and makes a pipe non-blocking then. A write to a blocking pipe would block the
 * process until somebody reads.
 */
export function openOutput({ fd }: { fd: number }): Output {
  /** The lines that are not in `chunks` yet. */
  let lines = ''
  /** The bytes that the reader has not accepted yet. */
  let chunks: Buffer[] = []
  /** The number of bytes in `chunks`. */
  let unread = 0
  /** The number of lines that were dropped and not reported yet. */
  let dropped = 0
  /** Whether the reader has exceeded PATIENCE and has not read everything since then. */
  let hasStopped = false
  /** The timer of flushLater. Undefined while it does not run. */
  let timer: NodeJS.Timeout | undefined

  function write(line: string) {
    if (unread + lines.length > MAX_UNREAD) {
      dropped += 1
      return
    }
    lines += line
    if (!mayWait(line)) {
      flushPatiently()
    } else if (lines.length >= BATCH && unread === 0) {
      flush()
    }
    flushLater()
  }

  /** Writes the waiting lines every MAX_DELAY until none is left. */
  function flushLater() {
    const isEmpty = lines === '' && unread === 0
    if (timer || isEmpty) return
    timer = setTimeout(() => {
      timer = undefined
      flush()
      flushLater()
    }, MAX_DELAY).unref()
  }

  /** Writes all lines. Waits up to PATIENCE for a slow reader, but not for one that has stopped. */
  function flushPatiently() {
    const deadline = performance.now() + PATIENCE
    flush()
    while (unread > 0 && !hasStopped) {
      pause(1)
      flush()
      hasStopped = unread > 0 && performance.now() > deadline
    }
  }

  /** Writes as much as the reader accepts now. If writing fails, drops all waiting lines. */
  function flush() {
    addChunk()
    try {
      writeChunks()
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      const isPipeFull = code === 'EAGAIN'
      if (isPipeFull) return
      chunks = []
      unread = 0
    }
    hasStopped = false
    if (dropped > 0) reportDropped()
  }

  /** Moves the text in `lines` to `chunks`. */
  function addChunk() {
    if (lines === '') return
    const chunk = Buffer.from(lines)
    chunks.push(chunk)
    unread += chunk.length
    lines = ''
  }

  /** Writes a line with the number of lines that were dropped. */
  function reportDropped() {
    const line = {
      level: 40,
      time: Date.now(),
      dropped,
      msg: 'log lines dropped',
    }
    lines = `${JSON.stringify(line)}\n`
    dropped = 0
    flush()
  }

  /** Writes `chunks` until none is left. Throws if the reader accepts no more, or if writing fails. */
  function writeChunks() {
    let chunk = chunks[0]
    while (chunk) {
      const written = writeSync(fd, chunk)
      unread -= written
      if (written < chunk.length) chunks[0] = chunk.subarray(written)
      else chunks.shift()
      chunk = chunks[0]
    }
  }

  function end() {
    hasStopped = false
    flushPatiently()
  }

  return { write, end }
}

/** Returns whether the line may be written later, because it only reports an answered request. */
function mayWait(line: string) {
  // The logger puts the message at the end of each line.
  return line.endsWith(',"msg":"request"}\n')
}

/** Blocks the process for `ms` milliseconds. */
function pause(ms: number) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}
