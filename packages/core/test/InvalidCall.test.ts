import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Agent from "../src/Agent.ts"
import * as MemoryStore from "../src/MemoryStore.ts"
import * as Run from "../src/Run.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"
import { eventsOf, lived, only, outcomeOf, paired, ran, storeLayer } from "./support/tools.ts"

const { call, calls, text } = ScriptedModel

const ok = () => Effect.succeed("ok")

/** Runs one reply with these arguments for a tool `{ a?: number | string }` and says what was executed and shown. */
const given = (args: ReadonlyArray<unknown>) =>
  Effect.gen(function* () {
    const executed: Array<unknown> = []
    const Take = Tool.make("take", {
      parameters: Schema.Struct({ a: Schema.optionalKey(Schema.Union([Schema.Number, Schema.String])) }),
      success: Schema.String
    })
    const layer = Toolkit.make(Take).toLayer({ take: (input) => Effect.sync(() => `${executed.push(input)}`) })
    const model = yield* ScriptedModel.make([calls(args.map((one) => call("take", one))), text("done")])
    const store = storeLayer(yield* MemoryStore.make)
    // The scripted stream writes parameters as JSON text, which not all of these have.
    const agent = Agent.make("a", { instructions: "i", tools: [Take], stream: false })
    const outcome = yield* Run.start(agent, { runId: "r", task: "go" }).pipe(
      Effect.provide([model.layer, layer, store])
    )
    yield* Effect.provide(paired(), store)
    const events = only(yield* Effect.provide(eventsOf(), store), "ToolCallCompleted")
    const completed = events.toSorted((a, b) => a.callId.localeCompare(b.callId))
    const shown = completed.map(({ result }) => JSON.stringify(result))
    return { executed, outcome, completed, shown }
  })

