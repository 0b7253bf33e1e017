/**
 * Gives tools to a model that has none: it is told of them in its instructions, and its calls are read out of its text.
 *
 * Invariants
 *   T1  A call that cannot be read is never run: the model hears the error, twice in a Turn, and then the Run fails.
 *   T2  Text of a stream passes as it comes; nothing of a call is ever shown as text.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Response from "effect/ai/Response"
import { joined } from "./Blocks.ts"
import { own, toObject } from "./Json.ts"
import { Reading, type Said } from "./Reading.ts"
import * as Told from "./Told.ts"

/** A model with tools that asks `model`, which needs none. Its `generateObject` fails with InvalidRequestError: a Run never uses it. */
export const make = (model: LanguageModel.LanguageModel): Effect.Effect<LanguageModel.LanguageModel> =>
  LanguageModel.make({
    generateText: (options) => whole(model, options),
    streamText: (options) => streamed(model, options)
  })

/**
 * The model of that Layer, with tools. All else that the Layer provides, its ModelInfo say, stays.
 *
 * @example
 * TextProtocol.layer(AiSdk.layer(ollama("gemma3")))
 */
export const layer = <E, R>(
  model: Layer.Layer<LanguageModel.LanguageModel, E, R>
): Layer.Layer<LanguageModel.LanguageModel, E, R> =>
  Layer.effectContext(
    Effect.gen(function* () {
      const context = yield* Layer.build(model)
      return Context.add(
        context,
        LanguageModel.LanguageModel,
        yield* make(Context.get(context, LanguageModel.LanguageModel))
      )
    })
  )

const encodePart = Schema.encodeUnknownEffect(Response.Part())
const encodeStreamPart = Schema.encodeUnknownEffect(Response.StreamPart())

const unencodable = (method: string, { issue }: Schema.SchemaError): AiError.AiError =>
  AiError.make({
    module: "TextProtocol",
    method,
    reason: new AiError.InvalidOutputError({ description: String(issue) })
  })

const noObjects = Effect.failSync(() =>
  AiError.make({
    module: "TextProtocol",
    method: "generateObject",
    reason: new AiError.InvalidRequestError({ description: "a text protocol has no generateObject" })
  })
)

const whole = (
  model: LanguageModel.LanguageModel,
  options: LanguageModel.ProviderOptions
): Effect.Effect<Array<Response.PartEncoded>, AiError.AiError> =>
  Effect.gen(function* () {
    if (options.responseFormat.type === "json") return yield* noObjects
    const { content } = yield* model.generateText({ prompt: Told.prompt(options) })
    const parts = yield* Effect.mapError(
      Effect.forEach(content, (part) => encodePart(part)),
      (error) => unencodable("generateText", error)
    )
    if (options.tools.length === 0) return parts
    const reading = new Reading(namesOf(options))
    const nextId = ids(options)
    return parts.flatMap((part): ReadonlyArray<Response.PartEncoded> => {
      if (part.type === "finish") return [finished(part, reading)]
      if (part.type !== "text") return [part]
      const text = reading.text()
      let { metadata } = part // with the first piece: a signature is worth nothing twice
      return joined([...text.push(part.text), ...text.end()]).flatMap((said): ReadonlyArray<Response.PartEncoded> => {
        if (said._tag === "Call") return [callPart(said, nextId())]
        if (said.text.trim() === "") return []
        const piece = { type: "text", text: said.text, ...withMetadata(metadata) } as const
        metadata = undefined
        return [piece]
      })
    })
  })

const streamed = (
  model: LanguageModel.LanguageModel,
  options: LanguageModel.ProviderOptions
): Stream.Stream<Response.StreamPartEncoded, AiError.AiError> =>
  Stream.suspend(() => {
    const parts = Stream.mapArrayEffect(model.streamText({ prompt: Told.prompt(options) }), (parts) =>
      Effect.mapError(
        Effect.forEach(parts, (part) => encodeStreamPart(part)),
        (error) => unencodable("streamText", error)
      )
    )
    if (options.tools.length === 0) return parts
    const reading = new Reading(namesOf(options))
    const nextId = ids(options)
    const texts = new Map<string, Text>()
    return Stream.flattenIterable(
      Stream.map(parts, (part): ReadonlyArray<Response.StreamPartEncoded> => {
        switch (part.type) {
          case "text-start":
            texts.set(part.id, new Text(part, reading, nextId))
            return []
          case "text-delta":
            return texts.get(part.id)?.push(part) ?? [part]
          case "text-end":
            return texts.get(part.id)?.end(part) ?? [part]
          case "finish":
            return [finished(part, reading)]
          default:
            return [part]
        }
      })
    )
  })

