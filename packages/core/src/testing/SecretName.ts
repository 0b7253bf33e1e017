/**
 * Knows the names that say of a value that it is a secret. The one table of them: fields of JSON, variables, headers and
 * query parameters all ask here.
 *
 * @since 0.1.0
 */

/** Words that make a secret of whatever they stand for. */
const words = new Set(
  "authorization cookie cookies credential credentials passphrase passwd password passwords pwd secret secrets signature token".split(
    " "
  )
)

/** Written without anything between their words, in any place of a name. */
const joined =
  /passw(?:or)?d|passphrase|credential|connectionstring|connstr|(?:api|access|auth|private|secret|signing|encryption|subscription|account|master)_?keys?$|(?:api|access|auth|private|secret)_?key_|(?:access|auth|api|refresh|session|bearer|id)_?tokens?$/

/** What a name ends with that speaks about a secret and holds none: `token_count`, `tokenType`, `passwordPolicy`. */
const about = new Set("budget count counts details index kind length limit max min name policy type usage".split(" "))

/** The words of a name, whichever way it joins them: `dbPassword`, `DB_PASSWORD`, `db-password`. */
const split = (name: string): ReadonlyArray<string> =>
  name
    .replace(/([a-z\d])([A-Z])/g, "$1 $2")
    .replace(/([A-Z]+)([A-Z][a-z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^a-z\d]+/)
    .filter((word) => word !== "")

/** True if a text of that name is a secret whatever it looks like. */
export const is = (name: string): boolean => {
  const parts = split(name)
  if (about.has(parts.at(-1) ?? "")) return false
  return parts.some((part) => words.has(part)) || joined.test(parts.join("_")) || joined.test(parts.join(""))
}

/** True if a query parameter of that name is one; addresses use shorter names. */
export const isParameter = (name: string): boolean => is(name) || /^(?:key|sig|code|jwt|pw)$/i.test(name)

/** True if it names what a provider signed or encrypted for itself; a later request must give it back unchanged. */
export const isOpaque = (name: string): boolean =>
  split(name).some((part) => part === "signature" || part === "encrypted" || part === "redacted")
