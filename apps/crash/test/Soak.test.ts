import { describe, expect, it } from "@effect/vitest"
import { Run } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schedule from "effect/Schedule"
import { once } from "node:events"
import { join } from "node:path"
import * as Ledger from "../src/Ledger.ts"
import * as Stores from "../src/Stores.ts"
import * as Subject from "../src/Subject.ts"
import * as Worker from "../src/Worker.ts"
import { backends, folder, isFull } from "./support.ts"

const soakMillis = isFull ? 60_000 : 6_000

describe("two workers that sweep, many Runs, and a SIGKILL every now and then", () => {
  it.live.each(backends.filter(({ available }) => available))(
    "$name: every Run is completed, and every effect took place as often as its class allows",
    ({ name, open }) =>
      Effect.scoped(
        Effect.gen(function* () {
          const store = yield* open
          // Idempotent: what is in doubt runs again by itself. How often it happens is counted under its key.
          // Slow enough that most kills hit one that runs.
          const ledger = join(yield* folder, "ledger")
          const job = { store, effect: "idempotent" as const, concurrency: 3, ledger, actMillis: 30 }
          const until = Date.now() + soakMillis
          let kills = 0
          const worker = Effect.gen(function* () {
            // On a busy machine the start alone may take that long.
            for (let lives = 0; lives < 2 || Date.now() < until; lives++) {
              const child = Worker.start(job)
              const life = yield* Effect.forkChild(Worker.ended(child), { startImmediately: true })
              yield* Effect.promise(() => once(child.stdout ?? child, "data"))
              yield* Effect.sleep(1_000 + Math.random() * 2_500)
              child.kill("SIGKILL")
              kills++
              expect((yield* Fiber.join(life)).errors).toBe("")
            }
          })
          const runs: Array<string> = []
          const user = Effect.gen(function* () {
            while (Date.now() < until) {
              const runId = `soak-${runs.length}`
              yield* Run.accept(Subject.agent(job), { runId, task: "go" })
              runs.push(runId)
              yield* Effect.sleep(isFull ? 150 : 200)
            }
          })
          yield* Effect.all([worker, worker, user], { concurrency: "unbounded", discard: true }).pipe(
            Effect.provide(Stores.layer(store))
          )
          // One more worker finishes what is left, and ends when it is told to.
          const last = Worker.start(job)
          const life = yield* Effect.forkChild(Worker.ended(last), { startImmediately: true })
          yield* Effect.promise(() => once(last.stdout ?? last, "data"))
          yield* Run.list({ status: ["accepted", "running", "waiting"] }).pipe(
            Effect.repeat({ until: (left) => left.length === 0, schedule: Schedule.spaced("200 millis") }),
            Effect.provide(Stores.layer(store))
          )
          last.kill("SIGTERM")
          expect(yield* Fiber.join(life)).toMatchObject({ errors: "", signal: null })
          const completed = yield* Run.list({ status: "completed", limit: 10_000 }).pipe(
            Effect.provide(Stores.layer(store))
          )
          expect(completed.map(({ runId }) => runId).toSorted()).toEqual(runs.toSorted())
          const recovered = completed.filter(({ attempts }) => attempts > 1).length
          expect(recovered).toBeGreaterThan(0)
          const effects = Ledger.read(job.ledger)
          const keys = new Set(effects.map(({ key }) => key))
          expect(keys.size).toBe(runs.length * Subject.items.length)
          console.log(
            `soak on ${name}: ${runs.length} Runs, ${kills} kills, ${recovered} Runs recovered, ${effects.length - keys.size} effects again under their key, none lost`
          )
        })
      ),
    { timeout: soakMillis * 2 + 180_000 }
  )
})
