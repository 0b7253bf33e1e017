/**
 * Plays one entry of a script as a whole reply or as a stream.
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as AiError from "effect/ai/AiError"
import type * as Response from "effect/ai/Response"
import type { After, Chunk, Ending, Entry, Part, Reply, Request, Streamed, Wait } from "./Script.ts"

/** What is left of an entry when its functions have run and its delays are over. */
type Played = Exclude<Entry, After | ((request: Request) => Entry)>

/** Runs functions and waits out delays. */
const played = (entry: Entry, request: Request): Effect.Effect<Played> => {
  if (typeof entry === "function") return Effect.suspend(() => played(entry(request), request))
  if (entry._tag !== "After") return Effect.succeed(entry)
  return Effect.andThen(Effect.sleep(entry.duration), played(entry.entry, request))
}

/** The ids of calls that the script left open. */
export type NextId = () => string

/** The whole reply. */
export const whole = (
  entry: Entry,
  request: Request,
  nextId: NextId
): Effect.Effect<Array<Response.PartEncoded>, AiError.AiError> =>
  Effect.flatMap(played(entry, request), (one): Effect.Effect<Array<Response.PartEncoded>, AiError.AiError> => {
    switch (one._tag) {
      case "Reply":
        return Effect.sync(() => finished(numbered(one.parts, nextId), one))
      case "Streamed":
        return joined(one, nextId)
      default:
        return without(one)
    }
  })

/** The reply as a stream. */
export const streamed = (
  entry: Entry,
  request: Request,
  nextId: NextId
): Stream.Stream<Response.StreamPartEncoded, AiError.AiError> =>
  Stream.unwrap(
    Effect.map(played(entry, request), (one): Stream.Stream<Response.StreamPartEncoded, AiError.AiError> => {
      switch (one._tag) {
        case "Reply":
          return Stream.fromIterable(toStream(finished(numbered(one.parts, nextId), one)))
        case "Streamed":
          return Stream.fromIterable(scheduled(one, nextId)).pipe(
            Stream.mapEffect((chunk) =>
              "_tag" in chunk ? Effect.as(Effect.sleep(chunk.duration), []) : Effect.succeed([chunk])
            ),
            Stream.flattenIterable
          )
        default:
          return Stream.fromEffect(without(one))
      }
    })
  )

const without = (entry: Exclude<Played, Reply | Streamed | (() => Entry)>): Effect.Effect<never, AiError.AiError> => {
  switch (entry._tag) {
    case "Fail":
      return Effect.fail(entry.error)
    case "Die":
      return Effect.die(entry.defect)
    default:
      return Effect.never
  }
}

const numbered = (parts: ReadonlyArray<Part>, nextId: NextId): Array<Response.PartEncoded> =>
  parts.map((part) => (part.type === "tool-call" ? { ...part, id: part.id ?? nextId() } : part))

/** With a finish part, unless the script wrote one. */
const finished = (parts: Array<Response.PartEncoded>, ending: Ending): Array<Response.PartEncoded> =>
  parts.some((part) => part.type === "finish") ? parts : [...parts, finish(parts, ending)]

const finish = (parts: ReadonlyArray<{ readonly type: string }>, ending: Ending): Response.FinishPartEncoded => ({
  type: "finish",
  reason: ending.finish ?? (parts.some(isOwnCall) ? "tool-calls" : "stop"),
  usage: usage(ending.usage)
})

const isOwnCall = (part: { readonly type: string; readonly providerExecuted?: boolean | undefined }): boolean =>
  part.type === "tool-call" && part.providerExecuted !== true

const usage = (given: Ending["usage"]): Response.FinishPartEncoded["usage"] => {
  if (given === "unknown") return { inputTokens: {}, outputTokens: {} }
  const { cacheRead = 0, cacheWrite = 0, input = 10, output = 5, reasoning = 0 } = given ?? {}
  return {
    inputTokens: { uncached: input, total: input + cacheRead + cacheWrite, cacheRead, cacheWrite },
    outputTokens: { text: output, reasoning, total: output + reasoning }
  }
}

/** Response.PartEncoded texts as start, delta and end; everything else is the same in a stream. */
const toStream = (parts: ReadonlyArray<Response.PartEncoded>): Array<Response.StreamPartEncoded> =>
  parts.flatMap((part, index): Array<Response.StreamPartEncoded> => {
    switch (part.type) {
      case "text":
      case "reasoning": {
        const id = `${part.type}-${index}`
        const metadata = part.metadata === undefined ? undefined : { metadata: part.metadata }
        return [
          { type: `${part.type}-start`, id },
          { type: `${part.type}-delta`, id, delta: part.text },
          { type: `${part.type}-end`, id, ...metadata }
        ]
      }
      case "tool-call": {
        const { id, name } = part
        return [
          { type: "tool-params-start", id, name },
          { type: "tool-params-delta", id, delta: JSON.stringify(part.params) ?? "" },
          { type: "tool-params-end", id },
          part
        ]
      }
      default:
        return [part]
    }
  })

