import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Agent from "../src/Agent.ts"
import type * as Interceptor from "../src/Interceptor.ts"
import * as MemoryStore from "../src/MemoryStore.ts"
import * as Reconcile from "../src/Reconcile.ts"
import * as Run from "../src/Run.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"
import * as ToolOptions from "../src/ToolOptions.ts"
import { agentOf, eventsOf, handled, lived, only, plugged, storeLayer, Work } from "./support/tools.ts"

const Watch = Tool.make("watch", { success: Schema.String })
  .annotate(Tool.OpenWorld, true)
  .annotate(ToolOptions.Polling, true)
const Tools = Toolkit.make(Watch)
const delta = (delta: string) => ({ type: "text-delta" as const, id: "0", delta })

/** What readers of the stream see where this interceptor takes part. */
const seen = (interceptor: Partial<Interceptor.Interceptor>, stream = true) =>
  Effect.gen(function* () {
    const script = [ScriptedModel.call("watch", {}), ScriptedModel.stream([delta("sec"), delta("ret")])]
    const agent = Agent.make("held", { instructions: "Work.", tools: [Tools], stream })
    const handlers = Tools.toLayer({ watch: (_, { preliminary }) => Effect.as(preliminary("half" as never), "whole") })
    const plugin = plugged({ name: "p", interceptors: [{ name: "i", stage: "sanitize", ...interceptor }] })
    const updates = yield* Run.stream(agent, { runId: "r", task: "go" }).pipe(
      Stream.runCollect,
      Effect.provide(Layer.mergeAll(ScriptedModel.layer(script), handlers, plugin, MemoryStore.layer))
    )
    return {
      texts: updates.flatMap((update) => (update._tag === "TextDelta" ? [update.text] : [])),
      progress: updates.flatMap((update) => (update._tag === "ToolProgress" ? [update.value] : [])),
      started: updates.flatMap((update) =>
        update._tag === "Committed" && update.event._tag === "RunStarted" ? [update.event.tools] : []
      )
    }
  })

const shout: Interceptor.Interceptor["turn"] = (_, next) =>
  Effect.map(next, (reply) => ({
    ...reply,
    parts: reply.parts.map((part) => (part.type === "text-delta" ? { ...part, delta: part.delta.toUpperCase() } : part))
  }))

it.effect("an interceptor that holds deltas sees the text before any reader does, and readers get what it made", () =>
  Effect.gen(function* () {
    expect((yield* seen({ turn: shout, holdsDeltas: true })).texts).toEqual(["SEC", "RET"])
    expect((yield* seen({ turn: shout })).texts).toEqual(["sec", "ret"])
    expect((yield* seen({ turn: shout, holdsDeltas: true }, false)).texts).toEqual([])
  })
)

it.effect("an interceptor changes what a handler reports meanwhile; what it fails at is shown to nobody", () =>
  Effect.gen(function* () {
    const infos: Array<unknown> = []
    const changed = yield* seen({
      progress: (info, value) => {
        infos.push(info)
        return `${String(value)} hidden`
      }
    })
    expect(changed.progress).toEqual(["half hidden"])
    expect(infos).toEqual([{ runId: "r", callId: "t1.0", name: "watch", effect: "unsafe", openWorld: true }])
    const broken = yield* seen({
      progress: () => {
        throw new Error("broken")
      }
    })
    expect(broken.progress).toEqual([])
    expect((yield* seen({})).progress).toEqual(["half"])
  })
)

it.effect("what reconcile knows of a lost call goes through the sanitizers too", () =>
  Effect.gen(function* () {
    const store = yield* MemoryStore.make
    const model = yield* ScriptedModel.make([ScriptedModel.call("work", {}), ScriptedModel.text("done")])
    const infos: Array<unknown> = []
    const hide = plugged({
      name: "p",
      interceptors: [
        {
          name: "i",
          stage: "sanitize",
          tool: (info, next) => {
            infos.push(info)
            return Effect.map(next, (output) => ({ ...output, result: `${String(output.result)} hidden` }))
          }
        }
      ]
    })
    const life = (dies: boolean) =>
      lived(store, (self) =>
        Run.start(agentOf(Work, {}), { runId: "r", task: "go" }).pipe(
          Effect.provide([
            model.layer,
            handled(() => (dies ? self.die : Effect.succeed("again"))),
            Reconcile.layer(Work, () => Effect.succeed({ _tag: "Done", result: "found" })),
            hide
          ])
        )
      )
    yield* life(true)
    expect(yield* life(false)).toMatchObject({ _tag: "Success", value: { _tag: "Completed" } })
    const events = yield* Effect.provide(eventsOf(), storeLayer(store))
    expect(only(events, "ToolCallCompleted")).toMatchObject([{ ending: "reconciled", result: "found hidden" }])
    expect(infos.at(-1)).toMatchObject({ name: "work", callId: "t1.0", arguments: {} })
  })
)

it.effect("a tool that is annotated as polling is recorded as such", () =>
  Effect.gen(function* () {
    expect((yield* seen({})).started).toMatchObject([{ watch: { polling: true, openWorld: true } }])
  })
)