type Metadata = Response.TextDeltaPartEncoded["metadata"]

const withMetadata = (metadata: Metadata): { readonly metadata?: NonNullable<Metadata> } =>
  metadata === undefined || Object.keys(metadata).length === 0 ? {} : { metadata }

/** One text of a stream, which is several where calls stand in it. What the provider hangs on it goes with the next piece. */
class Text {
  private readonly id: string
  private metadata: Metadata
  private readonly reader: ReturnType<Reading["text"]>
  private readonly nextId: () => string
  private opened = 0
  private isOpen = false
  /** White space that is said only if something follows. */
  private space = ""

  constructor({ id, metadata }: Response.TextStartPartEncoded, reading: Reading, nextId: () => string) {
    this.id = id
    this.metadata = metadata
    this.reader = reading.text()
    this.nextId = nextId
  }

  push({ delta, metadata }: Response.TextDeltaPartEncoded): ReadonlyArray<Response.StreamPartEncoded> {
    this.keep(metadata)
    return this.reader.push(delta).flatMap((said) => this.say(said))
  }

  end({ metadata }: Response.TextEndPartEncoded): ReadonlyArray<Response.StreamPartEncoded> {
    this.keep(metadata)
    return [...this.reader.end().flatMap((said) => this.say(said)), ...this.close()]
  }

  private keep(metadata: Metadata): void {
    if (metadata !== undefined) this.metadata = { ...this.metadata, ...metadata }
  }

  private kept(): ReturnType<typeof withMetadata> {
    const { metadata } = this
    this.metadata = undefined
    return withMetadata(metadata)
  }

  private say(said: Said): ReadonlyArray<Response.StreamPartEncoded> {
    if (said._tag === "Call") {
      this.space = ""
      return [...this.close(), callPart(said, this.nextId())]
    }
    if (!this.isOpen && said.text.trim() === "") {
      this.space += said.text
      return []
    }
    const text = this.space + said.text
    this.space = ""
    const opening = this.isOpen ? [] : [{ type: "text-start", id: this.nextText() } as const]
    this.isOpen = true
    return [...opening, { type: "text-delta", id: this.current(), delta: text, ...this.kept() }]
  }

  private close(): ReadonlyArray<Response.StreamPartEncoded> {
    if (!this.isOpen) return []
    this.isOpen = false
    return [{ type: "text-end", id: this.current(), ...this.kept() }]
  }

  private nextText(): string {
    this.opened++
    return this.current()
  }

  private current(): string {
    return this.opened === 1 ? this.id : `${this.id}.${this.opened}`
  }
}

const namesOf = ({ tools }: LanguageModel.ProviderOptions): ReadonlySet<string> =>
  new Set(tools.map(({ name }) => name))

/** Ids that are new in this conversation, and the same whenever it is had again. */
const ids = ({ prompt }: LanguageModel.ProviderOptions): (() => string) => {
  let taken = prompt.content.reduce(
    (sum, { content, role }) =>
      role === "assistant" ? sum + content.filter((part) => part.type === "tool-call").length : sum,
    0
  )
  return () => `text_${++taken}`
}

const callPart = ({ name, params }: Extract<Said, { readonly _tag: "Call" }>, id: string) =>
  ({ type: "tool-call", id, name, params, providerExecuted: false }) as const

const finished = (part: Response.FinishPartEncoded, reading: Reading): Response.FinishPartEncoded => {
  const protocol = reading.feedback(Told.example)
  const reason = part.reason === "stop" && reading.calls > 0 ? "tool-calls" : part.reason
  return protocol === undefined
    ? { ...part, reason }
    : { ...part, reason, metadata: { ...part.metadata, [own]: { ...toObject(part.metadata?.[own]), protocol } } }
}
