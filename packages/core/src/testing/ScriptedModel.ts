/**
 * Answers from a script in place of a model, and records every request.
 *
 * A request that the script has no entry for, and a request that no provider would take, is a defect that names the
 * request. A Run turns defects of its model into failures, so the layer keeps every such problem and dies with it when
 * it is closed: no test passes by accident.
 *
 * @example
 * const model = yield* ScriptedModel.make([call("look", { path: "a" }), text("done")])
 * yield* Run.start(agent, { runId, task }).pipe(Effect.provide(model.layer))
 * yield* model.assertConsumed
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as LanguageModel from "effect/ai/LanguageModel"
import type * as Prompt from "effect/ai/Prompt"
import { sha256 } from "../Digest.ts"
import * as PairingChecker from "./PairingChecker.ts"
import * as Playback from "./Playback.ts"
import type { Entry, Request, Script } from "./Script.ts"

export * from "./Script.ts"

export interface Options {
  /** Checks every request with PairingChecker. Default true. */
  readonly pairing?: boolean
}

/** What a scripted model has seen, and what is left of its script. */
export interface Record {
  /** Every request so far, in order. */
  readonly requests: Effect.Effect<ReadonlyArray<Request>>
  /** Entries that no request has taken yet; 0 for a script that is a function. */
  readonly remaining: Effect.Effect<number>
  /** Unexpected requests, and requests that no provider would take. */
  readonly problems: Effect.Effect<ReadonlyArray<string>>
  /** Dies with what is wrong: problems, or entries that are left. */
  readonly assertConsumed: Effect.Effect<void>
}

/** The record of the scripted model in the context. */
export class Requests extends Context.Service<Requests, Record>()("@waystone/core/testing/ScriptedModel/Requests") {}

export interface Scripted extends Record {
  /** Provides the model. All processes of a test can share it; it goes on where it stands. */
  readonly layer: Layer.Layer<LanguageModel.LanguageModel | Requests>
}

/** A model with a script of its own. */
export const make = (script: Script, { pairing = true }: Options = {}): Effect.Effect<Scripted> =>
  Effect.gen(function* () {
    const requests: Array<Request> = []
    const problems: Array<string> = []
    const problem = (what: string) =>
      Effect.suspend(() => {
        problems.push(what)
        return Effect.die(new Error(what))
      })
    let taken = 0
    let ids = 0
    const nextId = () => `c${++ids}`
    const take = (options: LanguageModel.ProviderOptions, method: Request["method"]) =>
      Effect.suspend((): Effect.Effect<readonly [Entry, Request]> => {
        const request = requestOf(options, method, requests.length + 1)
        requests.push(request)
        const wrong = pairing ? PairingChecker.violations(request.messages) : []
        if (wrong.length > 0) return problem(`${named(request)} is not one that providers take: ${wrong.join("; ")}`)
        const entry = typeof script === "function" ? script : script[taken++]
        return entry === undefined
          ? problem(`${named(request)} is unexpected: the script has ${taken - 1} entries`)
          : Effect.succeed([entry, request])
      })
    const model = yield* LanguageModel.make({
      generateText: (options) =>
        Effect.flatMap(take(options, "generateText"), ([entry, request]) => Playback.whole(entry, request, nextId)),
      streamText: (options) =>
        Stream.unwrap(
          Effect.map(take(options, "streamText"), ([entry, request]) => Playback.streamed(entry, request, nextId))
        )
    })
    const left = () => (typeof script === "function" ? 0 : Math.max(0, script.length - taken))
    const record: Record = {
      requests: Effect.sync(() => [...requests]),
      remaining: Effect.sync(left),
      problems: Effect.sync(() => [...problems]),
      assertConsumed: Effect.suspend(() => {
        if (problems.length > 0) return Effect.die(new Error(problems.join("\n")))
        return left() === 0
          ? Effect.void
          : Effect.die(new Error(`ScriptedModel: ${left()} of ${script.length} entries were never asked for`))
      })
    }
    const loud = Layer.effectDiscard(
      Effect.addFinalizer(() =>
        Effect.suspend(() => (problems.length === 0 ? Effect.void : Effect.die(new Error(problems.join("\n")))))
      )
    )
    const layer = Layer.mergeAll(
      Layer.succeed(LanguageModel.LanguageModel, model),
      Layer.succeed(Requests, record),
      loud
    )
    return { ...record, layer }
  })

/** A model with a script of its own; `Requests` has its record. */
export const layer = (script: Script, options?: Options): Layer.Layer<LanguageModel.LanguageModel | Requests> =>
  Layer.unwrap(Effect.map(make(script, options), (scripted) => scripted.layer))

const requestOf = (
  { prompt, toolChoice, tools }: LanguageModel.ProviderOptions,
  method: Request["method"],
  number: number
): Request => {
  const messages = prompt.content
  const names = tools.map((tool) => tool.name)
  return {
    number,
    method,
    messages,
    tools: names,
    toolChoice,
    results: resultsOf(messages.at(-1)),
    digest: Effect.suspend(() => sha256([messages, names, toolChoice]))
  }
}

const resultsOf = (last: Prompt.Message | undefined): ReadonlyArray<Prompt.ToolResultPart> =>
  last?.role === "tool" ? last.content.filter((part) => part.type === "tool-result") : []

/** How a problem names its request. */
const named = ({ messages, method, number }: Request): string => {
  const last = messages.at(-1)
  const content = JSON.stringify(last?.content) ?? "nothing"
  const shown = content.length > 300 ? `${content.slice(0, 300)}…` : content
  return `ScriptedModel: request ${number} (${method}, ${messages.length} messages, the last is ${last?.role}: ${shown})`
}
