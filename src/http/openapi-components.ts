/** What is read of an operation of an OpenAPI document. */
interface Operation {
  operationId: string
  /** The first one is the feature of the operation. */
  tags: string[]
  responses: Record<string, { content?: object } | { $ref: string }>
}

/** The operations by path and method. */
type Paths = Record<string, Record<string, Operation>>

/** One place of the document that has a response. */
interface Use {
  operation: Operation
  status: string
}

/**
 * Replaces every response that has content by a reference, in place. Returns each distinct one, by the
 * name that the references have: `components.responses` of the document.
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

/** Returns where each distinct response with content is used, by its JSON text. */
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
 * Returns a name for the response with these uses. A response that several features have is called
 * by its status, as in `Comun401`; any other one by its first operation too, as in `Login401`.
 */
function nameOf(uses: [Use, ...Use[]], taken: object) {
  const [{ operation, status }] = uses
  const features = new Set(uses.map((use) => use.operation.tags[0]))
  const common = `Comun${status}`
  if (features.size > 1 && !(common in taken)) return common
  const { operationId } = operation
  return operationId.charAt(0).toUpperCase() + operationId.slice(1) + status
}
