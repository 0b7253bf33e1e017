/** One measurement of durable steps in one process: `node durable-child.ts '<job>'` prints one line of JSON. */
import { CheckpointStore, MemoryStore } from "@waystone/core"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { cpuMs, type Figures } from "./rounds.ts"
import type { Script } from "./script.ts"
import { durableRun } from "./subjects/agent.ts"
import * as Redis from "./subjects/redis.ts"
import * as Sqlite from "./subjects/sqlite.ts"

/** `raw` is the driver alone, given what the loop appends. */
export type Job = { readonly steps: number; readonly raw: boolean } & (
  | { readonly store: "memory" }
  | { readonly store: "sqlite"; readonly durability: Sqlite.Durability }
  | { readonly store: "redis"; readonly url: string }
)

type Append = CheckpointStore.Append
type Store = CheckpointStore.CheckpointStore["Service"]

/** The same store, with the time of its appends added up, and the appends kept if asked for. */
const watched = (store: Store, kept?: Array<Append>) => {
  const spent = { ms: 0, appends: 0 }
  const append: typeof store.append = (request) =>
    Effect.suspend(() => {
      kept?.push(request)
      const started = performance.now()
      return Effect.map(store.append(request), (result) => {
        spent.ms += performance.now() - started
        spent.appends++
        return result
      })
    })
  return { spent, store: { ...store, append } }
}

const timed = async (steps: number, work: () => Promise<void>): Promise<Figures> => {
  const before = cpuMs()
  const started = performance.now()
  await work()
  return { msPerStep: (performance.now() - started) / steps, cpuMsPerStep: (cpuMs() - before) / steps }
}

const warmUp = 20

/** Whole Runs on the store. */
const driven = async (store: Store, steps: number): Promise<Figures> => {
  const script: Script = { steps: warmUp, delayMs: 0 }
  const drive = (runId: string, on: Store) =>
    Effect.runPromise(Effect.provideService(durableRun(script, runId), CheckpointStore.CheckpointStore, on))
  await drive("warm-up", store)
  script.steps = steps
  const { spent, store: on } = watched(store)
  const figures = await timed(steps, () => drive("run", on))
  return { ...figures, storeMsPerStep: spent.ms / steps, appendsPerStep: spent.appends / steps }
}

/** What the loop appends over so many steps. */
const recorded = (steps: number, runId: string): Promise<ReadonlyArray<Append>> => {
  const kept: Array<Append> = []
  return Effect.runPromise(
    Effect.flatMap(MemoryStore.make, (store) =>
      Effect.provideService(
        durableRun({ steps, delayMs: 0 }, runId),
        CheckpointStore.CheckpointStore,
        watched(store, kept).store
      )
    ).pipe(Effect.as(kept))
  )
}

const rawly = async (append: (one: Append) => unknown, steps: number): Promise<Figures> => {
  const [before, appends] = [await recorded(warmUp, "warm-up"), await recorded(steps, "run")]
  for (const one of before) await append(one)
  return timed(steps, async () => {
    for (const one of appends) await append(one)
  })
}

const scoped = (make: Effect.Effect<Store, unknown, Scope.Scope>, steps: number): Promise<Figures> =>
  Effect.runPromise(Effect.scoped(Effect.flatMap(make, (store) => Effect.promise(() => driven(store, steps)))))

const job: Job = JSON.parse(process.argv[2] ?? "")

const measured = (): Promise<Figures> => {
  const { raw, steps } = job
  switch (job.store) {
    case "memory":
      return scoped(MemoryStore.make, steps)
    case "sqlite":
      return Sqlite.measured(job.durability, steps + warmUp, (file) =>
        raw
          ? Sqlite.withDriver(file, job.durability, (append) => rawly(append, steps))
          : scoped(Sqlite.store(file, job.durability), steps)
      )
    case "redis":
      return Redis.measured(job.url, steps + warmUp, (client) =>
        raw ? rawly(Redis.driver(client), steps) : scoped(Redis.store(job.url), steps)
      )
  }
}

const figures = await measured()
process.stdout.write(`${JSON.stringify(figures)}\n`, () => process.exit(0))
