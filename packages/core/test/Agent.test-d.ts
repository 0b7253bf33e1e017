import {
  Agent,
  type CheckpointStore,
  MemoryStore,
  type Outcome,
  Plugin,
  Run,
  type RunError,
  ToolContext,
  ToolOptions
} from "@waystone/core"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as LanguageModel from "effect/ai/LanguageModel"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import { describe, expectTypeOf, it } from "vitest"

class Mail extends Context.Service<Mail, { readonly send: Effect.Effect<void> }>()("test/Mail") {}
class Db extends Context.Service<Db, { readonly find: (id: string) => Effect.Effect<number> }>()("test/Db") {}
class Permissions extends Context.Service<Permissions, Plugin.Plugin>()("test/Permissions") {}
class Budget extends Context.Service<Budget, Plugin.Plugin & { readonly maxTokens: number }>()("test/Budget") {}

const Send = Tool.make("send", {
  parameters: Schema.Struct({ to: Schema.String }),
  success: Schema.Number,
  dependencies: [Mail]
})
const Find = Tool.make("find", { parameters: Schema.Struct({ id: Schema.String }), success: Schema.Number })
const Ask = ToolOptions.external(Tool.make("ask", { success: Schema.String }))
const Kit = Toolkit.make(Send, Find)
// A handler asks for ToolContext without declaring it, its layer for Db, its tool for Mail.
const KitLive = Kit.toLayer(
  Effect.gen(function* () {
    const db = yield* Db
    return Kit.of({
      send: ({ to }) =>
        Effect.gen(function* () {
          const { idempotencyKey } = yield* ToolContext.ToolContext
          yield* (yield* Mail).send
          return to.length + idempotencyKey.length
        }),
      find: ({ id }) => db.find(id)
    })
  })
)

const plain = Agent.make("plain", { instructions: "", tools: [Kit, Ask] })
const strict = Agent.make("strict", { instructions: "", tools: [Kit], requires: [Permissions, Budget] })
const none = Agent.make("none", { instructions: "" })
const input = { runId: "r", task: "go" }

declare const model: Layer.Layer<LanguageModel.LanguageModel>
const world = Layer.mergeAll(model, MemoryStore.layer, KitLive).pipe(
  Layer.provideMerge(
    Layer.mergeAll(Layer.succeed(Mail, { send: Effect.void }), Layer.succeed(Db, { find: () => Effect.succeed(1) }))
  )
)
const plugin = { [Plugin.PluginId]: { name: "p" } }

type Kept = LanguageModel.LanguageModel | CheckpointStore.CheckpointStore
type Handlers = Tool.Handler<"send"> | Tool.Handler<"find">

describe("the types of an agent", () => {
  it("asks for the model, the store, the handlers and what the handlers need; not for a handler of an external tool", () => {
    const run = Run.start(plain, input)
    expectTypeOf<Effect.Services<typeof run>>().toEqualTypeOf<Kept | Handlers | Mail>()
    const bare = Run.start(none, input)
    expectTypeOf<Effect.Services<typeof bare>>().toEqualTypeOf<Kept>()
  })

  it("asks for what the agents below it ask for, all the way down, and for no handler of theirs", () => {
    const below = Agent.asTool(strict, { name: "below", description: "" })
    const middle = Agent.make("middle", { instructions: "", tools: [below] })
    const top = Agent.make("top", {
      instructions: "",
      tools: [Ask, Agent.asTool(middle, { name: "middle", description: "" })]
    })
    const run = Run.start(top, input)
    expectTypeOf<Effect.Services<typeof run>>().toEqualTypeOf<Kept | Handlers | Mail | Permissions | Budget>()
  })

  it("gives an agent's tool the output of the agent, and its task function the parameters", () => {
    const judge = Agent.make("judge", { instructions: "", output: Schema.Struct({ score: Schema.Number }) })
    const rate = Agent.asTool(judge, {
      name: "rate",
      description: "",
      parameters: Schema.Struct({ words: Schema.Array(Schema.String) }),
      task: ({ words }) => words.join(" ")
    })
    expectTypeOf<Tool.Success<typeof rate>>().toEqualTypeOf<{ readonly score: number }>()
    expectTypeOf<Tool.Parameters<typeof rate>>().toEqualTypeOf<{ readonly words: ReadonlyArray<string> }>()
    const plainly = Agent.asTool(plain, { name: "plainly", description: "" })
    expectTypeOf<Tool.Success<typeof plainly>>().toEqualTypeOf<string>()
    expectTypeOf<Tool.Parameters<typeof plainly>>().toEqualTypeOf<{ readonly task: string }>()
  })

  it("does not compile without the Layer of a plugin that it requires", () => {
    const run = Run.start(strict, input)
    expectTypeOf<Effect.Services<typeof run>>().toEqualTypeOf<Kept | Handlers | Mail | Permissions | Budget>()
    // @ts-expect-error Permissions and Budget are missing
    // @effect-diagnostics-next-line missingEffectContext:off
    void Effect.runPromise(run.pipe(Effect.provide(world)))
    const plugins = Layer.mergeAll(
      Layer.succeed(Permissions, plugin),
      Layer.succeed(Budget, { ...plugin, maxTokens: 1 })
    )
    void Effect.runPromise(run.pipe(Effect.provide(Layer.merge(world, plugins))))
  })

  it("needs no cast in user code", () => {
    void Effect.runPromise(Run.start(plain, input).pipe(Effect.provide(world)))
    const run = Run.start(plain, input)
    expectTypeOf<Effect.Success<typeof run>>().toEqualTypeOf<Outcome.Outcome<string>>()
    const reporter = Agent.make("reporter", { instructions: "", output: Schema.Struct({ at: Schema.DateFromString }) })
    const report = Run.start(reporter, input)
    expectTypeOf<Effect.Success<typeof report>>().toEqualTypeOf<Outcome.Outcome<{ readonly at: Date }>>()
    const recovered = Run.recover([plain, strict])
    expectTypeOf<Effect.Services<typeof recovered>>().toEqualTypeOf<Kept | Handlers | Mail | Permissions | Budget>()
    const worker = Run.work([plain, strict])
    expectTypeOf<Effect.Services<typeof worker>>().toEqualTypeOf<Kept | Handlers | Mail | Permissions | Budget>()
    expectTypeOf<Effect.Error<typeof worker>>().toBeNever()
  })

  it("gives each verb only the reasons that it can have", () => {
    const paused = Run.pause({ runId: "r" })
    type Reasons<E> = E extends { readonly reason: { readonly _tag: infer Tag } } ? Tag : never
    expectTypeOf<Reasons<Effect.Error<typeof paused>>>().toEqualTypeOf<
      | "StoreUnavailable"
      | "CheckpointCorrupt"
      | "StoreCorrupt"
      | "EncodeFailed"
      | "RunIsChild"
      | "RunNotFound"
      | "RunTerminal"
    >()
    const caught = Effect.catchReason(paused, "Fatal", "RunTerminal", (reason) => Effect.succeed(reason.status))
    expectTypeOf<Effect.Success<typeof caught>>().toEqualTypeOf<string | void>()
    expectTypeOf<Effect.Error<typeof paused>>().toExtend<RunError.Retryable | RunError.Fatal>()
  })
})
