/** The code of README.md, compiled: Readme.test.ts compares both and runs it. */
import { NodeFileSystem, NodeRuntime } from "@effect/platform-node"
import { expect, it } from "@effect/vitest"
import { Agent, Guard, type Interceptor, MemoryStore, Plugin, ProcessOwner, Run } from "@waystone/core"
import { ScriptedModel } from "@waystone/core/testing"
import { Context, Effect, Layer, Schema } from "effect"
import { Tool, Toolkit } from "effect/ai"

const Model = ScriptedModel.layer([ScriptedModel.call("weather", { city: "Oslo" }), ScriptedModel.text("4 degrees")])

const Weather = Tool.make("weather", {
  description: "The weather in a city",
  parameters: Schema.Struct({ city: Schema.String }),
  success: Schema.Struct({ celsius: Schema.Number })
}).annotate(Tool.Readonly, true)
const Tools = Toolkit.make(Weather)

const agent = Agent.make("forecaster", { instructions: "Answer questions about the weather.", tools: [Tools] })

const program = Run.start(agent, { runId: "question-1", task: "How warm is it in Oslo?" })

const Live = Layer.mergeAll(
  MemoryStore.layer, // or a durable store
  Tools.toLayer({ weather: ({ city }) => Effect.succeed({ celsius: city === "Oslo" ? 4 : 20 }) }),
  Model // any LanguageModel of effect/ai
)
// Outcome: Completed { output } | Stopped { reason } | Suspended { waiting } | Cancelled
export const first = async () => {
  const outcome = await Effect.runPromise(program.pipe(Effect.provide(Live)))
  return outcome
}

export const approveAll = Effect.gen(function* () {
  const { waiting } = yield* Run.get("question-1") // [{ id, kind, name, arguments, digest, since, reason }]
  for (const wait of waiting) {
    if (wait.kind !== "approval") continue
    yield* Run.answer(agent, {
      runId: "question-1",
      callId: wait.id, // "t1.0": turn 1, first call
      answer: { _tag: "Approve", digest: wait.digest }, // or Deny { digest, reason }; Approve may carry edited arguments
      by: "ann"
    })
  }
  return yield* Run.resume(agent, { runId: "question-1" }) // or leave it to a worker
})

const forecast = Agent.asTool(agent, {
  name: "forecast",
  description: "Knows the weather. Tell it what you want to know, and where.",
  parameters: Schema.Struct({ question: Schema.String }), // default { task: string }
  task: ({ question }) => question // what its Run begins with
})
export const planner = Agent.make("planner", { instructions: "Plan trips.", tools: [forecast], concurrency: 4 })

const Owner = Layer.provide(ProcessOwner.layer, NodeFileSystem.layer) // names this process; see below
const worker = Run.work([agent], { concurrency: 10, drain: "25 seconds" }) // never ends by itself

export const works = () => NodeRuntime.runMain(Effect.provide(worker, Layer.merge(Live, Owner)))

/** Stops a Run that has used too many tokens. */
export class TokenCap extends Context.Service<TokenCap, Plugin.Plugin>()("example/TokenCap") {
  static readonly layer = (max: number) =>
    Layer.succeed(TokenCap, {
      [Plugin.PluginId]: {
        name: "token-cap",
        guards: [
          Guard.make({
            name: "token-cap",
            stage: "budget", // limits | permissions | budget | loop
            initial: 0,
            fold: (used, event) =>
              event._tag === "TurnCompleted" ? used + event.usage.input + event.usage.output : used,
            check: ({ memory, proposal }) =>
              proposal._tag === "Step" && memory >= max
                ? Guard.stop(`${memory} tokens used`, { _tag: "Budget" })
                : Guard.allow
          })
        ]
      }
    })
}

export const thrifty = Agent.make("thrifty", { instructions: "…", requires: [TokenCap] }) // without its Layer this does not compile

export const shorten: Interceptor.Interceptor = {
  name: "shorten",
  stage: "sanitize", // trace (around all tries) | breaker | sanitize (around each)
  tool: (_info, next) =>
    Effect.map(next, (output) =>
      typeof output.result === "string" ? { ...output, result: output.result.slice(0, 1000) } : output
    )
}

const handlers = Tools.toLayer({ weather: () => Effect.succeed({ celsius: 4 }) })

export const registers = () =>
  it.effect("answers with the temperature", () =>
    Effect.gen(function* () {
      const model = yield* ScriptedModel.make([
        ScriptedModel.call("weather", { city: "Oslo" }), // the model's first reply: a tool call
        ScriptedModel.text("4 degrees") // its second
      ])
      const outcome = yield* Run.start(agent, { runId: "test", task: "How warm is it?" }).pipe(
        Effect.provide(Layer.mergeAll(model.layer, MemoryStore.layer, handlers))
      )
      expect(outcome).toMatchObject({ _tag: "Completed", output: "4 degrees" })
      yield* model.assertConsumed
    })
  )
