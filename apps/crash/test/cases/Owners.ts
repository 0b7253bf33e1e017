import { describe, expect } from "@effect/vitest"
import { Agent, Run } from "@waystone/core"
import type { DyingStore } from "@waystone/core/testing"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import type { Backend } from "../durable/backends.ts"
import { Book, clerk, Look, task } from "../durable/Desk.ts"
import { answer, bodiesOf, eventsOf, expectValid, expire, on, only, tagsOf, told } from "../durable/looks.ts"
import { isFull } from "../support.ts"

const runId = "r"
const resume = { _tag: "Resume", runId } as const
const start = (...replies: Parameters<typeof task>) => ({ _tag: "Start", runId, task: task(...replies) }) as const
const books = task([["book", { seat: 1 }]], "done")
const busy = { _tag: "Retryable", reason: { _tag: "RunBusy" } }

export const owners = (backend: Backend) =>
  describe("owners in several processes", () => {
    const it = on(backend)

    it("RI-001 of two processes that start a Run at the same moment one drives it", (office) =>
      Effect.gen(function* () {
        const { here, keys, there } = office
        const ids = Array.from({ length: isFull ? 60 : 6 }, (_, i) => `r${i}`)
        for (const runId of ids) {
          const verb = { _tag: "Start", runId, task: task([["mail", { to: "bob" }]], "done") } as const
          const both = yield* Effect.all([there("A", verb), there("B", verb)], { concurrency: "unbounded" })
          const said = both.map(({ said }) => JSON.stringify(said))
          expect(said.some((one) => one.includes('"_tag":"Completed"'))).toBe(true)
          expect(said.filter((one) => !/"_tag":"(Completed|RunBusy)"/.test(one))).toEqual([])
          expect(yield* here(only("AttemptStarted", runId))).toHaveLength(1)
        }
        expect(keys()).toEqual(ids.map((runId) => `${runId}/t1.0`))
      }))

    it("RI-069 of twenty concurrent first starts one creates the Run, the others find it busy", ({ here, life }) =>
      Effect.gen(function* () {
        const gate = yield* Deferred.make<void>()
        const others = yield* Deferred.make<void>()
        let ended = 0
        const look = () => Effect.as(Deferred.await(gate), { seen: "1" })
        const begin = told(Run.start(clerk, start([["look", { at: 1 }]], "done")))
        const counted = Effect.tap(begin, () => (++ended === 19 ? Deferred.succeed(others, undefined) : Effect.void))
        const fibers = yield* Effect.forEach(Array.from({ length: 20 }), () =>
          Effect.forkChild(life({ handlers: { look } })(counted))
        )
        // The one that drives it cannot end before all of the others have.
        yield* Deferred.await(others)
        yield* Deferred.succeed(gate, undefined)
        const results = yield* Effect.forEach(fibers, Fiber.join)
        expect(results.toSorted()).toEqual(["Completed", ...Array<string>(19).fill("Retryable RunBusy")])
        const tags = yield* here(tagsOf())
        expect(tags.filter((tag) => tag === "RunAccepted" || tag === "AttemptStarted")).toHaveLength(2)
        expect(yield* here(Run.list())).toHaveLength(1)
      }))

    it("RI-167 an owner that stops renewing loses the Run, and what it writes later has no effect", (office) =>
      Effect.gen(function* () {
        const { here, life, there } = office
        const acts = yield* Deferred.make<void>()
        const wakes = yield* Deferred.make<void>()
        let frozen = false
        const frozenLife = life({
          wrap: (store) => ({
            ...store,
            renew: (request) => Effect.suspend(() => (frozen ? Effect.never : store.renew(request)))
          }),
          handlers: {
            book: () =>
              Effect.as(Effect.andThen(Deferred.succeed(acts, undefined), Deferred.await(wakes)), { booked: 1 })
          }
        })
        const fiber = yield* Effect.forkChild(
          frozenLife(told(Run.start(clerk, start([["book", { seat: 1 }]], "done"))))
        )
        yield* Deferred.await(acts)
        expect((yield* there("B", resume)).said).toMatchObject(busy)
        frozen = true
        yield* here(expire())
        expect((yield* there("B", resume)).said).toMatchObject({ _tag: "Completed" })
        const stored = yield* here(bodiesOf())
        yield* Deferred.succeed(wakes, undefined)
        expect(yield* Fiber.join(fiber)).toBe("Fatal OwnershipLost")
        expect(yield* here(bodiesOf())).toEqual(stored)
        const attempts = yield* here(only("AttemptStarted"))
        expect(attempts.map(({ recovered }) => recovered)).toEqual([false, true])
      }))

    it("RI-161 a Run that kills every worker is parked as failed after four; no other Run suffers", (office) =>
      Effect.gen(function* () {
        const { here, life, mortal, ran, there } = office
        yield* there("A", { _tag: "Start", runId: "other", task: task([["ask", { question: "?" }]], "fine") })
        yield* here(answer({ _tag: "Value", value: "go" }, "t1.0", "other"))
        const worker = (name: string) => mortal({ name, deadly: "book" })
        yield* (yield* worker("first")).untilDead(Run.start(clerk, { runId, task: books }))
        for (const name of ["second", "third", "fourth"]) {
          yield* (yield* worker(name)).untilDead(Run.recover([clerk], { concurrency: 1 }))
        }
        const swept = yield* life({})(Run.recover([clerk]))
        expect(swept.find((one) => one.runId === runId)).toMatchObject({
          _tag: "Failed",
          error: { _tag: "Fatal", reason: { _tag: "Poisoned", recoveries: 4 } }
        })
        expect(ran()).toEqual(Array(4).fill("book:1"))
        // It stays parked, in every process.
        expect((yield* there("B", { _tag: "Recover" })).said).toEqual([])
        expect((yield* there("B", resume)).said).toMatchObject({ _tag: "Fatal", reason: { _tag: "Poisoned" } })
        expect(yield* here(Run.get(runId))).toMatchObject({ status: "failed" })
        expect(yield* here(Run.get("other"))).toMatchObject({ status: "completed" })
        yield* here(expectValid(runId, "other"))
      }))

    const fates: ReadonlyArray<DyingStore.Fate> = ["die-before", "die-after"]
    for (const fate of fates) {
      it(`RI-046 a worker that is to ${fate} any append blocks neither its Run nor the one behind it`, (office) =>
        Effect.gen(function* () {
          const { here, keys, mortal, there } = office
          const places = [0, 1, 2, 3]
          for (const k of places) {
            const ids = [`first-${k}`, `second-${k}`]
            for (const runId of ids) yield* here(Run.accept(clerk, { runId, task: books }))
            let appends = 0
            const doomed = yield* mortal({ name: `doomed-${k}` }, () =>
              Effect.sync(() => (appends++ === k ? fate : "live"))
            )
            expect(yield* doomed.untilDead(Run.resume(clerk, { runId: `first-${k}` }))).toBe(true)
            // The other process does not know that it is dead: the lease must end.
            expect((yield* there("B", { _tag: "Recover" })).said).toEqual([])
            yield* here(expire(`first-${k}`))
            yield* there("B", { _tag: "Recover" })
            for (const { runId } of yield* here(Run.list({ status: "accepted" }))) {
              yield* there("B", { _tag: "Resume", runId })
            }
            for (const runId of ids) expect(yield* here(Run.get(runId))).toMatchObject({ status: "completed" })
            yield* here(expectValid(...ids))
          }
          // A lost turn keeps its number, so the call's may be a later one; each Run has booked under one key.
          expect(new Set(keys()).size).toBe(2 * places.length)
        }))
    }

    it("RI-045 who follows a Run sees every event once and one end, whoever drives it; so does who comes later", (office) =>
      Effect.gen(function* () {
        const { here, life, mortal, there } = office
        const dying = yield* mortal({ name: "dying", deadly: "book" })
        const replies = task([["look", { at: 1 }]], [["book", { seat: 1 }]], [["look", { at: 2 }]], "done")
        yield* here(Run.accept(clerk, { runId, task: replies }))
        const follow = Stream.runCollect(Run.events(runId))
        yield* dying.untilDead(Run.resume(clerk, { runId }))
        const follower = yield* Effect.forkChild(life({})(follow))
        yield* here(expire())
        yield* there("B", { _tag: "Recover" })
        const seen = yield* Fiber.join(follower)
        expect(seen.map(({ seq }) => seq)).toEqual(seen.map((_, i) => i + 1))
        expect(seen.filter(({ event }) => event._tag === "RunFinished")).toHaveLength(1)
        expect(yield* here(follow)).toEqual(seen)
        expect(seen.map(({ event }) => event)).toEqual(yield* here(eventsOf()))
      }))

    it("RI-032 a limit trips at the same step in however many processes the Run is driven", (office) =>
      Effect.gen(function* () {
        const { here, life, mortal } = office
        const limited = Agent.make("limited", {
          instructions: "Work.",
          tools: [Look, Book],
          limits: { maxConsecutiveFailures: 2, maxTurns: 4 }
        })
        const replies = task([["book", { seat: 1 }]])
        const whole = yield* life({})(Run.start(limited, { runId: "whole", task: replies }))
        expect(whole).toMatchObject({ _tag: "Stopped", reason: { _tag: "MaxTurns" }, turns: 4 })
        let lives = 0
        const live = Effect.gen(function* () {
          let appends = 0
          const one = yield* mortal({ name: `life-${++lives}` }, ({ events }) => {
            // Where a turn is lost it counts, so no life ends while the model answers.
            const asking = events.at(-1)?.includes('"TurnStarted"') === true
            return Effect.sync(() => (++appends >= 3 && !asking ? "die-after" : "live"))
          })
          return yield* one.untilDead(Run.start(limited, { runId, task: replies }))
        })
        yield* Effect.repeat(live, { while: (died) => died })
        expect(lives).toBeGreaterThan(3)
        expect(yield* life({})(Run.resume(limited, { runId }))).toMatchObject({
          _tag: "Stopped",
          reason: { _tag: "MaxTurns" },
          turns: 4
        })
        const turns = (runId: string) => Effect.map(here(only("TurnCompleted", runId)), (all) => all.length)
        expect(yield* turns(runId)).toBe(yield* turns("whole"))
      }))

    it("RI-088 a Run is announced when it is stored: left at its first event, another process goes on with it", (office) =>
      Effect.gen(function* () {
        const { here, keys, life, there } = office
        const announced = Run.stream(clerk, start([["book", { seat: 1 }]], "done")).pipe(
          Stream.takeUntil((update) => update._tag === "Committed"),
          Stream.runCollect
        )
        const updates = yield* life({})(announced)
        expect(updates.at(-1)).toMatchObject({ _tag: "Committed", seq: 1, event: { _tag: "RunAccepted" } })
        const before = (yield* office.requests).length
        const { requests, said } = yield* there("B", resume).pipe(
          Effect.repeat({
            while: ({ said }) => JSON.stringify(said).includes("RunBusy"),
            schedule: Schedule.spaced(20)
          })
        )
        expect(said).toMatchObject({ _tag: "Completed" })
        // A turn that was under way is asked again; an answered one is not.
        expect(before + requests.length).toBeLessThanOrEqual(3)
        expect(new Set(keys()).size).toBe(1)
        yield* here(expectValid(runId))
      }))
  })