describe("InvalidCall", () => {
  it.effect("RI-085 malformed JSON is an error result of that call; its sibling runs and the Run goes on", () =>
    Effect.gen(function* () {
      const { completed, executed, outcome } = yield* given(['{"{"a":1', { a: 2 }])
      expect(outcome).toMatchObject({ _tag: "Completed", output: "done" })
      expect(executed).toEqual([{ a: 2 }])
      expect(completed).toMatchObject([
        { callId: "t1.0", isFailure: true, ending: "invalid", error: "InvalidArguments" },
        { callId: "t1.1", isFailure: false, ending: "executed", result: "1" }
      ])
    })
  )

  it.effect("RI-104 JSON that is cut off never runs the tool, though every field is optional", () =>
    Effect.gen(function* () {
      const { completed, executed, shown } = yield* given(['{"a":"/data/a', "", "{", "7", '"x"', null, [], 7])
      expect(executed).toEqual([])
      expect(completed.every(({ ending, isFailure }) => isFailure && ending === "invalid")).toBe(true)
      for (const result of shown.slice(0, 5)) expect(result).toContain("not valid JSON")
      for (const result of shown.slice(5)) expect(result).toMatch(/do not fit.*Expected object/)
    })
  )

  it.effect("RI-116 text is read only if it is one whole JSON object: no fences, no mix of two, no repair", () =>
    Effect.gen(function* () {
      const args = ['```json\n{"a":1}\n```', '{"a":1}{"a":2}', '{"a":"}"}', "{a:1}", '{"a":1,}', ' {"a":1}\n']
      const { completed, executed } = yield* given(args)
      expect(executed).toEqual([{ a: "}" }, { a: 1 }])
      expect(completed.map(({ ending }) => ending)).toEqual([
        "invalid",
        "invalid",
        "executed",
        "invalid",
        "invalid",
        "executed"
      ])
    })
  )

  it.effect("RI-122 values that JSON does not have are a mismatch, never a defect", () =>
    Effect.gen(function* () {
      const circle: { a?: unknown } = {}
      circle.a = circle
      const args = [{ a: Number.NaN }, { a: Infinity }, { a: Symbol("s") }, { a: () => 1 }, { a: 1n }, circle]
      const { completed, executed, outcome } = yield* given(args)
      expect(outcome._tag).toBe("Completed")
      // A field that JSON leaves out is left out.
      expect(executed).toEqual([{}, {}])
      expect(completed.map(({ ending }) => ending)).toEqual([
        "invalid",
        "invalid",
        "executed",
        "executed",
        "invalid",
        "invalid"
      ])
    })
  )

  it.effect("RI-122 a schema that throws while it decodes gives an error result", () =>
    Effect.gen(function* () {
      const Throwing = Schema.String.pipe(
        Schema.decodeTo(
          Schema.String,
          SchemaTransformation.transform({
            decode: (): string => {
              throw new Error("cannot even decode")
            },
            encode: (s) => s
          })
        )
      )
      const Odd = Tool.make("odd", { parameters: Schema.Struct({ a: Throwing }), success: Schema.String })
      const model = yield* ScriptedModel.make([calls([call("odd", { a: "x" }), call("odd", { a: 1 })]), text("done")])
      const outcome = yield* Run.start(Agent.make("a", { instructions: "i", tools: [Odd] }), {
        runId: "r",
        task: "go"
      }).pipe(Effect.provide([model.layer, Toolkit.make(Odd).toLayer({ odd: ok }), MemoryStore.layer]))
      expect(outcome._tag).toBe("Completed")
      const results = (yield* model.requests)[1]?.results.map(({ result }) => JSON.stringify(result))
      expect(results).toEqual([
        expect.stringMatching(/The arguments of odd do not fit; not executed. .*cannot even decode/),
        expect.stringMatching(/The arguments of odd do not fit; not executed. .*Expected string/)
      ])
    })
  )

  it.effect("RI-122 the message of a mismatch names the path and what was expected, and is bounded", () =>
    Effect.gen(function* () {
      const { shown } = yield* given([{ a: { deep: true } }, { a: ["x".repeat(200_000)] }])
      expect(shown[0]).toMatch(/The arguments of take do not fit; not executed\. .*Expected .*number.*\[\\"a\\"\]/)
      expect(shown[1]?.length).toBeLessThan(2048)
    })
  )

  it.effect("RI-114 an unknown tool is an error result that lists near names, and nothing runs", () =>
    Effect.gen(function* () {
      const executed: Array<string> = []
      const named = <const Name extends string>(name: Name) => Tool.make(name, { success: Schema.String })
      const log = (name: string) => () => Effect.sync(() => `${executed.push(name)}`)
      const kit = Toolkit.make(named("search"), named("sea.rch"), named("write"), named("serac"))
      const layer = kit.toLayer({
        search: log("search"),
        "sea.rch": log("sea.rch"),
        write: log("write"),
        serac: log("serac")
      })
      const model = yield* ScriptedModel.make([
        calls([call("serach", {}), call("WRITE", {}), call("quxquxqux", {}), call("toString", {})]),
        text("done")
      ])
      const outcome = yield* Run.start(Agent.make("a", { instructions: "i", tools: [kit] }), {
        runId: "r",
        task: "go"
      }).pipe(Effect.provide([model.layer, MemoryStore.layer, layer]))
      expect(outcome._tag).toBe("Completed")
      expect(executed).toEqual([])
      const results = (yield* model.requests)[1]?.results.map(({ result }) => JSON.stringify(result)) ?? []
      expect(results[0]).toMatch(/There is no tool serach\. Did you mean serac or search\?/)
      expect(results[0]).toMatch(/Tools: search, sea_rch_\w+, write, serac\./)
      expect(results[2]).toMatch(/There is no tool quxquxqux\. Tools: /)
      expect(results[3]).toMatch(/There is no tool toString\. Tools: /)
    })
  )

  it.effect(
    "RI-114 five unknown tools in a row trip ConsecutiveFailures, and a success in between does not let them",
    () =>
      Effect.gen(function* () {
        const bad = call("serach", {})
        const five = yield* ran({ handler: ok, script: [bad, bad, bad, bad, bad] })
        expect(outcomeOf(five)).toMatchObject({ _tag: "Stopped", reason: { _tag: "ConsecutiveFailures" }, turns: 5 })
        expect(five.completed.map(({ ending, error }) => [ending, error])).toEqual(
          Array(5).fill(["invalid", "UnknownTool"])
        )
        const good = call("work", {})
        const script = [bad, bad, bad, bad, good, bad, bad, bad, bad, text("done")]
        expect(outcomeOf(yield* ran({ handler: ok, script }))).toMatchObject({ _tag: "Completed", turns: 10 })
      })
  )

  it.effect("arguments over 256 KB and calls beyond the limit of a reply are answered, the others run", () =>
    Effect.gen(function* () {
      let executions = 0
      const handler = () => Effect.sync(() => ++executions)
      const large = call("work", { n: 1, text: "x".repeat(256_000) })
      const script = [calls([call("work", {}), large, ...Array(3).fill(call("work", {}))]), text("done")]
      const run = yield* ran({ handler, script, agent: { limits: { maxCallsPerReply: 4 } } })
      expect(outcomeOf(run)._tag).toBe("Completed")
      expect(executions).toBe(3)
      expect(run.completed.map(({ callId, ending, error }) => [callId, ending, error]).toSorted()).toEqual([
        ["t1.0", "executed", undefined],
        ["t1.1", "invalid", "ArgumentsTooLarge"],
        ["t1.2", "executed", undefined],
        ["t1.3", "executed", undefined],
        ["t1.4", "invalid", "TooManyCalls"]
      ])
      expect(JSON.stringify(run.results[4]?.result)).toContain("At most 4 calls in one reply")
    })
  )

  const Pay1 = Tool.make("pay", { parameters: Schema.Struct({ a: Schema.String }), success: Schema.String })
  const Pay2 = Pay1.setParameters(Schema.Struct({ a: Schema.String, b: Schema.String }))
  const Other = Tool.make("other", { success: Schema.String })

  it.effect.each([
    ["is gone", [Other], /^ToolDrift: the tool pay does not exist any more; not executed\./],
    ["takes other arguments", [Pay2], /^ToolDrift: pay takes other arguments now; not executed\. Missing key.*"b"/s]
  ] as const)("RI-123 a call that was approved while its tool %s gets a ToolDrift result and the Run goes on", (row) =>
    Effect.gen(function* () {
      const [, tools, says] = row
      let executions = 0
      const pay = () => Effect.sync(() => `${++executions}`)
      const handlers = Toolkit.make(Pay2, Other).toLayer({ pay, other: pay })
      const model = yield* ScriptedModel.make([call("pay", { a: "x" }), text("done")])
      const store = yield* MemoryStore.make
      const v1 = Agent.make("payer", { instructions: "i", tools: [Pay1.setNeedsApproval(true)] })
      const v2 = Agent.make("payer", { instructions: "i", version: "2", tools })
      const started = yield* lived(store, () =>
        Run.start(v1, { runId: "r", task: "go" }).pipe(Effect.provide([model.layer, handlers]))
      )
      expect(started).toMatchObject({ _tag: "Success", value: { _tag: "Suspended", waiting: [{ id: "t1.0" }] } })
      const resumed = yield* lived(store, () =>
        Effect.gen(function* () {
          const [wait] = (yield* Run.get("r")).waiting
          const answer = { _tag: "Approve", digest: wait?.digest ?? "" } as const
          yield* Run.answer(v2, { runId: "r", callId: "t1.0", answer, by: "ann" })
          return yield* Run.resume(v2, { runId: "r" })
        }).pipe(Effect.provide([model.layer, handlers]))
      )
      expect(resumed).toMatchObject({ _tag: "Success", value: { _tag: "Completed", output: "done" } })
      expect(executions).toBe(0)
      const events = yield* Effect.provide(eventsOf(), storeLayer(store))
      yield* Effect.provide(paired(), storeLayer(store))
      expect(only(events, "ToolsChanged")).toHaveLength(1)
      expect(only(events, "ToolCallCompleted")).toMatchObject([
        { isFailure: true, ending: "invalid", error: "ToolDrift", result: { error: expect.stringMatching(says) } }
      ])
    })
  )
})