/** The chunks of a stream with the starts and ends that the script left out, and the finish part unless it is cut. */
const scheduled = (entry: Streamed, nextId: NextId): Array<Response.StreamPartEncoded | Wait> => {
  const out: Array<Response.StreamPartEncoded | Wait> = []
  let open: { readonly kind: "text" | "reasoning"; readonly id: string } | undefined
  const close = () => {
    if (open !== undefined) out.push({ type: `${open.kind}-end`, id: open.id })
    open = undefined
  }
  for (const chunk of entry.chunks) {
    if ("_tag" in chunk) {
      out.push(chunk)
      continue
    }
    const kind = chunk.type === "text-delta" ? "text" : chunk.type === "reasoning-delta" ? "reasoning" : undefined
    if (kind === undefined || !("delta" in chunk)) {
      if (chunk.type === `${open?.kind}-end`) open = undefined
      else if (chunk.type !== "error") close()
      if (chunk.type === "text-start") open = { kind: "text", id: chunk.id }
      if (chunk.type === "reasoning-start") open = { kind: "reasoning", id: chunk.id }
      out.push(...piece(chunk, nextId, out.length))
      continue
    }
    if (open?.kind !== kind || open.id !== chunk.id) {
      close()
      open = { kind, id: chunk.id }
      out.push({ type: `${kind}-start`, id: chunk.id })
    }
    out.push(chunk)
  }
  if (entry.cut || entry.chunks.some((chunk) => "type" in chunk && chunk.type === "error")) return out
  close()
  const parts = out.filter((part) => "type" in part)
  return parts.some((part) => part.type === "finish") ? out : [...out, finish(parts, entry)]
}

const piece = (
  chunk: Exclude<Chunk, Wait>,
  nextId: NextId,
  position: number
): ReadonlyArray<Response.StreamPartEncoded> => {
  if (chunk.type === "tool-call") return [{ ...chunk, id: chunk.id ?? nextId() }]
  if (chunk.type !== "text" && chunk.type !== "reasoning") return [chunk]
  return toStream([chunk]).map((part) => ("id" in part ? { ...part, id: `${part.id}-${position}` } : part))
}

/** A stream as a whole reply: the waits add up, an error part or a cut connection fails it. */
const joined = (entry: Streamed, nextId: NextId): Effect.Effect<Array<Response.PartEncoded>, AiError.AiError> =>
  Effect.suspend(() => {
    const chunks = scheduled(entry, nextId)
    const waits = chunks.reduce(
      (sum, chunk) => ("_tag" in chunk ? Duration.sum(sum, Duration.fromInputUnsafe(chunk.duration)) : sum),
      Duration.zero
    )
    const error = chunks.find((chunk) => "type" in chunk && chunk.type === "error")
    const answer = error === undefined && !entry.cut ? Effect.succeed(toWhole(chunks)) : Effect.fail(broken(error))
    return Effect.andThen(Effect.sleep(waits), answer)
  })

const toWhole = (chunks: ReadonlyArray<Response.StreamPartEncoded | Wait>): Array<Response.PartEncoded> => {
  const out: Array<Response.PartEncoded> = []
  let buffer = ""
  for (const chunk of chunks) {
    if ("_tag" in chunk) continue
    switch (chunk.type) {
      case "text-start":
      case "reasoning-start":
        buffer = ""
        break
      case "text-delta":
      case "reasoning-delta":
        buffer += chunk.delta
        break
      case "text-end":
        out.push({ type: "text", text: buffer, ...(chunk.metadata && { metadata: chunk.metadata }) })
        break
      case "reasoning-end":
        out.push({ type: "reasoning", text: buffer, ...(chunk.metadata && { metadata: chunk.metadata }) })
        break
      case "tool-params-start":
      case "tool-params-delta":
      case "tool-params-end":
      case "error":
        break
      default:
        out.push(chunk)
    }
  }
  return out
}

const broken = (part: unknown): AiError.AiError => {
  const reason =
    part === undefined
      ? new AiError.NetworkError({
          reason: "TransportError",
          method: "POST",
          url: "scripted:",
          description: "the connection was cut"
        })
      : new AiError.UnknownError({ description: JSON.stringify(part) })
  return AiError.make({ module: "ScriptedModel", method: "request", reason })
}
