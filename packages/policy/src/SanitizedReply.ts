/**
 * Takes secrets out of what a model answered, also where one is split over the deltas of a stream.
 *
 * @since 0.1.0
 */
import type { Interceptor } from "@waystone/core"
import type * as Response from "effect/ai/Response"
import type { Scrub } from "./Scrub.ts"

interface Wanted {
  /** Text, reasoning, and results of tools that the provider ran. */
  readonly replies: boolean
  /** Arguments of calls. */
  readonly arguments: boolean
}

/** The reply without secrets. Deltas of a text that changes become one: the first has all of it. */
export const sanitize = (scrub: Scrub, wanted: Wanted, reply: Interceptor.Reply): Interceptor.Reply => {
  const changed = wanted.replies ? changedTexts(scrub, reply.parts) : new Map<string, string>()
  const said = new Set<string>()
  const parts = reply.parts.map((part): Response.AnyPart => {
    switch (part.type) {
      case "text":
      case "reasoning": {
        const text = wanted.replies ? scrub.text(part.text) : part.text
        return text === part.text ? part : { ...part, text, metadata: {} }
      }
      case "text-delta":
      case "reasoning-delta": {
        const key = keyOf(part)
        const clean = changed.get(key)
        if (clean === undefined) return part
        const delta = said.has(key) ? "" : clean
        said.add(key)
        // A signature is one of the text that was there.
        return { ...part, delta, metadata: {} }
      }
      case "tool-call":
        return wanted.arguments ? { ...part, params: scrub.json(part.params) } : part
      case "tool-result":
        // Of a tool that the provider ran: the model has read it, journal and traces have not.
        return wanted.replies ? withoutSecrets(scrub, part) : part
      default:
        return part
    }
  })
  return { ...reply, parts }
}

const withoutSecrets = ({ json, text }: Scrub, part: ResultPart): ResultPart => ({
  ...part,
  result: json(part.result),
  encodedResult: json(part.encodedResult),
  modelOutput: part.modelOutput?.map((one) => (one.type === "text" ? { ...one, text: text(one.text) } : one))
})

type ResultPart = Extract<Response.AnyPart, { readonly type: "tool-result" }>
type Delta = Extract<Response.AnyPart, { readonly type: "text-delta" | "reasoning-delta" }>

const keyOf = ({ id, type }: Delta): string => `${type} ${id}`

/** The texts that have a secret, as they are without it. */
const changedTexts = ({ text }: Scrub, parts: Interceptor.Reply["parts"]): Map<string, string> => {
  const found = new Map<string, Array<string>>()
  for (const part of parts) {
    if (part.type !== "text-delta" && part.type !== "reasoning-delta") continue
    const key = keyOf(part)
    const pieces = found.get(key)
    if (pieces === undefined) found.set(key, [part.delta])
    else pieces.push(part.delta)
  }
  return new Map(
    [...found].flatMap(([key, pieces]): ReadonlyArray<[string, string]> => {
      const whole = pieces.join("")
      const clean = text(whole)
      return clean === whole ? [] : [[key, clean]]
    })
  )
}
