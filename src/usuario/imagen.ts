import { randomUUID } from 'node:crypto'
import http from 'node:http'
import https from 'node:https'
import type { FastifyBaseLogger } from 'fastify'
import type { Config } from '../config.js'
import { mayHaveHappened } from '../database/sql.js'
import { Failure } from '../http/failures.js'

export interface ImagenAlojada {
  publicId: string
  url: string
}

/** The image host. */
export interface Imagenes {
  /** Uploads a data URI; throws the Failure `upload` when that fails or takes over 30 s. */
  upload(dataUri: string, log: FastifyBaseLogger): Promise<ImagenAlojada>
  /** Removes an image, best effort: a failure is logged and not thrown. */
  remove(publicId: string, log: FastifyBaseLogger): Promise<void>
}

const FOLDER = 'usuarios_corp'
const TIMEOUT = 30_000
const TRANSFORMATION = { width: 1000, crop: 'limit', quality: 'auto' }

/** The image SDK, which most processes never need: it is loaded with the first image. */
const loadSdk = async () => (await import('cloudinary')).v2

/** The image host behind `cloudinary://…`; see contract, sections 4.16 and 4.17. */
export function imageHost(account: Config['CLOUDINARY_URL']): Imagenes {
  const options = {
    cloud_name: account.cloudName,
    api_key: account.apiKey,
    api_secret: account.apiSecret,
    ...(account.uploadPrefix && { upload_prefix: account.uploadPrefix }),
  }
  // The SDK always calls https.request, which takes its protocol from the agent.
  const { Agent } = account.uploadPrefix?.startsWith('http:') ? http : https

  /** One call of the SDK with an end to it: its own time limit starts anew with every byte. */
  async function call<T>(request: (agent: http.Agent) => Promise<T>): Promise<T> {
    const agent = new Agent()
    let timer: NodeJS.Timeout | undefined
    const ended = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new HostError('took too long')), TIMEOUT)
    })
    try {
      return await Promise.race([request(agent), ended])
    } catch (error) {
      throw hostError(error)
    } finally {
      clearTimeout(timer)
      agent.destroy()
    }
  }

  async function remove(publicId: string, log: FastifyBaseLogger) {
    await call(async (agent) => {
      const destroyOptions = { ...options, agent, resource_type: 'image' }
      const cloudinary = await loadSdk()
      return cloudinary.uploader.destroy(publicId, destroyOptions)
    }).then(
      () => log.info({ publicId }, 'image removed'),
      (error) => log.warn({ err: error, publicId }, 'image not removed'),
    )
  }

  async function upload(dataUri: string, log: FastifyBaseLogger) {
    // A name of our own, so that an upload whose answer never came can be removed as well.
    const publicId = randomUUID()
    return call(async (agent) => {
      const cloudinary = await loadSdk()
      return cloudinary.uploader.upload(dataUri, {
        ...options,
        agent: agent as https.Agent,
        folder: FOLDER,
        public_id: publicId,
        transformation: TRANSFORMATION,
      })
    })
      .then(({ secure_url: url, public_id: publicId }) => {
        if (typeof url === 'string' && typeof publicId === 'string') return { publicId, url }
        throw new HostError('nonsense')
      })
      .catch((cause: HostError) => {
        if (!cause.isRefusal) void remove(`${FOLDER}/${publicId}`, log)
        throw new Failure('upload', undefined, { cause })
      })
  }

  return { upload, remove }
}

/** What the image host did wrong; `isRefusal` where it has said that it keeps nothing. */
class HostError extends Error {
  constructor(
    message: string,
    readonly isRefusal = false,
  ) {
    super(`image host: ${message}`)
  }
}

/** What the SDK rejects with: of a connection that failed it has the `error` alone. */
type Rejection = { message?: unknown; http_code?: unknown; error?: NodeJS.ErrnoException }

/** The SDK rejects with plain objects that carry the whole request: little is let out of them. */
function hostError(error: unknown): HostError {
  if (error instanceof HostError) return error
  const { message, http_code: status, error: cause } = (error ?? {}) as Rejection
  const said = String(message ?? cause?.code ?? cause?.message)
  // A host may quote what it was sent.
  const text = said.replace(/data:\S*/g, 'data:…').slice(0, 200)
  if (typeof status !== 'number') return new HostError(text)
  return new HostError(`${text} (${status})`, status >= 400 && status < 500)
}

/**
 * Uploads the image, if there is one, and then calls `store` with it. Where that throws
 * or finds nothing to store to, the image is removed again.
 */
export async function storeWithImagen<T>(
  imagenes: Imagenes,
  dataUri: string | undefined,
  log: FastifyBaseLogger,
  store: (imagen: ImagenAlojada | undefined) => Promise<T>,
): Promise<T> {
  const imagen = dataUri === undefined ? undefined : await imagenes.upload(dataUri, log)
  if (!imagen) return store(undefined)
  const stored = await store(imagen).catch(async (error) => {
    // Better an image without a user than a user whose image is gone.
    if (mayHaveHappened(error)) log.warn({ publicId: imagen.publicId }, 'image kept: row unknown')
    else await imagenes.remove(imagen.publicId, log)
    throw error
  })
  if (stored === undefined) await imagenes.remove(imagen.publicId, log)
  return stored
}
