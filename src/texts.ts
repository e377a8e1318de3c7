/** The longest password, in bytes. bcrypt ignores any further bytes. */
export const MAX_PASSWORD_BYTES = 72

/** Returns whether bcrypt uses all bytes of `password`. */
export const fitsBcrypt = (password: string) => Buffer.byteLength(password) <= MAX_PASSWORD_BYTES

/**
 * Returns whether PostgreSQL can store `text`: it has neither a NUL character nor an unpaired
 * surrogate.
 */
export const isStorable = (text: string) => !text.includes('\0') && text.isWellFormed()

/** White space at either end, or a control or invisible character anywhere. */
const INVISIBLE = /^\s|\s$|[\p{Cc}\p{Default_Ignorable_Code_Point}]/u

/**
 * Returns whether `text` has no control or invisible characters, and no white space at either end.
 */
export const isVisible = (text: string) => !INVISIBLE.test(text)

/**
 * Returns whether `text` has at most `max` characters (code points). Of a longer text, the regular
 * expression reads no more than that.
 */
export const isAtMost = (max: number, text: string) => new RegExp(`^.{0,${max}}$`, 'su').test(text)

// The parts of an email address, as regular expressions. An atom is a word of the local part.
const ATOM = String.raw`[^\s@"(),:;<>[\]\\.]+`
const LABEL = String.raw`[\p{L}\p{N}](?:[\p{L}\p{N}-]*[\p{L}\p{N}])?`
const EMAIL = new RegExp(`^${ATOM}(?:\\.${ATOM})*@(?:${LABEL}\\.)+${LABEL}$`, 'u')

/**
 * Returns whether `text` is an email address: a local part, `@`, and a domain of at least two
 * labels, without control or invisible characters.
 */
export const isEmail = (text: string) => isVisible(text) && EMAIL.test(text)
