import { expect, it } from "@effect/vitest"
import { CheckpointStore, Run } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import { once } from "node:events"
import { join } from "node:path"
import { describe } from "vitest"
import * as Ledger from "../src/Ledger.ts"
import * as Stores from "../src/Stores.ts"
import * as Subject from "../src/Subject.ts"
import * as Trace from "../src/Trace.ts"
import * as Worker from "../src/Worker.ts"
import { backends, folder } from "./support.ts"

/** Three leases of 10 s. */
const frozenMillis = 30_000

describe.concurrent("a process that is stopped for three leases and then goes on", () => {
  it.live.each(backends.filter(({ available }) => available))(
    "$name: the Run is taken over meanwhile, and its late write is refused",
    ({ open }) =>
      Effect.scoped(
        Effect.gen(function* () {
          const store = yield* open
          const runId = "frozen"
          const ledger = join(yield* folder, "ledger")
          const trace = `${ledger}.trace`
          const job = { store, runId, effect: "idempotent" as const, concurrency: 1, ledger, trace }
          const child = Worker.start({ ...job, freeze: true, actMillis: 5_000 })
          const end = yield* Effect.forkChild(Worker.ended(child), { startImmediately: true })
          const frozen = yield* Effect.forkChild(Effect.promise(() => once(child.stdout ?? child, "data")))
          yield* until(runId, (entry) => entry?.live === true).pipe(Effect.provide(Stores.layer(store)))
          // It asks for the Run while its owner is at work, and goes on asking.
          const rival = Worker.start(job)
          const taken = yield* Effect.forkChild(Worker.ended(rival), { startImmediately: true })
          yield* Fiber.join(frozen)
          const froze = Date.now()
          expect((yield* Fiber.join(taken)).output).toContain('"Completed"')
          expect(Trace.read(trace)).toContainEqual({ pid: rival.pid, what: "busy" })
          const events = Stream.runCollect(Run.events(runId)).pipe(Effect.provide(Stores.layer(store)))
          const written = yield* events
          yield* Effect.sleep(Math.max(0, frozenMillis - (Date.now() - froze)))
          child.kill("SIGCONT")
          const late = yield* Fiber.join(end)
          // It tried to write the result of its call, was refused, and then found the Run completed.
          expect(late).toMatchObject({ code: 0, errors: "" })
          const said: unknown = JSON.parse(late.output.trim().split("\n").at(-1) ?? "")
          expect(said).toMatchObject({ _tag: "Completed", output: Subject.answer() })
          expect(Trace.read(trace)).toContainEqual({ pid: child.pid, what: "fenced" })
          expect(yield* events).toEqual(written)
          // Nothing fences the world outside: who took over ran the call again, under the same key.
          const acted = Ledger.read(job.ledger).filter(({ item }) => item === "a")
          expect(acted).toHaveLength(2)
          expect(new Set(acted.map(({ key }) => key)).size).toBe(1)
          expect(Subject.items.every((item) => Ledger.read(job.ledger).some((one) => one.item === item))).toBe(true)
        })
      ),
    { timeout: 180_000 }
  )
})

const until = (runId: string, is: (entry: CheckpointStore.Entry | undefined) => boolean) =>
  CheckpointStore.CheckpointStore.use((store) => store.head(runId)).pipe(
    Effect.repeat({ until: is, schedule: Schedule.spaced("50 millis") })
  )
