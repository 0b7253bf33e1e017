import { describe, expect, it } from "@effect/vitest"
import { Run } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import { once } from "node:events"
import { join } from "node:path"
import type * as Job from "../src/Job.ts"
import * as Ledger from "../src/Ledger.ts"
import { patient } from "../src/Patient.ts"
import * as Person from "../src/Person.ts"
import * as Stores from "../src/Stores.ts"
import * as Subject from "../src/Subject.ts"
import * as Worker from "../src/Worker.ts"
import { backends, folder, isFull } from "./support.ts"

const soak = isFull ? "60 seconds" : "6 seconds"

describe("two workers that sweep, many Runs, and a SIGKILL every now and then", () => {
  it.live.each(backends.filter(({ available }) => available))(
    "$name: every Run is completed with the right answer, and every effect took place once",
    ({ name, open }) =>
      Effect.scoped(
        Effect.gen(function* () {
          const store = yield* open
          const ledger = join(yield* folder, "ledger")
          // Unsafe: a person answers for what is in doubt. Slow enough that most kills hit a Run that is driven.
          const job = { store, effect: "unsafe" as const, concurrency: 3, ledger, actMillis: 30 }
          const { kills, runs } = yield* Effect.provide(soaked(job), Stores.layer(store))
          const effects = Ledger.read(ledger)
          const seen = yield* Effect.forEach(runs, outcome).pipe(Effect.provide(Stores.layer(store)))
          const wrong = seen.filter(({ output }) => output !== Subject.answer())
          expect(wrong).toEqual([])
          const items = effects.map(({ item, key }) => `${key.split("/")[0]} ${item}`)
          expect(items.toSorted()).toEqual(
            runs.flatMap((id) => Subject.items.map((item) => `${id} ${item}`)).toSorted()
          )
          const recovered = seen.filter(({ attempts }) => attempts > 1).length
          expect(recovered).toBeGreaterThan(0)
          console.log(
            `soak on ${name}: ${runs.length} Runs, ${kills} kills, ${recovered} Runs recovered, ${effects.length} effects: each once`
          )
        })
      ),
    { timeout: 300_000 }
  )
})

/** How many Runs are open at once. */
const maxOpen = 20

/** What happens for the time of the soak; then one more worker finishes what is left, and ends when it is told to. */
const soaked = Effect.fnUntraced(function* (job: Job.Job) {
  let kills = 0
  const runs: Array<string> = []
  const killed = Effect.gen(function* () {
    const { child, life } = yield* ready(job)
    yield* Effect.sleep(yield* Random.nextIntBetween(300, 1_500))
    child.kill("SIGKILL")
    kills++
    expect((yield* Fiber.join(life)).errors).toBe("")
  }).pipe(Effect.forever)
  const open = (limit: number) => patient(Run.list({ status: ["accepted", "running", "waiting"], limit }))
  const user = Effect.gen(function* () {
    // A busy machine must not fall behind for ever.
    if ((yield* open(maxOpen)).length === maxOpen) return
    const runId = `soak-${runs.length}`
    yield* patient(Run.accept(Subject.agent(job), { runId, task: "go" }))
    runs.push(runId)
    // The end of the soak must not come between the two.
  }).pipe(Effect.uninterruptible, Effect.repeat(Schedule.spaced("200 millis")))
  const person = Effect.gen(function* () {
    for (const { runId } of yield* patient(Run.list({ waiting: "in-doubt" }))) yield* Person.answer({ ...job, runId })
  }).pipe(Effect.repeat(Schedule.spaced("100 millis")))
  const answering = yield* Effect.forkChild(person)
  // On a busy machine it takes longer until a kill has hit a Run that was driven.
  const recovered = Effect.map(patient(Run.list({ limit: 10_000 })), (all) => all.some(({ attempts }) => attempts > 1))
  const over = Effect.andThen(
    Effect.sleep(soak),
    Effect.repeat(recovered, { until: (some) => some, schedule: Schedule.spaced("500 millis") })
  )
  yield* Effect.all([killed, killed, user], { concurrency: "unbounded", discard: true }).pipe(Effect.raceFirst(over))
  const { child, life } = yield* ready(job)
  yield* open(1).pipe(
    Effect.repeat({ until: (left) => left.length === 0, schedule: Schedule.spaced("200 millis") }),
    Effect.raceFirst(Fiber.join(answering))
  )
  yield* Fiber.interrupt(answering)
  child.kill("SIGTERM")
  expect(yield* Fiber.join(life)).toMatchObject({ errors: "", signal: null })
  return { kills, runs }
})

/** A worker that has said that it is ready to sweep. */
const ready = Effect.fnUntraced(function* (job: Job.Job) {
  const child = Worker.start(job)
  const life = yield* Effect.forkChild(Worker.ended(child), { startImmediately: true })
  yield* Effect.promise(() => once(child.stdout ?? child, "data"))
  return { child, life }
})

/** What a Run ended with, and how many Attempts it took. */
const outcome = (runId: string) =>
  Effect.map(patient(Stream.runCollect(Run.events(runId))), (all) => {
    const end = all.flatMap(({ event }) => (event._tag === "RunFinished" ? [event.outcome] : []))[0]
    return {
      runId,
      output: end?._tag === "Completed" ? end.output : undefined,
      attempts: all.filter(({ event }) => event._tag === "AttemptStarted").length
    }
  })
