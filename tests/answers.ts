/** An answer as the tests compare it. */
export interface Answer<Body = any> {
  /** The HTTP status; 0 when no answer came. */
  status: number
  /** The body, parsed from JSON unless `Body` is a string. */
  body: Body
}

export interface AnswerWithHeaders<Body = any> extends Answer<Body> {
  /** The headers by their names in lower case. */
  headers: Record<string, unknown>
}

/** Returns an answer without its headers, so that a test can compare all the rest at once. */
export const withoutHeaders = ({ status, body }: Answer): Answer => ({ status, body })

/** The first of the contract's two failure bodies: `{ statusCode, message }`. */
export const statusCodeAnswer = (status: number, message: string): Answer => ({
  status,
  body: { statusCode: status, message },
})

/** The second of the contract's two failure bodies: `{ success: false, message }`. */
export const successFalseAnswer = (status: number, message: string): Answer => ({
  status,
  body: { success: false, message },
})

export const UNAUTHENTICATED = statusCodeAnswer(401, 'Sesión no válida o expirada')
export const FORBIDDEN = statusCodeAnswer(403, 'No tiene permiso para realizar esta acción')
export const NOT_FOUND = statusCodeAnswer(404, 'Recurso no encontrado')
export const TOO_LARGE = statusCodeAnswer(413, 'El cuerpo de la petición es demasiado grande')
export const INTERNAL = statusCodeAnswer(500, 'Error interno del servidor')
export const NOT_UPDATED = statusCodeAnswer(
  500,
  'Error al actualizar: la imagen es demasiado grande o el servidor tardó demasiado.',
)
export const BUSY = statusCodeAnswer(503, 'Servicio ocupado. Intente de nuevo más tarde.')

/** The two answers of `/health/ready`. */
export const READY: Answer = { status: 200, body: { status: 'ok' } }
export const NOT_READY = statusCodeAnswer(
  503,
  'Servicio no disponible. Intente de nuevo más tarde.',
)

export const DELETED: Answer = {
  status: 200,
  body: { success: true, message: 'Eliminado correctamente' },
}
export const MATRIX_REPLACED: Answer = {
  status: 200,
  body: { success: true, message: 'Matriz actualizada correctamente' },
}
