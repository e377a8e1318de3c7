/**
 * What can go wrong, in the application's words. `invalid` is a rule that the contract names,
 * `malformed` any other fault of the input; how each looks on the wire is the route's affair.
 */
export type FailureCode =
  | 'invalid'
  | 'malformed'
  | 'unauthenticated'
  | 'forbidden'
  | 'notFound'
  | 'conflict'
  | 'tooLarge'
  | 'unsupported'
  | 'tooMany'
  | 'upload'
  | 'busy'
  | 'unavailable'
  | 'unexpected'

/** The one refusal of whoever may not do something (decisions, section 2). */
export const forbidden = () =>
  new Failure('forbidden', 'No tiene permiso para realizar esta acción')

/** What everybody is told who has no session, or no longer (decisions, section 2). */
export const unauthenticated = () => new Failure('unauthenticated', 'Sesión no válida o expirada')

/** The service has more to do than it can. */
export const busy = () => new Failure('busy', 'Servicio ocupado. Intente de nuevo más tarde.')

/** A failure to be told to the client; `message` is its Spanish text, where its route has none. */
export class Failure extends Error {
  constructor(
    readonly code: FailureCode,
    message = '',
    options?: ErrorOptions,
  ) {
    super(message, options)
    this.name = 'Failure'
  }
}
