import { randomUUID } from 'node:crypto'
import http from 'node:http'
import https from 'node:https'
import type { FastifyBaseLogger } from 'fastify'
import type { Config } from '../config.js'
import { mayHaveHappened, withTimeout } from '../database/sql.js'
import { Failure } from '../http/answers/failures.js'

/** An image on the image host, as it is stored with its user. */
export interface ImagenAlojada {
  /** The name of the image on the host. */
  imagenPublicId: string
  imagenUrl: string
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

type Uploader = typeof import('cloudinary').v2.uploader

/** Returns the image host, a Cloudinary account (contract, sections 4.16 and 4.17). */
export function imageHost({ CLOUDINARY_URL: account }: Config) {
  // Otherwise the SDK would read these variables. It gets the account at each call.
  delete process.env.CLOUDINARY_URL
  delete process.env.CLOUDINARY_ACCOUNT_URL
  delete process.env.CLOUDINARY_API_PROXY

  // The SDK takes http or https from its own configuration, and not from the `upload_prefix` of a
  // call. An agent of the right kind overrides it.
  const isPlainHttp = account.upload_prefix?.startsWith('http:')
  const Agent = isPlainHttp ? http.Agent : https.Agent

  /**
   * Calls the SDK. Throws an error that can be logged if the call fails or exceeds TIMEOUT. The
   * SDK's own time limit does not suffice, because it starts again with every byte.
   */
  async function call<T>(request: (uploader: Uploader, options: object) => Promise<T>) {
    // Most processes never need the SDK, so it is loaded at the first call.
    const { v2: cloudinary } = await import('cloudinary')
    const agent = new Agent()
    try {
      const answer = request(cloudinary.uploader, { ...account, agent })
      return await withTimeout(answer, TIMEOUT)
    } catch (error) {
      throw hostError(error)
    } finally {
      agent.destroy()
    }
  }

  /** Removes an image. It never throws: a failure is only logged. */
  async function remove(publicId: string, log: FastifyBaseLogger) {
    try {
      await call((uploader, options) => uploader.destroy(publicId, options))
      log.info({ publicId }, 'image removed')
    } catch (error) {
      log.warn({ err: error, publicId }, 'image not removed')
    }
  }

  /**
   * Uploads the image in a data URI. If it fails or exceeds TIMEOUT, throws the Failure `upload`,
   * and removes in the background what may have been stored.
   */
  async function upload(dataUri: string, log: FastifyBaseLogger): Promise<ImagenAlojada> {
    // The name is chosen here and not by the host. So the image can be removed even if the answer
    // to the upload never arrives.
    const name = randomUUID()
    const placement = { folder: FOLDER, public_id: name, transformation: TRANSFORMATION }
    try {
      return await call(async (uploader, options) => {
        const answer = await uploader.upload(dataUri, { ...options, ...placement })
        const { secure_url: imagenUrl, public_id: imagenPublicId } = answer
        const isComplete = typeof imagenUrl === 'string' && typeof imagenPublicId === 'string'
        if (!isComplete) throw new Error('the answer names no image')
        return { imagenPublicId, imagenUrl }
      })
    } catch (cause) {
      void remove(`${FOLDER}/${name}`, log)
      throw new Failure('upload', undefined, { cause })
    }
  }

  /**
   * Uploads the image in a data URI, if there is one, and then calls `writeUsuario`, which writes
   * the user with that image. Returns what `writeUsuario` returns. Throws the Failure `upload`, and
   * what `writeUsuario` throws.
   *
   * The image is removed again if `writeUsuario` has failed without writing the user, or if the
   * `data` that it returns is null because there is no such user.
   */
  async function uploadAndWrite<T extends { data: object | null }>(
    dataUri: string | undefined,
    log: FastifyBaseLogger,
    writeUsuario: (imagen?: ImagenAlojada) => Promise<T>,
  ): Promise<T> {
    if (dataUri === undefined) return writeUsuario()

    const imagen = await upload(dataUri, log)
    const { imagenPublicId } = imagen
    const stored = await writeUsuario(imagen).catch(async (error) => {
      if (mayHaveHappened(error)) {
        // The user may refer to the image now. An unused image does less harm than a missing one.
        const line = { publicId: imagenPublicId }
        log.warn(line, 'image kept: the write of its user may have been carried out')
      } else {
        await remove(imagenPublicId, log)
      }
      throw error
    })
    if (!stored.data) await remove(imagenPublicId, log)
    return stored
  }

  return { uploadAndWrite, remove }
}

/**
 * Converts a rejection of the SDK into an error for the log. The SDK rejects with an error or with
 * an object, which has only `error` if the connection has failed. Its objects contain the whole
 * request, so only the message and the status are taken from them.
 */
function hostError(rejection: unknown) {
  const { message, http_code: status, error } = Object(rejection)
  const description = String(message ?? error?.code ?? error?.message)
  // The host's message may quote the image, which must not reach a log.
  const text = description.replace(/data:\S*/g, 'data:…').slice(0, 200)
  return new Error(`image host: ${text}${status ? ` (${status})` : ''}`)
}
