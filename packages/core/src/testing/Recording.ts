/**
 * Asks a real model and writes down, line by line, what was asked and what came.
 *
 * Lines are written beside the cassette and take its place when the scope is closed, if the recording is whole: the scope
 * succeeded, every request was answered and written, and the last one to its end (V2).
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import type { PlatformError } from "effect/PlatformError"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import type * as Response from "effect/ai/Response"
import { sha256 } from "../Digest.ts"
import { Fallbacks } from "../Fallback.ts"
import { ModelInfo, ModelSettings } from "../ModelInfo.ts"
import * as ModelRetry from "../ModelRetry.ts"
import * as ToolResult from "../ToolResult.ts"
import { type End, type Entry, type Request, version } from "./Cassette.ts"
import * as CleanChunks from "./CleanChunks.ts"
import * as PassedOn from "./PassedOn.ts"
import type { Recorded } from "./RecordedModel.ts"
import * as Tape from "./Tape.ts"

export interface Options {
  readonly file: string
  readonly clean: Tape.Clean
  readonly fs: FileSystem.FileSystem
  /** What the real model's layer provides. */
  readonly context: Context.Context<LanguageModel.LanguageModel>
}

const encodeError = Schema.encodeUnknownEffect(Schema.toCodecJson(AiError.AiError))

export const make = Effect.fnUntraced(function* ({
  clean,
  context,
  file,
  fs
}: Options): Effect.fn.Return<Recorded, PlatformError, Scope.Scope> {
  const real = Context.get(context, LanguageModel.LanguageModel)
  const problems = Tape.problems()
  const without = <Part extends { readonly type: string }>(part: Part): Part => CleanChunks.cleaned(part, clean)
  const tape = yield* writer({ file, fs, header: headerOf(context, clean) })
  const written = (index: number, request: Request, reply: Pick<Entry, "parts" | "chunks">, end: End) =>
    Effect.gen(function* () {
      const digest = yield* sha256(request)
      yield* tape.write(index, { digest, request, ...reply, end })
    }).pipe(Effect.catch((error) => problems.die(`RecordedModel: ${file} could not be written: ${String(error)}`)))
  const started = (options: LanguageModel.ProviderOptions, method: Request["method"]) =>
    options.responseFormat.type === "json"
      ? problems.die(Tape.noObjects)
      : Effect.map(Tape.request(options, method, clean), (request) => ({ request, index: tape.next() }))
  const model = yield* LanguageModel.make({
    generateText: (options) =>
      Effect.flatMap(started(options, "generateText"), ({ index, request }) =>
        Effect.onExit(PassedOn.whole(real, options), (exit) =>
          Effect.flatMap(endOf(exit, clean), (end) =>
            written(index, request, { parts: (Exit.isSuccess(exit) ? exit.value : []).map(without) }, end)
          )
        )
      ),
    streamText: (options) =>
      Stream.unwrap(
        Effect.map(started(options, "streamText"), ({ index, request }) => {
          const chunks: Array<ReadonlyArray<Response.StreamPartEncoded>> = []
          let whole = false
          const kept = Stream.mapArray(PassedOn.streamed(real, options), (parts) => {
            chunks.push(parts)
            return parts
          })
          return kept.pipe(
            Stream.onEnd(Effect.sync(() => (whole = true))),
            Stream.onExit((exit) =>
              Effect.flatMap(Exit.isSuccess(exit) && !whole ? interrupted : endOf(exit, clean), (end) =>
                written(index, request, { chunks: CleanChunks.make(chunks, clean) }, end)
              )
            )
          )
        })
      )
  })
  return {
    layer: Layer.mergeAll(
      // What else the real model's layer provides goes along: its ModelInfo and ModelSettings.
      Layer.succeedContext(context.pipe(Context.add(LanguageModel.LanguageModel, model), Context.add(Fallbacks, []))),
      problems.loud
    ),
    recording: true,
    remaining: Effect.succeed(0),
    problems: problems.all,
    assertConsumed: problems.assert
  }
})

