import { readdirSync, readFileSync } from 'node:fs'

/**
 * Returns the files of the folder sql/`folder`, in the order of their names: the name of each, without
 * its folder, and its content.
 */
export function readSqlFolder(folder: string) {
  const url = new URL(`../../sql/${folder}/`, import.meta.url)
  const names = readdirSync(url).sort()
  return names.map((name) => ({ name, text: readFileSync(new URL(name, url), 'utf8') }))
}
