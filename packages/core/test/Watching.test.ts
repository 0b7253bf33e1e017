import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as PubSub from "effect/PubSub"
import * as Stream from "effect/Stream"
import { CheckpointStore } from "../src/CheckpointStore.ts"
import * as Run from "../src/Run.ts"
import { StoreUnavailable } from "../src/RunError.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"
import { begin, clerk, eventsOf, pass, told, world } from "./support/scenario.ts"

const { after, call, hang, text } = ScriptedModel

const runId = "r"
const start = Run.start(clerk, { runId, task: "go" })
const seqs = Stream.map(({ seq }: { readonly seq: number }) => seq)

describe("events", () => {
  const slow = [after("1 second", call("mail", { to: "bob" })), after("1 second", text("done"))]

  it.effect("RI-127 a consumer that lost its place goes on after the last seq and gets the end", () =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const model = yield* ScriptedModel.make(slow)
      const driving = yield* begin(process({ model })(start))
      const first = yield* here(Stream.runCollect(Stream.take(Run.events(runId), 3)))
      expect(first.map(({ seq }) => seq)).toEqual([1, 2, 3])
      yield* pass(3000)
      yield* Fiber.join(driving)
      const rest = yield* here(Stream.runCollect(Run.events(runId, { after: 3 })))
      const all = yield* here(eventsOf(runId))
      expect([...first, ...rest].map(({ event }) => event)).toEqual(all)
      expect(rest.at(-1)?.event._tag).toBe("RunFinished")
      expect(yield* here(Stream.runCollect(Run.events(runId, { after: all.length })))).toEqual([])
    })
  )

  it.effect("RI-127 a consumer in another process follows a running Run to its end, without gaps or doubles", () =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const model = yield* ScriptedModel.make(slow)
      const driving = yield* begin(process({ model })(start))
      const following = yield* begin(here(Stream.runCollect(seqs(Run.events(runId, { after: 2 })))))
      yield* pass(3000)
      yield* Fiber.join(driving)
      const last = (yield* here(Run.get(runId))).seq
      expect(yield* Fiber.join(following)).toEqual(Array.from({ length: last - 2 }, (_, i) => i + 3))
    })
  )

  it.effect("RI-127 without following it gives what is there", () =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const model = yield* ScriptedModel.make(slow)
      const driving = yield* begin(process({ model })(start))
      expect(yield* here(Stream.runCollect(seqs(Run.events(runId, { follow: false }))))).toEqual([1, 2, 3, 4])
      yield* Fiber.interrupt(driving)
    })
  )

  describe("of a store with `watch`", () => {
    type Watch = NonNullable<CheckpointStore["Service"]["watch"]>

    /** What a follower has seen at 1.1 s, when the first reply is committed, and 400 ms later, when it looks anyway. */
    const followed = (watching: (hints: PubSub.PubSub<string>) => Watch) =>
      Effect.gen(function* () {
        const { here, process, store } = yield* world
        const hints = yield* PubSub.unbounded<string>()
        const wrap = (store: CheckpointStore["Service"]): CheckpointStore["Service"] => ({
          ...store,
          append: (append) => Effect.tap(store.append(append), () => PubSub.publish(hints, append.runId))
        })
        const model = yield* ScriptedModel.make([after("1100 millis", call("mail", { to: "bob" })), hang])
        const driving = yield* begin(process({ model, wrap })(start))
        const seen: Array<number> = []
        const events = Stream.runForEach(seqs(Run.events(runId)), (seq) => Effect.sync(() => void seen.push(seq)))
        const watched = { ...store, watch: watching(hints) }
        const following = yield* begin(here(Effect.provideService(events, CheckpointStore, watched)))
        const before = seen.length
        yield* pass(1100)
        const atOnce = seen.length - before
        yield* pass(400)
        const later = seen.length - before
        yield* Fiber.interrupt(following)
        yield* Fiber.interrupt(driving)
        return { before, atOnce, later }
      })

    const told =
      (hints: PubSub.PubSub<string>): Watch =>
      (id) =>
        Stream.fromPubSub(hints).pipe(
          Stream.filter((changed) => changed === id),
          Stream.map(() => undefined)
        )

    it.effect("come as soon as it hints, and when it is time to look anyway if it does not", () =>
      Effect.gen(function* () {
        const woken = yield* followed(told)
        const polled = yield* followed(() => () => Stream.never)
        expect(woken.before).toBe(4)
        expect(woken.atOnce).toBeGreaterThan(1)
        expect(polled).toMatchObject({ before: 4, atOnce: 0, later: woken.atOnce })
      })
    )

    it.effect.each([
      ["fails", Stream.fail(new StoreUnavailable({ detail: "gone" }))],
      ["dies", Stream.die("a bug")],
      ["ends", Stream.empty]
    ] as const)("come by looking where its `watch` %s", ([, broken]) =>
      Effect.gen(function* () {
        const { atOnce, later } = yield* followed(() => () => broken)
        expect([atOnce, later]).toEqual([0, (yield* followed(told)).atOnce])
      })
    )
  })

  it.effect("of an unknown Run are RunNotFound", () =>
    Effect.gen(function* () {
      const { here } = yield* world
      expect(yield* here(told(Stream.runDrain(Run.events("nobody"))))).toBe("Fatal RunNotFound")
    })
  )
})
