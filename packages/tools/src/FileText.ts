/**
 * Turns the bytes of a file into text and back, without ever changing what it was not asked to change.
 *
 * Invariants
 *   T1  What is not UTF-8 is refused, in both directions: writing back a lossy reading would destroy the file.
 *   T2  A byte order mark is kept, and is no part of the text.
 *   T3  At most `maxBytes`.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import { type Fault, refused } from "./Fault.ts"

/** Larger files are no source that is edited by hand, and every tool call holds a few copies in memory. In bytes. */
export const maxBytes = 1_000_000

const mark = "\uFEFF"

export interface FileText {
  readonly text: string
  /** It starts with a byte order mark. */
  readonly marked: boolean
}

export const tooLarge: Fault = refused("text", `larger than ${maxBytes} bytes`)

/** The text of a file. */
export const decode = (bytes: Uint8Array): Effect.Effect<FileText, Fault> =>
  Effect.suspend(() => {
    if (bytes.length > maxBytes) return Effect.fail(tooLarge)
    if (bytes.includes(0)) return Effect.fail(refused("text", "a binary file (it contains NUL bytes), or not UTF-8"))
    return Effect.try({
      try: () => {
        const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes)
        return text.startsWith(mark) ? { text: text.slice(1), marked: true } : { text, marked: false }
      },
      catch: () => refused("text", "not UTF-8 text; its encoding would be lost")
    })
  })

/** The bytes of a text. `marked`: with a byte order mark before it, unless it has one. */
export const encode = ({ marked, text }: FileText): Effect.Effect<Uint8Array, Fault> =>
  Effect.suspend(() => {
    if (text.includes("\0")) return Effect.fail(refused("text", "the text contains a NUL character"))
    const bytes = new TextEncoder().encode(marked && !text.startsWith(mark) ? mark + text : text)
    if (bytes.length > maxBytes) return Effect.fail(refused("text", `the text is larger than ${maxBytes} bytes`))
    // The encoder puts U+FFFD for half a character: the file would not hold what was asked for.
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes).endsWith(text)
      ? Effect.succeed(bytes)
      : Effect.fail(refused("text", "the text contains half a character (a lone surrogate)"))
  })
