/**
 * Returns a text as the bytes of a chunked body: in chunks of `length` characters, all of them
 * ASCII.
 */
export function inChunks(body: string, length: number) {
  const chunks = body.match(new RegExp(`.{1,${length}}`, 'gs')) ?? []
  const framed = chunks.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`)
  return `${framed.join('')}0\r\n\r\n`
}
