/**
 * Keeps the events of one append in one value.
 *
 * Events are JSON on one line, so they are kept as text with one event a line: the fastest to make and to take apart, and
 * readable in any SQLite shell. The beginning that all events of core share is left out, which is 7 % of a usual row and
 * lets five rows instead of four into a page. Any other event stands behind an equals sign.
 *
 * The contract allows any well-formed string, so events that hold a line break are kept as a JSON array in a blob
 * instead; the type of the value says which it is.
 *
 * @since 0.1.0
 */
import type { SQLOutputValue } from "node:sqlite"

/** Never change it: it is part of what is stored. Events that begin otherwise are only a little longer. */
const beginning = '{"v":1,"_tag":"'
const other = "="

export const pack = (events: ReadonlyArray<string>): string | Uint8Array<ArrayBuffer> =>
  events.some((event) => event.includes("\n"))
    ? new TextEncoder().encode(JSON.stringify(events))
    : events.map(shortened).join("\n")

/** Undefined if it is none. */
export const unpack = (body: SQLOutputValue | undefined): ReadonlyArray<string> | undefined => {
  if (typeof body === "string") return body.split("\n").map(whole)
  if (!(body instanceof Uint8Array)) return undefined
  try {
    const events: unknown = JSON.parse(new TextDecoder("utf-8", { ignoreBOM: true }).decode(body))
    return Array.isArray(events) && events.every((event) => typeof event === "string") ? events : undefined
  } catch {
    return undefined
  }
}

const shortened = (event: string): string =>
  event.startsWith(beginning) && !event.startsWith(other, beginning.length)
    ? event.slice(beginning.length)
    : other + event

const whole = (line: string): string => (line.startsWith(other) ? line.slice(other.length) : beginning + line)
