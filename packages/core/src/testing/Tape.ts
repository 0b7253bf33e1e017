/**
 * Holds what recording and replaying share: a request as a cassette keeps it, and problems that nobody can miss.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import * as Tool from "effect/ai/Tool"
import { ModelSettings } from "../ModelInfo.ts"
import type { Request } from "./Cassette.ts"

/** Takes secrets out. */
export type Clean = (json: Schema.Json) => Schema.Json

const encodeMessage = Schema.encodeUnknownEffect(Schema.toCodecJson(Prompt.Message))

/** A cassette says nothing of the schema that such a request asks for. */
export const noObjects = "RecordedModel: generateObject is neither recorded nor replayed; a Run never uses it"

/** What JSON would keep of a value. */
export const json = (value: unknown): Schema.Json => JSON.parse(JSON.stringify(value) ?? "null")

/** The request without secrets: everything that the answer depends on, and nothing else. */
export const request = (
  { prompt, toolChoice, tools }: LanguageModel.ProviderOptions,
  method: Request["method"],
  clean: Clean
): Effect.Effect<Request> =>
  Effect.gen(function* () {
    const messages = yield* Effect.orDie(Effect.forEach(prompt.content, (message) => encodeMessage(message)))
    const settings = yield* ModelSettings
    return {
      method,
      messages: messages.map((message) => clean(json(message))),
      tools: tools.map((tool) =>
        clean(json({ name: tool.name, description: tool.description, parameters: Tool.getJsonSchema(tool) }))
      ),
      toolChoice: clean(json(toolChoice)),
      ...(Object.keys(settings).length === 0 ? undefined : { settings: clean(json(settings)) })
    }
  })

export interface Problems {
  readonly all: Effect.Effect<ReadonlyArray<string>>
  /** Remembers it, and dies with it. */
  readonly die: (what: string) => Effect.Effect<never>
  /** Dies with all of them, if there are any. */
  readonly assert: Effect.Effect<void>
  /** Dies with all of them when it is closed. */
  readonly loud: Layer.Layer<never>
}

export const problems = (): Problems => {
  const found: Array<string> = []
  const assert = Effect.suspend(() => (found.length === 0 ? Effect.void : Effect.die(new Error(found.join("\n")))))
  return {
    all: Effect.sync(() => [...found]),
    die: (what) =>
      Effect.suspend(() => {
        found.push(what)
        return Effect.die(new Error(what))
      }),
    assert,
    loud: Layer.effectDiscard(Effect.addFinalizer(() => assert))
  }
}
