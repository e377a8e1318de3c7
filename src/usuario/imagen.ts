import { randomUUID } from 'node:crypto'
import http from 'node:http'
import https from 'node:https'
import type { FastifyBaseLogger } from 'fastify'
import type { Config } from '../config.js'
import { mayHaveHappened } from '../database/sql.js'
import { Failure } from '../http/answers/failures.js'

/** An image on the image host. */
export interface ImagenAlojada {
  /** The name of the image on the host. */
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
/** How long one call of the image host may take, in milliseconds. */
const TIMEOUT = 30_000
/** How the host converts an image before it stores it. `width` is the largest width, in pixels. */
const TRANSFORMATION = {
  width: 1000,
  crop: 'limit',
  quality: 'auto',
}

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
  // The SDK chooses between http and https by CLOUDINARY_URL in the environment and ignores `upload_prefix`.
  // The agent overrides this choice, so the agent is chosen here.
  const isPlainHttp = account.uploadPrefix?.startsWith('http:')
  const Agent = isPlainHttp ? http.Agent : https.Agent

  /**
   * Calls the SDK and throws a HostError if the call fails or exceeds TIMEOUT. The SDK's own time
   * limit does not suffice, because it starts again with every byte.
   */
  async function call<T>(request: (agent: http.Agent) => Promise<T>): Promise<T> {
    const agent = new Agent()
    let timer: NodeJS.Timeout | undefined
    const timeout = new Promise<never>((_, reject) => {
      const tooLate = new HostError('took too long')
      timer = setTimeout(() => reject(tooLate), TIMEOUT)
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
    try {
      await call(async (agent) => {
        const cloudinary = await loadSdk()
        const destroyOptions = { ...options, agent, resource_type: 'image' }
        return cloudinary.uploader.destroy(publicId, destroyOptions)
      })
      log.info({ publicId }, 'image removed')
    } catch (error) {
      log.warn({ err: error, publicId }, 'image not removed')
    }
  }

  /**
   * Uploads the image to the host's folder FOLDER, where it gets the name `name`. Throws a
   * HostError if this fails.
   */
  async function uploadAs(dataUri: string, name: string): Promise<ImagenAlojada> {
    const answer = await call(async (agent) => {
      const cloudinary = await loadSdk()
      return cloudinary.uploader.upload(dataUri, {
        ...options,
        agent: agent as https.Agent,
        folder: FOLDER,
        public_id: name,
        transformation: TRANSFORMATION,
      })
    })
    const { secure_url: url, public_id: publicId } = answer
    const isComplete = typeof url === 'string' && typeof publicId === 'string'
    if (!isComplete) throw new HostError('the answer names no image')
    return { publicId, url }
  }

  async function upload(dataUri: string, log: FastifyBaseLogger) {
    // The name is chosen here and not by the host. So the image can be removed even if the answer
    // to the upload never arrives.
    const name = randomUUID()
    try {
      return await uploadAs(dataUri, name)
    } catch (cause) {
      const isRefusal = cause instanceof HostError && cause.isRefusal
      if (!isRefusal) void remove(`${FOLDER}/${name}`, log)
      throw new Failure('upload', undefined, { cause })
    }
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
interface Rejection {
  message?: unknown
  http_code?: unknown
  error?: NodeJS.ErrnoException
}

/**
 * Returns a HostError for an error or a Rejection of the SDK. The SDK's objects contain the whole
 * request, so only the message and the status are taken from them.
 */
function hostError(error: unknown): HostError {
  if (error instanceof HostError) return error
  const { message, http_code: status, error: cause } = (error ?? {}) as Rejection
  const description = String(message ?? cause?.code ?? cause?.message)
  // The host's message may quote the image, which must not reach a log.
  const text = description.replace(/data:\S*/g, 'data:…').slice(0, 200)
  if (typeof status !== 'number') return new HostError(text)
  const isRefusal = status >= 400 && status < 500
  return new HostError(`${text} (${status})`, isRefusal)
}

/**
 * Uploads the image, if there is one, and then calls `writeUsuario`, which writes the user with
 * that image. Returns what `writeUsuario` returns. Throws what `imagenes.upload` and `writeUsuario`
 * throw.
 *
 * The image is removed again if `writeUsuario` has failed without writing the user, or if it
 * returns undefined because there is no such user.
 */
export async function storeWithImagen<T>(
  imagenes: Imagenes,
  dataUri: string | undefined,
  log: FastifyBaseLogger,
  writeUsuario: (imagen: ImagenAlojada | undefined) => Promise<T>,
): Promise<T> {
  if (dataUri === undefined) return writeUsuario(undefined)

  const imagen = await imagenes.upload(dataUri, log)
  const { publicId } = imagen
  const stored = await writeUsuario(imagen).catch(async (error) => {
    if (mayHaveHappened(error)) {
      // The user may refer to the image now. An unused image does less harm than a missing one.
      log.warn({ publicId }, 'image kept: the write of its user may have been carried out')
    } else {
      await imagenes.remove(publicId, log)
    }
    throw error
  })
  if (stored === undefined) await imagenes.remove(publicId, log)
  return stored
}
