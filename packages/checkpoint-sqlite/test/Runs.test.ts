import { statSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import {
  Agent,
  CheckpointStore,
  MemoryStore,
  Run,
  RunError,
  ToolContext,
  ToolError,
  ToolOptions,
  Window
} from "@waystone/core"
import { DyingStore, Mortal, PairingChecker, ScriptedModel } from "@waystone/core/testing"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import { change, failure, file, rows, store } from "./support/files.ts"

const { call, calls, text } = ScriptedModel
type Service = CheckpointStore.CheckpointStore["Service"]

const shape = { parameters: Schema.Struct({ n: Schema.Finite }), success: Schema.String, failure: Schema.Unknown }
const Pay = Tool.make("pay", shape)
const Put = Tool.make("put", shape).annotate(Tool.Idempotent, true)
const Risky = Tool.make("risky", { ...shape, needsApproval: true })
const Ask = ToolOptions.external(
  Tool.make("ask", { parameters: Schema.Struct({ question: Schema.String }), success: Schema.String })
)
const kit = Toolkit.make(Pay, Put, Risky)
const agent = Agent.make("clerk", {
  instructions: "Work.",
  tools: [kit, Ask],
  limits: { maxTurns: 1000 },
  window: Window.lastMessages(50)
})
type Handlers = Toolkit.HandlersFrom<Toolkit.Tools<typeof kit>>

const idle: Handlers = {
  pay: () => Effect.succeed("paid"),
  put: () => Effect.succeed("put"),
  risky: () => Effect.succeed("done")
}

/** A process over that store. */
const on =
  (one: Service, model: ScriptedModel.Scripted, handlers: Partial<Handlers> = {}) =>
  <A, E>(effect: Effect.Effect<A, E, Agent.Services<typeof agent> | CheckpointStore.CheckpointStore>) =>
    Effect.provide(
      effect,
      Layer.mergeAll(
        Layer.succeed(CheckpointStore.CheckpointStore, one),
        model.layer,
        kit.toLayer({ ...idle, ...handlers })
      )
    )

const start = Run.start(agent, { runId: "r", task: "go" })
const resume = Run.resume(agent, { runId: "r" })

const eventsOf = (runId: string) =>
  Effect.map(Stream.runCollect(Run.events(runId, { follow: false })), (entries) => entries.map(({ event }) => event))

/** Every body that the file has of a Run. */
const journal = (one: Service) =>
  Effect.map(one.read("r", { after: 0, limit: 10_000 }), (events) => events.map(({ body }) => body))

describe("Runs on SQLite", () => {
  it.live("RI-034 a Run is never reported as suspended while its wait is not in the file", () =>
    Effect.gen(function* () {
      const path = yield* file
      const one = yield* store(path)
      const full: Service = {
        ...one,
        append: (request) =>
          request.head.waiting.length > 0
            ? Effect.fail(new RunError.StoreUnavailable({ detail: "full" }))
            : one.append(request)
      }
      const model = yield* ScriptedModel.make(({ messages }) =>
        messages.some(({ role }) => role === "tool") ? text("done") : call("risky", { n: 1 })
      )
      const error = yield* failure(on(full, model)(start))
      expect(error.reason._tag).toBe("StoreUnavailable")
      const other = yield* store(path)
      expect(yield* other.head("r")).toMatchObject({ status: "running", waiting: [] })
      const outcome = yield* on(other, model)(resume)
      expect(outcome._tag).toBe("Suspended")
      expect(yield* one.head("r")).toMatchObject({ status: "waiting", waiting: ["approval"] })
    })
  )

  it.live(
    "RI-037 an answer reaches the call that waits, once, through other connections; the model is asked twice",
    () =>
      Effect.gen(function* () {
        const path = yield* file
        const model = yield* ScriptedModel.make([call("ask", { question: "?" }), text("done")])
        expect((yield* on(yield* store(path), model)(start))._tag).toBe("Suspended")
        const value = { _tag: "Value" as const, value: "ok" }
        for (let delivery = 0; delivery < 3; delivery++) {
          const other = on(yield* store(path), model)
          yield* other(Run.answer(agent, { runId: "r", callId: "t1.0", answer: value, by: "ann" }))
          expect(yield* other(resume)).toMatchObject({ _tag: "Completed", output: "done" })
        }
        const requests = yield* model.requests
        expect(requests).toHaveLength(2)
        expect(requests[1]?.results).toMatchObject([{ name: "ask", result: "ok", isFailure: false }])
      })
  )

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

  it.live("RI-050 (a) three tries of a call have one key", () =>
    Effect.gen(function* () {
      const one = yield* store(yield* file)
      const keys: Array<string> = []
      const model = yield* ScriptedModel.make([call("put", { n: 1 }), text("done")])
      const put = () =>
        Effect.gen(function* () {
          keys.push((yield* ToolContext.ToolContext).idempotencyKey)
          return keys.length < 3 ? yield* ToolError.retryable("later") : "ok"
        })
      expect((yield* on(one, model, { put })(start))._tag).toBe("Completed")
      expect(keys).toEqual(Array(3).fill("r/t1.0"))
    })
  )

  it.live(
    "RI-050 (b) a process that dies between the effect and its record leaves a call that runs under its key",
    () =>
      Effect.gen(function* () {
        const path = yield* file
        const keys: Array<string> = []
        const model = yield* ScriptedModel.make([call("put", { n: 1 }), text("done")])
        const mortal = yield* Mortal.make
        const noted = Effect.gen(function* () {
          keys.push((yield* ToolContext.ToolContext).idempotencyKey)
        })
        const dying = DyingStore.make(yield* store(path), mortal)
        yield* Effect.forkDetach(on(dying, model, { put: () => Effect.andThen(noted, mortal.die) })(start))
        yield* mortal.died
        const other = yield* store(path)
        // The dead one's lease; nobody knows here that it is dead.
        yield* other.release({ runId: "r", epoch: 1 })
        expect((yield* on(other, model, { put: () => Effect.as(noted, "ok") })(resume))._tag).toBe("Completed")
        expect(keys).toEqual(["r/t1.0", "r/t1.0"])
      })
  )

  it.live(
    "RI-106 a stored event of another kind or shape stops the resume with its path; nothing is asked or changed",
    () =>
      Effect.gen(function* () {
        const damages: ReadonlyArray<readonly [string, string]> = [
          ["replace(body, 'TurnCompleted\"', 'TurnDreamt\"')", "_tag"],
          [`replace(body, '"result":', '"risult":')`, "result"],
          ["'not json'", ""]
        ]
        for (const [sql, where] of damages) {
          const path = yield* file
          const model = yield* ScriptedModel.make([call("pay", { n: 1 }), call("risky", { n: 2 })])
          expect((yield* on(yield* store(path), model)(start))._tag).toBe("Suspended")
          const middle = rows(path, "SELECT max(seq) AS seq FROM journal WHERE body LIKE '%ToolCallCompleted%'")[0]?.[
            "seq"
          ]
          const target = where === "_tag" ? "body LIKE 'TurnCompleted%'" : `seq = ${String(middle)}`
          change(path, `UPDATE journal SET body = ${sql} WHERE ${target}`)
          const before = rows(path, "SELECT * FROM journal")
          const silent = yield* ScriptedModel.make([])
          const error = yield* failure(on(yield* store(path), silent)(resume))
          expect(error.reason._tag).toBe("CheckpointCorrupt")
          expect(error.message).toContain(where)
          expect(yield* silent.requests).toEqual([])
          expect(rows(path, "SELECT * FROM journal")).toEqual(before)
        }
      })
  )

  it.live("RI-134 a result that the file did not take at first is written at the next append, the tool runs once", () =>
    Effect.gen(function* () {
      const path = yield* file
      const one = yield* store(path)
      let executions = 0
      let refusals = 0
      const failing: Service = {
        ...one,
        append: (request) =>
          Effect.suspend(() =>
            executions > 0 && refusals++ === 0
              ? Effect.fail(new RunError.StoreUnavailable({ detail: "full" }))
              : one.append(request)
          )
      }
      const model = yield* ScriptedModel.make([call("pay", { n: 1 }), text("done")])
      const pay = () => Effect.sync(() => `paid ${++executions}`)
      expect((yield* on(failing, model, { pay })(start))._tag).toBe("Completed")
      expect([executions, refusals]).toEqual([1, expect.any(Number)])
      const there = on(yield* store(path), model)
      const completed = (yield* there(eventsOf("r"))).filter(({ _tag }) => _tag === "ToolCallCompleted")
      expect(completed).toMatchObject([{ result: "paid 1" }])
      expect(yield* there(PairingChecker.ofRun("r"))).toEqual([])
    })
  )

  it.live("RI-158 prune takes Runs that ended with all their rows, and nothing of the others", () =>
    Effect.gen(function* () {
      const path = yield* file
      const model = yield* ScriptedModel.make(({ messages }) => {
        const said = JSON.stringify(messages)
        if (said.includes("waiting")) return call("risky", { n: 1 })
        return said.includes("running") ? ScriptedModel.hang : text("done")
      })
      const one = yield* store(path)
      const here = on(one, model)
      const begin = (runId: string) => here(Run.start(agent, { runId, task: runId.split("-")[0] ?? "" }))
      const ids = (name: string, count: number) => Array.from({ length: count }, (_, i) => `${name}-${i}`)
      yield* Effect.forEach(ids("finished", 100), begin)
      yield* Effect.forEach(ids("waiting", 5), begin)
      const fibers = yield* Effect.forEach(ids("running", 5), (runId) => Effect.forkChild(begin(runId)))
      const kept = [...ids("running", 5), ...ids("waiting", 5)]
      while ((yield* one.list({ status: ["running"] }, { limit: 100 })).length < 5) yield* Effect.sleep("20 millis")
      expect(yield* here(Run.prune({ olderThan: 0 }))).toBe(100)
      expect(rows(path, "SELECT run_id FROM runs ORDER BY run_id").map((row) => row["run_id"])).toEqual(kept)
      const counted = rows(
        path,
        "SELECT run_id, seq, (SELECT max(seq) FROM journal WHERE rid = runs.rid) AS last FROM runs"
      )
      expect(counted.every(({ last, seq }) => last === seq)).toBe(true)
      expect(rows(path, "SELECT 1 FROM journal WHERE rid NOT IN (SELECT rid FROM runs)")).toEqual([])
      yield* Effect.forEach(fibers, Fiber.interrupt)
    })
  )
})

describe("the size of the file", () => {
  /** The bytes that SQLite uses, its WAL included once it is written back. */
  const used = (path: string) => {
    change(path, "PRAGMA wal_checkpoint(TRUNCATE)")
    return statSync(path).size
  }

  it.live("RI-080 grows with what is new, not with the whole history: 200 turns with results of 1 KB", () =>
    Effect.gen(function* () {
      const path = yield* file
      const one = yield* store(path)
      const sizes: Array<number> = []
      const result = "x".repeat(1000)
      const model = yield* ScriptedModel.make(({ number }) =>
        number > 200 ? text("done") : call("pay", { n: number })
      )
      const pay = ({ n }: { readonly n: number }) =>
        Effect.sync(() => {
          if (n === 1 || n === 101) sizes.push(used(path))
          return result
        })
      expect((yield* on(one, model, { pay })(start))._tag).toBe("Completed")
      const [empty = 0, half = 0] = sizes
      const whole = used(path)
      expect(whole - empty).toBeLessThan(5 * 200 * 1100)
      expect((whole - empty) / (half - empty)).toBeLessThan(2.5)
      const events = yield* on(yield* store(path), model)(eventsOf("r"))
      expect(events.filter(({ _tag }) => _tag === "ToolCallCompleted")).toHaveLength(200)
    })
  )

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
