import { describe, expect, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as MemoryStore from "../src/MemoryStore.ts"
import type { AttemptInfo, Entry, Observer } from "../src/Observer.ts"
import * as Run from "../src/Run.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"
import {
  agentOf,
  during,
  eventsOf,
  handled,
  kinds,
  outcomeOf,
  plugged,
  ran,
  Readonly,
  storeLayer,
  stores,
  Work
} from "./support/tools.ts"

const { call, calls, text } = ScriptedModel

const ok = () => Effect.succeed("ok")

const observing = (...observers: ReadonlyArray<Observer>) => plugged({ name: "o", observers })

/** Keeps what it gets, and whether its scope is closed. */
const recorder = () => {
  const entries: Array<Entry> = []
  const infos: Array<AttemptInfo> = []
  const state = { closed: 0 }
  const observer: Observer = {
    name: "recorder",
    attempt: (info) =>
      Effect.gen(function* () {
        infos.push(info)
        yield* Effect.addFinalizer(() => Effect.sync(() => state.closed++))
        return (entry) => Effect.sync(() => entries.push(entry))
      })
  }
  return { entries, infos, observer, state }
}

/** The warnings that are logged meanwhile. */
const warnings = () => {
  const lines: Array<string> = []
  const logger = Logger.make<unknown, void>(({ logLevel, message }) => {
    if (logLevel === "Warn") lines.push(String(message))
  })
  return { lines, layer: Logger.layer([logger]) }
}

describe("Observer", () => {
  it.effect.each(stores)("gets every committed event once and in order, outside ones included, on %s", ([, make]) =>
    Effect.gen(function* () {
      const { entries, infos, observer, state } = recorder()
      const store = yield* make
      const handler = ({ n }: { readonly n?: number }) =>
        n === 0 ? Effect.provide(Run.send({ runId: "r", message: "hurry", id: "m" }), storeLayer(store)) : ok()
      const script = [calls([call("work", { n: 0 }), call("work", { n: 1 })]), call("work", {}), text("done")]
      const run = yield* ran({ handler, script, store, layer: observing(observer) })
      expect(outcomeOf(run)._tag).toBe("Completed")
      expect(kinds(run.events)).toContain("MessageReceived")
      expect(entries.map(({ event }) => event)).toEqual(run.events)
      expect(entries.map(({ seq }) => seq)).toEqual(run.events.map((_, index) => index + 1))
      expect(entries.map(({ epoch, event }) => (epoch === 0 ? event._tag : "")).join("")).toBe("MessageReceived")
      expect(infos).toEqual([{ runId: "r", agent: "worker", attempt: 1 }])
      expect(state.closed).toBe(1)
    })
  )

  it.effect("each Attempt calls it again and gives it what that Attempt commits", () =>
    Effect.gen(function* () {
      const { entries, infos, observer, state } = recorder()
      const agent = agentOf(Work.setNeedsApproval(true))
      const model = yield* ScriptedModel.make([call("work", {}), text("done")])
      const program = Effect.gen(function* () {
        yield* Run.start(agent, { runId: "r", task: "go" })
        const first = entries.length
        const [wait] = (yield* Run.get("r")).waiting
        const answer = { _tag: "Approve", digest: wait?.digest ?? "" } as const
        yield* Run.answer(agent, { runId: "r", callId: "t1.0", answer, by: "ann" })
        yield* Run.resume(agent, { runId: "r" })
        const events = yield* eventsOf()
        // The answer was given while nobody drove the Run.
        expect(events[first]?._tag).toBe("CallAnswered")
        expect(entries.map(({ event }) => event)).toEqual(events.filter((_, index) => index !== first))
        expect(infos.map(({ attempt }) => attempt)).toEqual([1, 2])
        expect(state.closed).toBe(2)
      })
      yield* Effect.provide(program, [model.layer, handled(ok), MemoryStore.layer, observing(observer)])
    })
  )

  const failing: ReadonlyArray<readonly [string, Observer["attempt"]]> = [
    ["dies when it is called", () => Effect.die(new Error("no exporter"))],
    ["dies with an event", () => Effect.succeed(() => Effect.die(new Error("no exporter")))],
    [
      "throws",
      () =>
        Effect.succeed(() => {
          throw new Error("no exporter")
        })
    ],
    ["interrupts itself", () => Effect.succeed(() => Effect.interrupt)],
    [
      "dies when its scope closes",
      () =>
        Effect.as(
          Effect.addFinalizer(() => Effect.die("late")),
          () => Effect.void
        )
    ]
  ]
  it.effect.each(failing)("one that %s is warned about; Run and other observers go on", ([, attempt]) =>
    Effect.gen(function* () {
      const { lines, layer } = warnings()
      const { entries, observer } = recorder()
      const observers = observing({ name: "bad", attempt }, observer)
      const run = yield* ran({ handler: ok, layer: Layer.merge(observers, layer) })
      expect(outcomeOf(run)._tag).toBe("Completed")
      expect(entries).toHaveLength(run.events.length)
      expect(lines).toEqual([expect.stringContaining("The observer bad failed")])
    })
  )

  const slow: ReadonlyArray<readonly [string, Observer["attempt"]]> = [
    ["takes an hour per event", () => Effect.succeed(() => Effect.sleep("1 hour"))],
    ["never ends", () => Effect.succeed(() => Effect.never)],
    ["never begins", () => Effect.never]
  ]
  it.effect.each(slow)(
    "one that %s delays nothing but the end, by a second, and its scope is closed after a minute",
    ([, attempt]) =>
      Effect.gen(function* () {
        const done: Array<number> = []
        const state = { closed: false }
        const bad: Observer = {
          name: "bad",
          attempt: (info) =>
            Effect.andThen(
              Effect.addFinalizer(() => Effect.sync(() => (state.closed = true))),
              attempt(info)
            )
        }
        const { entries, observer } = recorder()
        const handler = () => Effect.flatMap(Clock.currentTimeMillis, (now) => Effect.sync(() => done.push(now)))
        const script = [call("work", {}), call("work", {}), text("done")]
        const run = yield* ran({ handler, script, layer: observing(bad, observer), time: "1 minute" })
        expect(outcomeOf(run)._tag).toBe("Completed")
        expect(done).toEqual([0, 0])
        expect(run.events.at(-1)).toMatchObject({ _tag: "RunFinished", at: 0 })
        expect(yield* Clock.currentTimeMillis).toBeLessThanOrEqual(1250)
        expect(entries).toHaveLength(run.events.length)
        yield* TestClock.adjust("1 minute")
        expect(state.closed).toBe(true)
      })
  )

  it.effect("one whose process is busy gets the rest after the end of the Run", () =>
    Effect.gen(function* () {
      const got: Array<number> = []
      const late: Observer = {
        name: "late",
        attempt: () =>
          Effect.succeed(({ seq }) =>
            Effect.andThen(
              Effect.sleep("3 seconds"),
              Effect.sync(() => void got.push(seq))
            )
          )
      }
      const { layer, lines } = warnings()
      const run = yield* ran({ handler: ok, layer: Layer.merge(observing(late), layer), time: "1 minute" })
      expect(yield* Clock.currentTimeMillis).toBeLessThanOrEqual(1250)
      expect(got.length).toBeLessThan(run.events.length)
      yield* TestClock.adjust("50 seconds")
      expect(got).toHaveLength(run.events.length)
      expect(lines).toEqual([])
    })
  )

  it.effect("one that is more than 1,024 events behind loses some, with a warning; the others lose none", () =>
    Effect.gen(function* () {
      const { lines, layer } = warnings()
      const { entries, observer } = recorder()
      const turns = 360
      const script: ScriptedModel.Script = ({ number }) => (number < turns ? call("work", {}) : text("done"))
      const model = yield* ScriptedModel.make(script, { pairing: false }) // takes longer than all the rest
      const agent = agentOf(Readonly, { limits: { maxTurns: turns } })
      yield* agent.records
      const store = storeLayer(yield* MemoryStore.make)
      const bad: Observer = { name: "bad", attempt: () => Effect.succeed(() => Effect.never) }
      yield* Run.start(agent, { runId: "r", task: "go" }).pipe(
        Effect.provide([model.layer, handled(ok), store, layer, observing(bad, observer)]),
        during("10 seconds")
      )
      expect(entries.map(({ event }) => event)).toEqual(yield* Effect.provide(eventsOf(), store))
      // It holds one, and 1,024 wait.
      const lost = entries.length - 1025
      expect(lost).toBeGreaterThan(0)
      expect(lines.filter((line) => line.startsWith("The observer"))).toEqual([
        `The observer bad was too slow for ${lost} events of this attempt; the journal has them.`
      ])
    })
  )
})
