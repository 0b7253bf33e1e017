import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Agent from "../src/Agent.ts"
import { CheckpointStore } from "../src/CheckpointStore.ts"
import * as MemoryStore from "../src/MemoryStore.ts"
import * as Run from "../src/Run.ts"
import { StoreUnavailable } from "../src/RunError.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"

const Pay = Tool.make("pay", { parameters: Schema.Struct({}), success: Schema.Number })

it.live("J2 a start whose commit failed is not written by the last flush: its handler never ran", () =>
  Effect.gen(function* () {
    const memory = yield* MemoryStore.make
    let failures = 0
    const append: typeof memory.append = (request) =>
      Effect.suspend(() =>
        request.events.some((event) => event.includes("ToolCallStarted")) && failures++ < 5
          ? Effect.fail(new StoreUnavailable({ detail: "away" }))
          : memory.append(request)
      )
    const kit = Toolkit.make(Pay)
    const model = yield* ScriptedModel.make([ScriptedModel.call("pay", {}), ScriptedModel.text("done")])
    const store = Layer.succeed(CheckpointStore, { ...memory, append })
    const services = Layer.mergeAll(model.layer, kit.toLayer({ pay: () => Effect.succeed(1) }), store)
    const start = Run.start(Agent.make("a", { instructions: "i", tools: [kit] }), { runId: "r", task: "go" })
    yield* Effect.flip(Effect.provide(start, services))
    expect((yield* Effect.provide(start, services))._tag).toBe("Completed") // is Suspended, t1.0 in doubt
  })
)
