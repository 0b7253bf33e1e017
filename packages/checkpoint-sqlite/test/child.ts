/** One process of the tests of several: `child.ts <job> <file> …`, told what to do over IPC. */
import type { CheckpointStore } from "@waystone/core"
import { appendFileSync, openSync, writeSync } from "node:fs"
import { CheckpointStoreSuite } from "@waystone/core/testing"
import * as Effect from "effect/Effect"
import * as SqliteStore from "../src/SqliteStore.ts"
import { head } from "./support/files.ts"

export type Job = "open" | "obey" | "stream" | "start"

const [job, file = "", name = "", log = ""] = process.argv.slice(2)
const options = { file, durability: "process", busyTimeout: "5 seconds" } as const

const tell = (answer: object) => process.send?.(answer)

const told = <A, E extends { readonly _tag: string; readonly message: string }>(effect: Effect.Effect<A, E>) =>
  Effect.runPromise(
    Effect.match(effect, {
      onFailure: ({ _tag, message }): object => ({ failed: _tag, message }),
      onSuccess: (value): object => ({ value })
    })
  )

const one = (runId: string, expectedSeq: number, events: ReadonlyArray<string>): CheckpointStore.Append => ({
  runId,
  epoch: 0,
  expectedSeq,
  events,
  head: head({ body: events.at(-1) ?? "" })
})

/** Opens the file at the word, and stores a Run of its own name. */
const opening = () => {
  process.on("message", () => {
    const open = Effect.flatMap(SqliteStore.make(options), (store) => store.append(one(`run-${name}`, 0, [name])))
    void told(Effect.scoped(open)).then(tell)
  })
}

/** Does what the store suite orders. */
const obeying = async () => {
  const store = await held()
  process.on("message", (order: CheckpointStoreSuite.Order) => {
    void Effect.runPromise(CheckpointStoreSuite.obey(store, order)).then(tell)
  })
}

/** A store that lives as long as the process. */
const held = () =>
  new Promise<Effect.Success<ReturnType<typeof SqliteStore.make>>>((resolve) => {
    Effect.runFork(
      Effect.scoped(
        Effect.gen(function* () {
          resolve(yield* SqliteStore.make(options))
          return yield* Effect.never
        })
      )
    )
  })

/** Appends batches of five without end, and says after each that it is stored. */
const streaming = async () => {
  const store = await held()
  const acks = openSync(log, "a")
  process.on("message", () => {
    const batch = (seq: number) => Array.from({ length: 5 }, (_, i) => `${name} ${seq + i + 1} ${"x".repeat(400)}`)
    const go = (seq: number): Effect.Effect<void, unknown> =>
      Effect.gen(function* () {
        for (let at = seq; ; at += 5) {
          const result = yield* store.append(one(name, at, batch(at)))
          if (result._tag !== "Committed") return yield* Effect.die(result)
          writeSync(acks, `${at + 5}\n`)
          if (at % 50 === 0) yield* Effect.yieldNow
        }
      })
    Effect.runFork(go(0))
    tell({ streaming: true })
  })
}

/** Drives the Runs that it is told. */
const starting = async () => {
  const { starts } = await import("./support/counting.ts")
  const start = starts(options, (what) => appendFileSync(log, `${what}\n`))
  process.on("message", (word) => {
    const [runId = "", times = "1"] = String(word).split(" ")
    void start(runId, Number(times)).then((value) => tell({ value }))
  })
}

const jobs: { readonly [Name in Job]: () => void | Promise<void> } = {
  open: opening,
  obey: obeying,
  stream: streaming,
  start: starting
}

for (const [known, run] of Object.entries(jobs)) if (known === job) await run()
tell({ ready: true })
