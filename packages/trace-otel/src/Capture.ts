/**
 * Lets content into telemetry, or keeps it out: prompts, answers, arguments, results, messages of errors.
 *
 * Invariants
 *   C1  It is off unless it is switched on, and the one switch covers everything that a person, a model or a tool wrote.
 *   C2  Redaction comes before the cap: a secret is not cut in half and missed.
 *   C3  What is cut stays valid JSON of the same shape.
 *
 * @since 0.1.0
 */

export interface Options {
  /** Gets every text before it goes out, and gives what may go out. Default: as it is. What it throws at is left out. */
  readonly redact?: (text: string) => string
  /** Bytes of one attribute, at least 256. Default 16,384: back ends commonly cut a value at 32 or 64 KB. */
  readonly maxBytes?: number
}

/** Turns values into attributes. */
export interface Capture {
  /** JSON of a list of messages; the oldest go first where not all fit. */
  readonly messages: (messages: ReadonlyArray<unknown>) => string
  /** JSON of an object; what is none becomes the `value` of one. */
  readonly object: (value: unknown) => string
  readonly text: (text: string) => string
}

const defaultBytes = 16_384
const leastBytes = 256
/** Characters that are left of a text at least: enough to know it again. */
const shortest = 32
const removed = "[removed]"

const bytesOf = (text: string): number => Buffer.byteLength(text)

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The same value with every text, names of fields included, changed. */
const mapTexts = (value: unknown, change: (text: string) => string): unknown => {
  if (typeof value === "string") return change(value)
  if (Array.isArray(value)) return value.map((item) => mapTexts(item, change))
  if (!isRecord(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [change(key), mapTexts(item, change)]))
}

const shortened =
  (most: number) =>
  (text: string): string =>
    text.length <= most ? text : `${whole(text.slice(0, most))}… [${text.length - most} characters cut]`

/** A cut may go through the middle of a character. */
const whole = (text: string): string => text.replace(/[\uD800-\uDBFF]$/, "")

/** Texts get shorter until the whole fits; undefined if it does not fit even so. */
const fitted = (value: unknown, maxBytes: number): string | undefined => {
  const all = JSON.stringify(value)
  if (bytesOf(all) <= maxBytes) return all
  for (let most = maxBytes; most > shortest; most = Math.floor(most / 2)) {
    const json = JSON.stringify(mapTexts(value, shortened(most)))
    if (bytesOf(json) <= maxBytes) return json
  }
  const least = JSON.stringify(mapTexts(value, shortened(shortest)))
  return bytesOf(least) <= maxBytes ? least : undefined
}

/** What content becomes, as the options say. */
export const make = ({ maxBytes = defaultBytes, redact = (text) => text }: Options): Capture => {
  const limit = Math.max(leastBytes, maxBytes)
  const clean = (text: string): string => {
    try {
      return redact(text)
    } catch {
      return removed
    }
  }
  const messages = (all: ReadonlyArray<unknown>): string => {
    const cleaned = all.map((message) => mapShape(message, clean))
    // Counted from the end: how many fit when each is as short as it gets.
    let from = cleaned.length
    let bytes = 2
    while (from > 0) {
      bytes += bytesOf(JSON.stringify(mapTexts(cleaned[from - 1], shortened(shortest)))) + 1
      if (bytes > limit) break
      from--
    }
    const json = from === cleaned.length ? undefined : fitted(cleaned.slice(from), limit)
    if (json !== undefined) return json
    return "[]"
  }
  const object = (value: unknown): string => {
    const cleaned = mapTexts(value ?? null, clean)
    const json = fitted(isRecord(cleaned) ? cleaned : { value: cleaned }, limit)
    return json ?? JSON.stringify({ cut: true })
  }
  const text = (all: string): string => shortened(Math.floor(limit / 4))(clean(all))
  return { messages, object, text }
}

/** Of a message, its content is redacted and its shape is not: `role`, `type` and ids must stay what they are. */
const mapShape = (message: unknown, clean: (text: string) => string): unknown => {
  if (!isRecord(message) || !Array.isArray(message["parts"])) return mapTexts(message, clean)
  const parts = message["parts"].map((part: unknown) => {
    if (!isRecord(part)) return part
    const changed: Record<string, unknown> = { ...part }
    for (const field of ["content", "arguments", "response", "name"])
      if (field in changed) changed[field] = mapTexts(changed[field], clean)
    return changed
  })
  return { ...message, parts }
}
