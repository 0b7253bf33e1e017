/**
 * Bounds text and keeps it well-formed: a cut never splits a character, and no lone surrogate gets through (RI-041).
 *
 * @since 0.1.0
 */

const lone = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g

/** The text with U+FFFD in place of every lone surrogate. */
export const wellFormed = (text: string): string => text.replace(lone, "\uFFFD")

const splitsPair = (text: string, index: number): boolean => {
  const before = text.charCodeAt(index - 1)
  const after = text.charCodeAt(index)
  return before >= 0xd800 && before <= 0xdbff && after >= 0xdc00 && after <= 0xdfff
}

/** At most `max` UTF-16 units from the start. */
export const head = (text: string, max: number): string =>
  text.length <= max ? text : text.slice(0, splitsPair(text, max) ? max - 1 : max)

/** At most `max` UTF-16 units from the end. */
export const tail = (text: string, max: number): string => {
  const start = text.length - max
  return start <= 0 ? text : text.slice(splitsPair(text, start) ? start + 1 : start)
}

/** Keeps head and tail of a text that is longer than `max`, with a marker that says how much is missing. */
export const middleOut = (text: string, max: number): string => {
  if (text.length <= max) return text
  const start = head(text, Math.ceil(max * 0.75))
  const end = tail(text, Math.floor(max * 0.25))
  return `${start}\n[… ${text.length - start.length - end.length} characters cut …]\n${end}`
}

/** A message without stack frames, folders of absolute paths and what looks like a secret, in at most `max` units (RI-012). */
export const safeMessage = (text: string, max: number): string => {
  const kept = head(text, max * 4)
    .split("\n")
    .filter((line) => !/^\s+at\s(?!\[["\d])|^\s*at .+:\d+:\d+\)?$/.test(line)) // `at ["a"][0]` is a schema's path
    .join("\n")
    .replace(/(?<![\w:/\\])(?:file:\/\/)?(?:[A-Za-z]:)?(?:[\\/][\w.@~+-]+){2,}/g, (path) =>
      path.slice(path.search(/[^\\/]*$/))
    )
  return head(wellFormed(secretless(kept)), max).trim() || "no message"
}

/** Keys that say by their first characters whose they are. A digit, or no hyphen, tells them from names in kebab case. */
const prefixed = [
  /\b(?:sk|pk|rk)[-_](?:\w{20,}|(?=\S{0,200}\d)[\w-]{16,})/g,
  /\b(?:gh[oprsu]_|github_pat_|hf_|npm_|gsk_|r8_|whsec_|shp(?:at|ca|pa|ss)_|do[opr]_v1_)\w{16,}/g,
  /\b(?:xox[abeprs]|xapp|glpat|pypi|xai|tvly)-[\w-]{16,}/g,
  /\b(?:AIza[\w-]{30,}|ya29\.[\w-]{16,}|SG\.[\w-]{16,}\.[\w-]{16,})/g,
  /\b(?:AKIA|ASIA)[A-Z\d]{16}/g,
  /\bAGE-SECRET-KEY-1[A-Z\d]{16,}/g
]

/** Three parts; asked of what begins like one, so that a long text is read once. */
const jwt = /^[\w-]{8,}\.[\w-]{8,}\.[\w-]/

/** The text without what looks like a key or token; the same again changes nothing more. */
export const secretless = (text: string): string =>
  prefixed
    .reduce((kept, shape) => kept.replace(shape, "[redacted]"), text)
    .replace(/\b(bearer|basic|token)\s+(?=\S{0,200}\d)[\w.~+/=-]{16,}/gi, "$1 [redacted]")
    .replace(/\beyJ[\w.-]{20,}/g, (text) => (jwt.test(text) ? "[redacted]" : text))
    .replace(/(:\/\/)[^\s:/@]+:[^\s:/@]+@/g, "$1[redacted]@")
    .replace(
      /\b((?:api[-_]?key|access[-_]?token|secret|password)["']?\s*[:=]\s*["']?)(?=[^\s"',}]{0,200}\d)[^\s"',}]{6,}/gi,
      "$1[redacted]"
    )

/** How many bytes a text has as UTF-8; a lone surrogate counts as the replacement character. */
export const utf8Length = (text: string): number => {
  let bytes = 0
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    const isPair = unit >= 0xd800 && unit < 0xdc00 && (text.charCodeAt(i + 1) & 0xfc00) === 0xdc00
    if (isPair) i++
    bytes += unit < 0x80 ? 1 : unit < 0x800 ? 2 : isPair ? 4 : 3
  }
  return bytes
}
