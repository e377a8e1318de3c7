import { randomUUID } from 'node:crypto'
import http from 'node:http'
import https from 'node:https'
import type { FastifyBaseLogger } from 'fastify'
import type { Config } from '../config.js'
import { mayHaveHappened } from '../database/sql.js'
import { Failure } from '../http/failures.js'

/** An image that the image host keeps: its name there, and its address. */
export interface ImagenAlojada {
  publicId: string
  url: string
}

/** The service that stores the images. */
export interface Imagenes {
  /**
   * Uploads the image in a data URI. Throws the Failure `upload` if it fails or exceeds TIMEOUT.
   */
  upload(dataUri: string, log: FastifyBaseLogger): Promise<ImagenAlojada>
  /** Removes an image. It never throws: a failure is only logged. */
  remove(publicId: string, log: FastifyBaseLogger): Promise<void>
}

/** The folder of the images on the host. */
const FOLDER = 'usuarios_corp'
/** The most time for one call of the image host, in milliseconds. */
const TIMEOUT = 30_000
const TRANSFORMATION = { width: 1000, crop: 'limit', quality: 'auto' }

/** Loads the image SDK. Most processes never need it, so it is loaded at the first call. */
const loadSdk = async () => (await import('cloudinary')).v2

/** Returns the image host of a Cloudinary account (contract, sections 4.16 and 4.17). */
export function imageHost(account: Config['CLOUDINARY_URL']): Imagenes {
  const options = {
    cloud_name: account.cloudName,
    api_key: account.apiKey,
    api_secret: account.apiSecret,
    ...(account.uploadPrefix && { upload_prefix: account.uploadPrefix }),
  }
  // The SDK always calls https.request, which uses the protocol of its agent.
  const { Agent } = account.uploadPrefix?.startsWith('http:') ? http : https

  /**
   * Calls the SDK and throws a HostError if the call fails or exceeds TIMEOUT. The time limit of
   * the SDK itself starts anew with every byte.
   */
  async function call<T>(request: (agent: http.Agent) => Promise<T>): Promise<T> {
    const agent = new Agent()
    let timer: NodeJS.Timeout | undefined
    const timeout = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new HostError('took too long')), TIMEOUT)
    })
    try {
      return await Promise.race([request(agent), timeout])
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
    // The name is chosen here and not by the host. So the image can be removed even if the answer
    // to the upload never arrives.
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
        const isComplete = typeof url === 'string' && typeof publicId === 'string'
        if (isComplete) return { publicId, url }
        throw new HostError('nonsense')
      })
      .catch((cause: HostError) => {
        if (!cause.isRefusal) void remove(`${FOLDER}/${publicId}`, log)
        throw new Failure('upload', undefined, { cause })
      })
  }

  return { upload, remove }
}

/**
 * An error of the image host. `isRefusal` is true if the host has refused the request with a status
 * from 400 to 499: then it has stored nothing.
 */
class HostError extends Error {
  constructor(
    message: string,
    readonly isRefusal = false,
  ) {
    super(`image host: ${message}`)
  }
}

/** What the SDK rejects with. If the connection has failed, it has only `error`. */
type Rejection = { message?: unknown; http_code?: unknown; error?: NodeJS.ErrnoException }

/**
 * Converts what the SDK rejects with into a HostError. The SDK's objects contain the whole request,
 * so only the message and the status are taken from them.
 */
function hostError(error: unknown): HostError {
  if (error instanceof HostError) return error
  const { message, http_code: status, error: cause } = (error ?? {}) as Rejection
  const description = String(message ?? cause?.code ?? cause?.message)
  // The host's message may quote the image, which must not reach a log.
  const text = description.replace(/data:\S*/g, 'data:…').slice(0, 200)
  if (typeof status !== 'number') return new HostError(text)
  return new HostError(`${text} (${status})`, status >= 400 && status < 500)
}

/**
 * Uploads the image, if there is one, and then calls `store` with it, which writes the user. If
 * `store` throws, or returns undefined because there is no such user, the image is removed again.
 * Returns what `store` returns, and throws what it throws.
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
    const { publicId } = imagen
    if (mayHaveHappened(error)) {
      // The user may refer to the image now. An unused image does less harm than a missing one.
      log.warn({ publicId }, 'image kept: the write of its user may have been carried out')
    } else {
      await imagenes.remove(publicId, log)
    }
    throw error
  })
  if (stored === undefined) await imagenes.remove(imagen.publicId, log)
  return stored
}
