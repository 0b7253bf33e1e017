import { describe, expect } from "@effect/vitest"
import { Run } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Backend } from "../durable/backends.ts"
import { clerk, task } from "../durable/Desk.ts"
import { answer, approve, approved, digestOf, expectValid, on, only, tagsOf, told } from "../durable/looks.ts"
import type { Store } from "../durable/Office.ts"
import { plugin } from "../durable/plugin.ts"
import { isFull } from "../support.ts"

const runId = "r"
// The first call asks, the second one has an effect: its start commits the request, and the Run is still running.
const both = [
  ["pay", { amount: 1 }],
  ["mail", { to: "bob" }]
] as const

/** A guard that asks about every mail; the answer must come before `expiresAt`. */
const asksUntil = (expiresAt: number) =>
  plugin("asker", ({ proposal }) =>
    proposal._tag === "Call" && proposal.call.name === "mail"
      ? { _tag: "Ask", reason: "mails cost money", expiresAt }
      : { _tag: "Allow" }
  )

export const waits = (backend: Backend) =>
  describe("an answer and the wait that it answers, in two processes", () => {
    const it = on(backend)

    for (const moment of ["before", "inside", "after"] as const) {
      it(`RI-058 an answer that lands ${moment} the append of RunSuspended is not lost`, (office) =>
        Effect.gen(function* () {
          const { here, life, ran, there } = office
          let said = false
          const say = Effect.suspend(() => {
            if (said) return Effect.void
            said = true
            return Effect.orDie(here(approve()))
          })
          const suspends = (store: Store): Store => ({
            ...store,
            append: (request) =>
              moment === "inside" && request.events.some((line) => line.includes('"RunSuspended"'))
                ? Effect.andThen(say, store.append(request))
                : store.append(request)
          })
          const mail = () => Effect.as(moment === "before" ? say : Effect.void, { sent: "bob" })
          const begin = Run.start(clerk, { runId, task: task(both, "done") })
          const outcome = yield* life({ wrap: suspends, handlers: { mail } })(begin)
          expect(outcome._tag).toBe(moment === "after" ? "Suspended" : "Completed")
          yield* say
          const swept = (yield* there("B", { _tag: "Recover" })).said
          if (moment === "after") expect(swept).toMatchObject([{ runId, outcome: { _tag: "Completed" } }])
          else expect(swept).toEqual([])
          expect(ran()).toEqual(["pay:1"])
          expect((yield* here(tagsOf())).includes("RunSuspended")).toBe(moment === "after")
          yield* here(expectValid(runId))
        }))
    }

    it("RI-058 whenever the answer of one process comes to the Run of another, no Run stays behind", (office) =>
      Effect.gen(function* () {
        const { here, life, ran, there } = office
        const rounds = isFull ? 60 : 6
        for (let i = 0; i < rounds; i++) {
          const runId = `r${i}`
          const answering = life({})(
            Effect.gen(function* () {
              yield* Effect.sleep(i % 4)
              while (Exit.isFailure(yield* Effect.exit(approve("t1.0", runId)))) yield* Effect.sleep(1 + (i % 3))
            })
          )
          const starting = there("A", { _tag: "Start", runId, task: task(both, "done") })
          yield* Effect.all([starting, answering], { concurrency: "unbounded" })
          yield* there("B", { _tag: "Recover" })
          expect(yield* here(Run.get(runId))).toMatchObject({ status: "completed" })
        }
        expect(ran().toSorted()).toEqual([
          ...Array<string>(rounds).fill("mail:bob"),
          ...Array<string>(rounds).fill("pay:1")
        ])
      }))

    it("an answer in time counts in another process, one that comes too late is ApprovalExpired", (office) =>
      Effect.gen(function* () {
        const { here, life, ran, requests } = office
        const replies = task([["mail", { to: "bob" }]], "done")
        const inTime = life({ extra: asksUntil(Number.MAX_SAFE_INTEGER) })
        yield* inTime(Run.start(clerk, { runId: "early", task: replies }))
        yield* here(approve("t1.0", "early"))
        expect(yield* inTime(Run.resume(clerk, { runId: "early" }))).toMatchObject({ _tag: "Completed" })
        expect(ran()).toEqual(["mail:bob"])
        const late = { extra: asksUntil(1) }
        yield* life(late)(Run.start(clerk, { runId, task: replies }))
        const digest = yield* here(digestOf())
        expect(yield* here(told(answer(approved(digest))))).toBe("Fatal ApprovalExpired")
        // A fork has the same time to answer, and a sweep finds both.
        yield* here(Run.fork({ runId, id: "fork" }))
        const swept = yield* life(late)(Run.recover([clerk]))
        expect(swept.map(({ runId }) => runId).toSorted()).toEqual(["fork", runId])
        for (const id of ["fork", runId]) {
          expect(yield* here(Run.get(id))).toMatchObject({ status: "completed" })
          expect(yield* here(only("ToolCallCompleted", id))).toMatchObject([{ ending: "expired" }])
        }
        expect((yield* requests).at(-1)?.results).toEqual([
          { name: "mail", isFailure: true, result: { error: "Nobody answered in time; not executed." } }
        ])
        expect(ran()).toEqual(["mail:bob"])
        yield* here(expectValid(runId, "fork", "early"))
      }))
  })
