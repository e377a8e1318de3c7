/** The parts of an operation in an OpenAPI document that this module uses. */
interface Operation {
  operationId: string
  /** The first tag is the feature of the operation. */
  tags: string[]
  responses: Record<string, { content?: object } | { $ref: string }>
}

/** The operations by path and method. */
type Paths = Record<string, Record<string, Operation>>

/** A place where a response is used: the operation, and the status under which it has the response. */
interface Use {
  operation: Operation
  status: string
}

/**
 * Replaces every response that has content by a reference to a shared response. Modifies `paths`.
 * Returns the shared responses by name, which is the value of `components.responses` in the document.
 */
export function shareResponses(paths: Paths): Record<string, object> {
  const responses: Record<string, object> = {}
  for (const [text, uses] of usesByResponse(paths)) {
    const name = nameOf(uses, responses)
    responses[name] = JSON.parse(text)
    for (const { operation, status } of uses) {
      operation.responses[status] = { $ref: `#/components/responses/${name}` }
    }
  }
  return responses
}

/** Returns the uses of each distinct response with content. The keys are the responses as JSON. */
function usesByResponse(paths: Paths) {
  const usesByText = new Map<string, [Use, ...Use[]]>()
  const operations = Object.values(paths).flatMap((item) => Object.values(item))
  for (const operation of operations) {
    for (const [status, response] of Object.entries(operation.responses)) {
      if (!('content' in response)) continue
      const text = JSON.stringify(response)
      const uses = usesByText.get(text)
      if (uses) uses.push({ operation, status })
      else usesByText.set(text, [{ operation, status }])
    }
  }
  return usesByText
}

/**
 * Returns a name for the response with these uses. For each status, the first response that several
 * features share is named `RespuestaComun` and the status, as in `RespuestaComun401`. The name of
 * any other response has its first operation instead of `Comun`, as in `RespuestaLogin401`. Client
 * generators call the answers of an operation `Login401` themselves, so a response with that name
 * would be defined twice.
 */
function nameOf(uses: [Use, ...Use[]], taken: object) {
  const [{ operation, status }] = uses
  const features = new Set(uses.map((use) => use.operation.tags[0]))
  const common = `RespuestaComun${status}`
  if (features.size > 1 && !(common in taken)) return common

  const { operationId } = operation
  const initial = operationId.charAt(0).toUpperCase()
  return `Respuesta${initial}${operationId.slice(1)}${status}`
}
