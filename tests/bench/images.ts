import { execFile } from 'node:child_process'
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** What the plain way imports. */
const PLAIN_DEPENDENCIES = ['@fastify/jwt', 'fastify', 'postgres']
const PLAIN_FILES = ['plain.js', 'common.js']

const docker = async (...args: string[]) =>
  (await promisify(execFile)('docker', args)).stdout.trim()

/** Builds the production image, and one of the plain way on the same base; their sizes in MB. */
export async function imageSizes() {
  const dockerfile = await readFile(join(ROOT, 'Dockerfile'), 'utf8')
  const base = /^FROM (\S+)/.exec(dockerfile)?.[1]
  const folder = await mkdtemp(join(tmpdir(), 'llavero-plain-'))
  try {
    await writeFile(
      join(folder, 'Dockerfile'),
      `FROM ${base} AS build
WORKDIR /app
COPY . .
RUN npm install --no-audit --no-fund
FROM ${base}
COPY --from=build /app /app
`,
    )
    const dependencies = Object.fromEntries(
      await Promise.all(
        PLAIN_DEPENDENCIES.map(async (name) => {
          const file = join(ROOT, 'node_modules', name, 'package.json')
          return [name, JSON.parse(await readFile(file, 'utf8')).version]
        }),
      ),
    )
    await writeFile(join(folder, 'package.json'), JSON.stringify({ type: 'module', dependencies }))
    for (const file of PLAIN_FILES) {
      await copyFile(join(ROOT, 'tests/bench/references', file), join(folder, file))
    }
    return { service: await sizeOf(ROOT), plain: await sizeOf(folder) }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function sizeOf(folder: string) {
  const image = await docker('build', '--quiet', '--force-rm', folder)
  const bytes = await docker('image', 'inspect', '--format', '{{.Size}}', image)
  await docker('image', 'rm', image)
  return Number(bytes) / 1e6
}
