/** Permissions that ask, over Runs that rest in one SQLite file between processes. */
import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { SqliteStore } from "@waystone/checkpoint-sqlite"
import { Run, RunError } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import {
  agent,
  digestOf,
  eventsOf,
  handlers,
  only,
  paired,
  type Policy,
  policyLayer,
  runId,
  ScriptedModel
} from "./support/office.ts"

const { calls, text } = ScriptedModel

const policy: Policy = {
  rules: [
    { name: "no more than 500", action: "allow", tools: ["refund"], when: { amount: { totalMax: 500 } } },
    { name: "large refunds", action: "ask", tools: ["refund"] }
  ]
}

/** Each `process` opens the file anew, with a policy of its own, and closes it. */
const office = (script: ScriptedModel.Script) =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const file = `${yield* fs.makeTempDirectoryScoped()}/runs.db`
    const did: Array<string> = []
    const model = yield* ScriptedModel.make(script)
    const process = () => {
      const layer = Layer.mergeAll(model.layer, handlers(did), policyLayer(policy), SqliteStore.layer({ file }))
      return <A, E>(effect: Effect.Effect<A, E, Layer.Success<typeof layer>>) => Effect.provide(effect, layer)
    }
    return { did, model, process }
  })

const three = [
  calls([
    ["refund", { amount: 600 }],
    ["refund", { amount: 700 }],
    ["refund", { amount: 800 }]
  ]),
  text("done")
]
const start = Run.start(agent, { runId, task: "go" })
const resume = Run.resume(agent, { runId })
const yes = (digest: string) => ({ _tag: "Approve", digest }) as const
const answer = (callId: string, answer: Parameters<typeof Run.answer>[1]["answer"], by = "ann") =>
  Run.answer(agent, { runId, callId, answer, by })
const reasonOf = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.exit(effect), (exit) => {
    if (Exit.isSuccess(exit)) return "void"
    const error: unknown = exit.cause.reasons.map((reason) => ("error" in reason ? reason.error : undefined))[0]
    return error instanceof RunError.Fatal || error instanceof RunError.Retryable ? error.reason._tag : "?"
  })

describe("permissions that ask, across processes", () => {
  it.live("RI-079 RI-089 RI-165 every pending call is reported; answers in any order reach their own call", () =>
    Effect.gen(function* () {
      const { did, model, process } = yield* office(three)
      expect((yield* process()(start))._tag).toBe("Suspended")
      const { status, waiting } = yield* process()(Run.get(runId))
      expect(status).toBe("waiting")
      expect(waiting).toMatchObject(
        ["t1.0", "t1.1", "t1.2"].map((id) => ({
          id,
          kind: "approval",
          name: "refund",
          guard: "permissions",
          reason: "refund needs approval (rule large refunds)"
        }))
      )
      const digest = yield* process()(digestOf("t1.1"))
      yield* process()(answer("t1.1", yes(digest)))
      // Others still wait: the model is not asked before every call has its result.
      expect((yield* process()(resume))._tag).toBe("Suspended")
      expect((yield* model.requests).length).toBe(1)
      const last = yield* process()(digestOf("t1.2"))
      yield* process()(answer("t1.2", { _tag: "Deny", digest: last, reason: "too much" }))
      const first = yield* process()(digestOf("t1.0"))
      yield* process()(answer("t1.0", { _tag: "Deny", digest: first, reason: "no" }))
      expect((yield* process()(resume))._tag).toBe("Completed")
      expect(did).toEqual(["refund 700"])
      const results = (yield* model.requests)[1]?.results ?? []
      expect(results.map(({ result }) => JSON.stringify(result))).toEqual([
        expect.stringContaining("Denied by ann: no"),
        expect.stringContaining("refund 700"),
        expect.stringContaining("Denied by ann: too much")
      ])
      yield* process()(paired)
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("RI-022 a forged decision is refused, and nothing runs", () =>
    Effect.gen(function* () {
      const { did, process } = yield* office(three)
      yield* process()(start)
      const digest = yield* process()(digestOf("t1.0"))
      expect(yield* process()(reasonOf(answer("t1.0", yes("0".repeat(64)))))).toBe("DigestMismatch")
      expect(yield* process()(reasonOf(answer("t1.1", yes(digest))))).toBe("DigestMismatch")
      expect(yield* process()(reasonOf(answer("t9.0", yes(digest))))).toBe("NotPending")
      yield* process()(resume)
      yield* process()(Run.cancel({ runId, by: "ann" }))
      expect(yield* process()(reasonOf(answer("t1.0", yes(digest))))).toBe("RunTerminal")
      expect(did).toEqual([])
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("RI-043 of many answers at once from two processes one counts, and the tool runs once", () =>
    Effect.gen(function* () {
      const { did, process } = yield* office([calls([["refund", { amount: 600 }]]), text("done")])
      yield* process()(start)
      const digest = yield* process()(digestOf("t1.0"))
      const [a, b] = [process(), process()]
      const twenty = Effect.forEach(Array.from({ length: 20 }), () => reasonOf(answer("t1.0", yes(digest))), {
        concurrency: "unbounded"
      })
      const told = yield* Effect.all([a(twenty), b(twenty)], { concurrency: 2 })
      expect(new Set(told.flat())).toEqual(new Set(["void"]))
      expect(yield* process()(reasonOf(answer("t1.0", { _tag: "Deny", digest, reason: "no" })))).toBe("AlreadyDecided")
      expect((yield* process()(resume))._tag).toBe("Completed")
      expect(did).toEqual(["refund 600"])
      expect(only(yield* process()(eventsOf), "CallAnswered").length).toBe(1)
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("P3 the sum over the Run is the same in a process that did not see the first calls", () =>
    Effect.gen(function* () {
      const { did, process } = yield* office([
        calls([
          ["refund", { amount: 400 }],
          ["refund", { amount: 600 }]
        ]),
        calls([["refund", { amount: 1 }]])
      ])
      yield* process()(start)
      const digest = yield* process()(digestOf("t1.1"))
      yield* process()(answer("t1.1", yes(digest)))
      // 400 and 600 are in the journal, so 1 more asks.
      expect(yield* process()(resume)).toMatchObject({ _tag: "Suspended", waiting: [{ id: "t2.0" }] })
      expect(did).toEqual(["refund 400", "refund 600"])
    }).pipe(Effect.provide(NodeServices.layer))
  )
})
