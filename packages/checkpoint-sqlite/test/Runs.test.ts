import { statSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import { Agent, CheckpointStore, MemoryStore, Run, Window } from "@waystone/core"
import { ScriptedModel } from "@waystone/core/testing"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import { change, file, rows, store } from "./support/files.ts"

const { call, calls, text } = ScriptedModel
type Service = CheckpointStore.CheckpointStore["Service"]

const shape = { parameters: Schema.Struct({ n: Schema.Finite }), success: Schema.String, failure: Schema.Unknown }
const Pay = Tool.make("pay", shape)
const kit = Toolkit.make(Pay)
const agent = Agent.make("clerk", {
  instructions: "Work.",
  tools: [kit],
  limits: { maxTurns: 1000 },
  window: Window.lastMessages(50)
})
type Handlers = Toolkit.HandlersFrom<Toolkit.Tools<typeof kit>>

/** A process over that store. */
const on =
  (one: Service, model: ScriptedModel.Scripted, { pay = () => Effect.succeed("paid") }: Partial<Handlers> = {}) =>
  <A, E>(effect: Effect.Effect<A, E, Agent.Services<typeof agent> | CheckpointStore.CheckpointStore>) =>
    Effect.provide(
      effect,
      Layer.mergeAll(Layer.succeed(CheckpointStore.CheckpointStore, one), model.layer, kit.toLayer({ pay }))
    )

const start = Run.start(agent, { runId: "r", task: "go" })
const resume = Run.resume(agent, { runId: "r" })

const eventsOf = (runId: string) =>
  Effect.map(Stream.runCollect(Run.events(runId, { follow: false })), (entries) => entries.map(({ event }) => event))

/** Every body that the file has of a Run. */
const journal = (one: Service) =>
  Effect.map(one.read("r", { after: 0, limit: 10_000 }), (events) => events.map(({ body }) => body))

// The cases that hold on every durable store are those of apps/crash/test/Durable.test.ts.
describe("Runs on SQLite", () => {
  it.live("RI-042 NUL and lone surrogates of a tool and of a person are the same for another process", () =>
    Effect.gen(function* () {
      const path = yield* file
      const one = yield* store(path)
      const strange = "a\u0000b \ud800 c 🧭\r\n\u2028"
      const script = [call("pay", { n: 1 }), text("said a\u0000b")]
      const pay = () => Effect.succeed(strange)
      const model = yield* ScriptedModel.make(script)
      const here = on(one, model, { pay })
      const begin = Run.start(agent, { runId: "r", task: strange })
      expect(yield* here(begin)).toMatchObject({ _tag: "Completed", output: "said a\u0000b" })
      const said = (events: Effect.Success<ReturnType<typeof eventsOf>>) =>
        events.flatMap((event) =>
          event._tag === "RunAccepted" ? [event.task] : event._tag === "ToolCallCompleted" ? [event.result] : []
        )
      const there = on(yield* store(path), model)
      const got = said(yield* there(eventsOf("r")))
      // Core's Text puts U+FFFD in the place of lone surrogates; a store adds nothing to that.
      const memory = on(yield* MemoryStore.make, yield* ScriptedModel.make(script), { pay })
      expect(got).toEqual(said(yield* memory(Effect.andThen(begin, eventsOf("r")))))
      expect(got.map((text) => String(text).replace(/[\ud800\ufffd]/, "?"))).toEqual(
        Array(2).fill(strange.replace("\ud800", "?"))
      )
      expect(yield* there(resume)).toMatchObject({ output: "said a\u0000b" })
      expect((yield* journal(one)).every((body) => !body.includes("\0") && !/\p{Surrogate}/u.test(body))).toBe(true)
    })
  )
})

describe("the size of the file", () => {
  /** The bytes that SQLite uses, its WAL included once it is written back. */
  const used = (path: string) => {
    change(path, "PRAGMA wal_checkpoint(TRUNCATE)")
    return statSync(path).size
  }

  it.live("RI-010 ten results of 1 MB are stored once each, and the row of the Run stays small", () =>
    Effect.gen(function* () {
      const path = yield* file
      const one = yield* store(path)
      const result = "0123456789".repeat(99_000)
      const model = yield* ScriptedModel.make(({ number }) => (number > 10 ? text("done") : call("pay", { n: number })))
      const outcome = yield* on(one, model, { pay: ({ n }) => Effect.succeed(`${n} ${result}`) })(start)
      expect(outcome._tag).toBe("Completed")
      expect(used(path)).toBeLessThan(10 * 1_000_000 * 1.1)
      expect(used(path)).toBeGreaterThan(10 * 900_000)
      expect(Number(rows(path, "SELECT length(head) AS size FROM runs")[0]?.["size"])).toBeLessThan(64_000)
      const there = yield* on(yield* store(path), model)(eventsOf("r"))
      const completed = there.filter(({ _tag }) => _tag === "ToolCallCompleted")
      expect(completed).toMatchObject(Array.from({ length: 10 }, (_, i) => ({ result: `${i + 1} ${result}` })))
    })
  )

  it.live("a call of many megabytes in one append is kept and read", () =>
    Effect.gen(function* () {
      const path = yield* file
      const one = yield* store(path)
      const model = yield* ScriptedModel.make([
        calls([
          ["pay", { n: 1 }],
          ["pay", { n: 2 }]
        ]),
        text("done")
      ])
      const big = "ž".repeat(450_000)
      const outcome = yield* on(one, model, { pay: () => Effect.succeed(big) })(start)
      expect(outcome._tag).toBe("Completed")
      expect((yield* journal(yield* store(path))).join("").length).toBeGreaterThan(900_000)
    })
  )
})
