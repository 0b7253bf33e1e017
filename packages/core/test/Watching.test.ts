import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import * as Run from "../src/Run.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"
import { begin, clerk, eventsOf, pass, told, world } from "./support/scenario.ts"

const { after, call, text } = ScriptedModel

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

  it.effect("of an unknown Run are RunNotFound", () =>
    Effect.gen(function* () {
      const { here } = yield* world
      expect(yield* here(told(Stream.runDrain(Run.events("nobody"))))).toBe("Fatal RunNotFound")
    })
  )
})
