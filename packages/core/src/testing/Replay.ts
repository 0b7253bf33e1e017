/**
 * Answers from a cassette, strictly in order.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import { ModelInfo, ModelSettings } from "../ModelInfo.ts"
import { type Cassette, CassetteDamaged, type End, type Entry, type Request } from "./Cassette.ts"
import * as Text from "../Text.ts"
import * as Difference from "./Difference.ts"
import type { Recorded } from "./RecordedModel.ts"
import * as Tape from "./Tape.ts"

export interface Options {
  readonly file: string
  readonly cassette: Cassette
  readonly clean: Tape.Clean
}

const decodeError = Schema.decodeUnknownEffect(Schema.toCodecJson(AiError.AiError))

/** Fails if the file has an error in it that is none. */
export const make = Effect.fnUntraced(function* ({
  cassette,
  clean,
  file
}: Options): Effect.fn.Return<Recorded, CassetteDamaged> {
  const { entries, header } = cassette
  for (const [index, { end }] of entries.entries()) {
    if (end._tag !== "Failed") continue
    yield* Effect.mapError(
      decodeError(end.error),
      ({ issue }) => new CassetteDamaged({ file, line: index + 2, path: "$.end.error", detail: String(issue) })
    )
  }
  const problems = Tape.problems()
  let taken = 0
  const take = Effect.fnUntraced(function* (options: LanguageModel.ProviderOptions, method: Request["method"]) {
    if (options.responseFormat.type === "json") return yield* problems.die(Tape.noObjects)
    const index = taken++
    const entry = entries[index]
    const asked = yield* Tape.request(options, method, clean)
    if (entry === undefined) return yield* problems.die(unexpected(file, index, asked))
    const difference = Difference.first(Tape.json(entry.request), Tape.json(asked))
    return difference === undefined ? entry : yield* problems.die(mismatch(file, index, difference))
  })
  const model = yield* LanguageModel.make({
    generateText: (options) =>
      Effect.flatMap(take(options, "generateText"), ({ end, parts = [] }) => Effect.as(ended(end), [...parts])),
    streamText: (options) => Stream.unwrap(Effect.map(take(options, "streamText"), played))
  })
  const left = () => Math.max(0, entries.length - taken)
  const layer = Layer.mergeAll(
    Layer.succeed(LanguageModel.LanguageModel, model),
    header.model === undefined ? Layer.empty : Layer.succeed(ModelInfo, header.model),
    header.settings === undefined ? Layer.empty : Layer.succeed(ModelSettings, header.settings),
    problems.loud
  )
  return {
    layer,
    recording: false,
    remaining: Effect.sync(left),
    problems: problems.all,
    assertConsumed: Effect.andThen(
      problems.assert,
      Effect.suspend(() =>
        left() === 0
          ? Effect.void
          : Effect.die(
              new Error(`RecordedModel: ${left()} of the ${entries.length} requests of ${file} were never made`)
            )
      )
    )
  }
})

const played = ({ chunks = [], end }: Entry) =>
  Stream.concat(
    Stream.fromArrays(...chunks.filter((chunk) => chunk.length > 0)),
    Stream.unwrap(Effect.as(ended(end), Stream.empty))
  )

/** What was given up then is given up again: by the same limit, which takes as long. */
const ended = (end: End): Effect.Effect<void, AiError.AiError> => {
  switch (end._tag) {
    case "Done":
      return Effect.void
    case "Interrupted":
      return Effect.never
    case "Died":
      return Effect.die(new Error(end.defect))
    case "Failed":
      return Effect.flatMap(Effect.orDie(decodeError(end.error)), (error) => Effect.fail(error))
  }
}

const mismatch = (file: string, index: number, { actual, expected, path }: Difference.Difference): string =>
  [
    `RecordedModel: request ${index + 1} is not the one in line ${index + 2} of ${file}; first different at ${path}`,
    `  recorded: ${expected}`,
    `  now:      ${actual}`,
    `If that is meant, record again (mode "record", or delete the file).`
  ].join("\n")

const unexpected = (file: string, index: number, { messages, method }: Request): string => {
  const last = JSON.stringify(messages.at(-1)) ?? "nothing"
  const shown = last.length > 300 ? `${Text.head(last, 300)}…` : last
  return `RecordedModel: request ${index + 1} (${method}) is unexpected: ${file} has ${index} of them. Its last message: ${shown}`
}