const headerOf = (context: Context.Context<LanguageModel.LanguageModel>, clean: Tape.Clean): Schema.Json => {
  const given = <A>(key: Context.Reference<A>) =>
    context.mapUnsafe.has(key.key) ? clean(Tape.json(Context.get(context, key))) : undefined
  return Tape.json({ cassette: version, model: given(ModelInfo), settings: given(ModelSettings) })
}

const interrupted: Effect.Effect<End> = Effect.succeed({ _tag: "Interrupted" })

const endOf = (exit: Exit.Exit<unknown, AiError.AiError>, clean: Tape.Clean): Effect.Effect<End> =>
  Effect.gen(function* () {
    if (Exit.isSuccess(exit)) return { _tag: "Done" } as const
    const { reasons } = exit.cause
    const failed = reasons.find(Cause.isFailReason)
    if (failed !== undefined) return { _tag: "Failed", error: yield* errorOf(failed.error, clean) } as const
    const died = reasons.find(Cause.isDieReason)
    if (died === undefined) return { _tag: "Interrupted" } as const
    return { _tag: "Died", defect: String(clean(ToolResult.messageOf(died.defect))) } as const
  })

/** The error as JSON, with the status and the wait that the provider asked for, and without headers and bodies (V1). */
const errorOf = (error: AiError.AiError, clean: Tape.Clean): Effect.Effect<Schema.Json> =>
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const { retryAfterMs, status } = ModelRetry.failureOf(error, ModelRetry.table, now)
    const headers = retryAfterMs === undefined ? {} : { "retry-after-ms": String(retryAfterMs) }
    const encoded = Tape.json(yield* Effect.orDie(encodeError(error)))
    return clean(withoutHttp(encoded, status === undefined ? undefined : { response: { status, headers } }))
  })

const withoutHttp = (error: Schema.Json, http: Schema.Json | undefined): Schema.Json => {
  if (typeof error !== "object" || error === null || !("reason" in error)) return error
  const { reason } = error
  if (typeof reason !== "object" || reason === null || Array.isArray(reason)) return error
  const { http: _, ...rest } = reason as { readonly [key: string]: Schema.Json }
  return { ...error, reason: http === undefined ? rest : { ...rest, http } }
}

interface Writer {
  /** The place of the next request: the order in which they were made, whichever is answered first. */
  readonly next: () => number
  readonly write: (index: number, entry: Entry) => Effect.Effect<void, PlatformError>
}

const writer = Effect.fnUntraced(function* ({
  file,
  fs,
  header
}: Pick<Options, "file" | "fs"> & { readonly header: Schema.Json }): Effect.fn.Return<
  Writer,
  PlatformError,
  Scope.Scope
> {
  const part = `${file}.part`
  const folder = file.replace(/[\\/]?[^\\/]*$/, "")
  if (folder !== "") yield* fs.makeDirectory(folder, { recursive: true })
  yield* fs.writeFileString(part, `${JSON.stringify(header)}\n`)
  const waiting = new Map<number, Entry>()
  const lock = Semaphore.makeUnsafe(1)
  let asked = 0
  let done = 0
  let last: End["_tag"] | undefined
  /** Why what was recorded is no cassette; undefined if it is one. */
  const flaw = (exit: Exit.Exit<unknown, unknown>): string | undefined => {
    if (Exit.isFailure(exit)) return "its scope failed or was interrupted"
    if (done < asked) return "a request was not answered or not written"
    return last === "Done" ? undefined : "its last request did not succeed"
  }
  yield* Effect.addFinalizer((exit) => {
    const why = flaw(exit)
    if (why === undefined) return Effect.orDie(fs.rename(part, file))
    const dropped = Effect.orDie(fs.remove(part, { force: true }))
    return asked === 0
      ? dropped
      : Effect.andThen(dropped, Effect.logWarning(`RecordedModel: ${file} was not recorded: ${why}.`))
  })
  return {
    next: () => asked++,
    write: (index, entry) =>
      lock.withPermits(1)(
        Effect.gen(function* () {
          waiting.set(index, entry)
          for (let next = waiting.get(done); next !== undefined; next = waiting.get(done)) {
            yield* fs.writeFileString(part, `${JSON.stringify(next)}\n`, { flag: "a" })
            waiting.delete(done++)
            last = next.end._tag
          }
        })
      )
  }
})
