/**
 * Takes secrets out of the chunks of a stream, those that came in pieces too, and leaves the chunks where they were.
 *
 * @since 0.1.0
 */
import type * as Response from "effect/ai/Response"
import * as Tape from "./Tape.ts"

type Part = Response.StreamPartEncoded
type Delta = Extract<Part, { readonly delta: string }>

/** Without secrets. A text of which something was taken stands whole in its first piece; the others are empty. */
export const make = (chunks: ReadonlyArray<ReadonlyArray<Part>>, clean: Tape.Clean): Array<Array<Part>> => {
  const pieces = new Map<string, Array<Delta>>()
  for (const part of chunks.flat()) {
    if (!isDelta(part)) continue
    const known = pieces.get(key(part))
    if (known === undefined) pieces.set(key(part), [part])
    else known.push(part)
  }
  const replaced = new Map<Part, string>()
  for (const deltas of pieces.values()) {
    const text = deltas.map(({ delta }) => delta).join("")
    const kept = String(clean(text))
    if (kept !== text) for (const [index, part] of deltas.entries()) replaced.set(part, index === 0 ? kept : "")
  }
  return chunks.map((parts) =>
    parts.map((part) => {
      const delta = replaced.get(part)
      return cleaned(delta === undefined ? part : { ...part, delta }, clean)
    })
  )
}

/** What adapters add about HTTP and the provider's clock, all of it optional. */
const left = new Set(["response", "timestamp"])

/** Without secrets, headers and times. What is cleaned keeps its shape: texts change and optional fields go. */
export const cleaned = <Part extends { readonly type: string }>(part: Part, clean: Tape.Clean): Part => {
  const about = part.type === "finish" || part.type === "response-metadata"
  const kept = about ? Object.fromEntries(Object.entries(part).filter(([field]) => !left.has(field))) : part
  return clean(Tape.json(kept)) as unknown as Part
}

const isDelta = (part: Part): part is Delta => "delta" in part

const key = ({ id, type }: Delta): string => `${type} ${id}`
