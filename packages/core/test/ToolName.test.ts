import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Agent from "../src/Agent.ts"
import * as MemoryStore from "../src/MemoryStore.ts"
import * as Run from "../src/Run.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"
import * as ToolName from "../src/ToolName.ts"
import { eventsOf, only, paired, storeLayer } from "./support/tools.ts"

const named = <const Name extends string>(name: Name) => Tool.make(name, { success: Schema.String })

describe("ToolName", () => {
  it("RI-083 valid names stay, all others become valid ones that never meet", () => {
    const names = ["a.b", "a_b", "a b", "ü", "файл", "1st", "-x", "", "x".repeat(64), "x".repeat(65), "x".repeat(66)]
    const wires = names.map(ToolName.toWire)
    expect(wires.filter(ToolName.isValid)).toHaveLength(names.length)
    expect(new Set(wires).size).toBe(names.length)
    expect(names.filter((name) => ToolName.toWire(name) === name)).toEqual(["a_b", "x".repeat(64)])
    // Pinned: a stored Run must find its tools again in another process and version.
    expect(wires.slice(0, 4)).toEqual(["a_b_375ih4", "a_b", "a_b_375ibq", "__3syh"])
  })

  it.prop(
    "RI-083 every name maps to one valid name, and mapping it again changes nothing",
    [Schema.String],
    ([name]) => {
      const wire = ToolName.toWire(name)
      expect(wire).toMatch(/^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$/)
      expect(ToolName.toWire(wire)).toBe(wire)
      expect(ToolName.toWire(name)).toBe(wire)
    }
  )

  it.effect("RI-083 four tools whose names look alike are four on the wire, and each call reaches its own", () =>
    Effect.gen(function* () {
      const kit = Toolkit.make(named("a.b"), named("a_b"), named("a b"), named("ü"))
      const layer = kit.toLayer({
        "a.b": () => Effect.succeed("dot"),
        a_b: () => Effect.succeed("underscore"),
        "a b": () => Effect.succeed("space"),
        ü: () => Effect.succeed("umlaut")
      })
      // The model calls what it was told of, once by the declared name.
      const model = yield* ScriptedModel.make([
        (request) => ScriptedModel.calls([...request.tools, "a.b"].map((name) => ScriptedModel.call(name, {}))),
        ScriptedModel.text("done")
      ])
      const store = storeLayer(yield* MemoryStore.make)
      yield* Run.start(Agent.make("a", { instructions: "i", tools: [kit] }), { runId: "r", task: "go" }).pipe(
        Effect.provide([model.layer, layer, store])
      )
      yield* Effect.provide(paired(), store)
      const [first, second] = yield* model.requests
      expect(new Set(first?.tools).size).toBe(4)
      expect(first?.tools.every(ToolName.isValid)).toBe(true)
      expect(second?.results.map(({ result }) => result)).toEqual(["dot", "underscore", "space", "umlaut", "dot"])
      const events = yield* Effect.provide(eventsOf(), store)
      expect(only(events, "ToolCallStarted").map(({ name }) => name)).toEqual(["a.b", "a_b", "a b", "ü", "a.b"])
      expect(only(events, "RunStarted").map(({ tools }) => Object.values(tools).map(({ wire }) => wire))).toEqual([
        [ToolName.toWire("a.b"), undefined, ToolName.toWire("a b"), ToolName.toWire("ü")]
      ])
    })
  )

  it.effect(
    "RI-083 two tools of one name, from a toolkit too, are Fatal(ToolkitInvalid) before anything is stored",
    () =>
      Effect.gen(function* () {
        const kit = Toolkit.make(named("copy"))
        const layer = kit.toLayer({ copy: () => Effect.succeed("") })
        const model = yield* ScriptedModel.make([])
        const agent = Agent.make("twins", { instructions: "i", tools: [named("copy"), kit] })
        const program = Effect.gen(function* () {
          const error = yield* Effect.flip(Run.start(agent, { runId: "r", task: "go" }))
          expect(error).toMatchObject({
            _tag: "Fatal",
            reason: { _tag: "ToolkitInvalid", agent: "twins", detail: "two tools are named copy" }
          })
          expect(yield* Run.list()).toEqual([])
        })
        yield* Effect.provide(program, [model.layer, layer, MemoryStore.layer])
      })
  )
})
