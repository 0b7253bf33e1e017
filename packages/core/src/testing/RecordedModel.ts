/**
 * Records what a real model answers, once, and answers from the record for ever after.
 *
 * A request must be the one that was recorded in its place: what is first different is a defect that names both. A Run
 * turns defects of its model into failures, so the layer keeps every such problem and dies with it when it is closed.
 *
 * Invariants
 *   V1  Nothing is written that is named or looks like a secret (SecretName, SecretShapes), and no header of a request
 *       or response but the wait that a failure asked for. What nothing names and no shape tells is not known as one: `redact` is for that.
 *   V2  A cassette is replaced only by a whole new one, and only where that was asked for; a damaged one never. Whole:
 *       the scope succeeded, every request was answered, the last one to its end.
 *   V3  While replaying, the real model is not even built, so no key is needed.
 *
 * @example
 * const model = yield* RecordedModel.make({ file: "test/cassettes/oslo.jsonl", model: AiSdk.layer(anthropic("…")) })
 * yield* Run.start(agent, { runId, task }).pipe(Effect.provide(model.layer))
 * yield* model.assertConsumed
 *
 * @since 0.1.0
 */
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type { PlatformError } from "effect/PlatformError"
import type * as Scope from "effect/Scope"
import type * as LanguageModel from "effect/ai/LanguageModel"
import * as Cassette from "./Cassette.ts"
import * as Recording from "./Recording.ts"
import * as Redaction from "./Redaction.ts"
import * as Replay from "./Replay.ts"

export { CassetteDamaged, CassetteMissing } from "./Cassette.ts"
export type { Redact } from "./Redaction.ts"

/**
 * `replay`: the file must be there. `record`: asks the model, and replaces the file when the scope is closed, unless
 * nothing was asked, the last request failed or was given up, or the scope failed; a warning says so. `auto`: replays if the file is there, else records; where `CI` is set it never records.
 */
export type Mode = "record" | "replay" | "auto"

export interface Options<E = never, R = never> {
  /** Where the cassette is. Its folder is made if it must be. */
  readonly file: string
  /** Default `auto`. */
  readonly mode?: Mode
  /** The real model. Its ModelInfo and ModelSettings are recorded too. One only: `Fallback.layer` goes around recorded models. */
  readonly model: Layer.Layer<LanguageModel.LanguageModel, E, R>
  /**
   * Applied to every text of requests, replies and errors before they are written or compared, besides the known shapes
   * of keys and tokens: for secrets of your own, and for what differs from run to run. Must give the same for its own
   * result.
   */
  readonly redact?: Redaction.Redact
}

export interface Recorded {
  /** Provides the model. All processes of a test can share it; it goes on where it stands. */
  readonly layer: Layer.Layer<LanguageModel.LanguageModel>
  /** True if this cassette is being made. */
  readonly recording: boolean
  /** Recorded requests that were not made yet; 0 while recording. */
  readonly remaining: Effect.Effect<number>
  /** Requests that were not the recorded ones, and replies that could not be written. */
  readonly problems: Effect.Effect<ReadonlyArray<string>>
  /** Dies with what is wrong: problems, or recorded requests that were never made. */
  readonly assertConsumed: Effect.Effect<void>
}

/** Fails if there is nothing to replay, or if the file is damaged. */
export const make = Effect.fnUntraced(function* <E, R>({
  file,
  mode = "auto",
  model,
  redact
}: Options<E, R>): Effect.fn.Return<
  Recorded,
  Cassette.CassetteMissing | Cassette.CassetteDamaged | PlatformError | E,
  FileSystem.FileSystem | Scope.Scope | R
> {
  const fs = yield* FileSystem.FileSystem
  const clean = Redaction.make(redact)
  const exists = yield* fs.exists(file)
  const cassette = exists
    ? yield* Effect.flatMap(fs.readFileString(file), (text) => Cassette.parse(file, text))
    : undefined
  if (mode !== "record" && cassette !== undefined) return yield* Replay.make({ file, cassette, clean })
  if (mode === "replay" || (mode === "auto" && (yield* inCi))) return yield* new Cassette.CassetteMissing({ file })
  return yield* Recording.make({ file, clean, fs, context: yield* Layer.build(model) })
})

/** The model of a cassette; what is wrong with its requests is a defect when the layer is closed. */
export const layer = <E = never, R = never>(
  options: Options<E, R>
): Layer.Layer<
  LanguageModel.LanguageModel,
  Cassette.CassetteMissing | Cassette.CassetteDamaged | PlatformError | E,
  FileSystem.FileSystem | R
> => Layer.unwrap(Effect.map(make(options), (recorded) => recorded.layer))

/** As most CI systems say it: set, and neither empty nor false. */
const inCi: Effect.Effect<boolean> = Effect.map(
  Effect.option(Config.String("CI")),
  Option.exists((value) => !["", "0", "false"].includes(value.toLowerCase()))
)
