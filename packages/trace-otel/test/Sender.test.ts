import { expect, it } from "@effect/vitest"
import { RunError } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import * as Exit from "effect/Exit"
import { ExportFailed } from "../src/ExportFailed.ts"
import type { FinishedSpan } from "../src/FinishedSpan.ts"
import { Held } from "../src/Held.ts"
import * as Sender from "../src/Sender.ts"

const spans = (runId: string, count: number): ReadonlyArray<FinishedSpan> =>
  Array.from({ length: count }, (_, n) => ({
    traceId: runId,
    spanId: `${runId}-${n}`,
    name: "chat",
    kind: "client",
    start: 0,
    end: 1,
    attributes: {},
    events: [],
    links: []
  }))

it.live("X1 what was refused in the middle is read from the journal, and each span is taken once", () =>
  Effect.gen(function* () {
    const sizes = { a: 700, b: 600, c: 3 }
    const taken: Array<string> = []
    const read: Array<string> = []
    let requests = 0
    const scope = yield* Scope.make()
    const held = new Held(10_000)
    const deliver = yield* Sender.make({
      held,
      patience: "30 seconds",
      send: (batch) => {
        requests++
        expect(batch.length).toBeLessThanOrEqual(512)
        if (requests === 2 || requests === 3) return Effect.fail(new ExportFailed({ detail: "503" }))
        taken.push(...batch.map(({ spanId }) => spanId))
        return Effect.void
      },
      read: ({ runId }) => {
        read.push(runId)
        return Effect.succeed(spans(runId, Object.entries(sizes).find(([name]) => name === runId)?.[1] ?? 0))
      }
    }).pipe(Scope.provide(scope))
    for (const [runId, count] of Object.entries(sizes)) {
      held.take(count)
      deliver({ runId, upTo: 1, spans: spans(runId, count) })
    }
    yield* Scope.close(scope, Exit.void)
    const all = Object.entries(sizes).flatMap(([runId, count]) => spans(runId, count).map(({ spanId }) => spanId))
    expect(taken.toSorted()).toEqual(all.toSorted())
    expect(read.length).toBeGreaterThan(0)
    expect(held.size).toBe(0)
  })
)

it.live("X2 a Run that is removed while others are refused takes nothing of theirs along", () =>
  Effect.gen(function* () {
    const taken: Array<string> = []
    let requests = 0
    let isRemoved = false
    const scope = yield* Scope.make()
    const deliver = yield* Sender.make({
      held: new Held(10_000),
      patience: "30 seconds",
      send: (batch) => {
        requests++
        if (requests === 2) {
          isRemoved = true
          return Effect.fail(new ExportFailed({ detail: "503" }))
        }
        taken.push(...batch.map(({ spanId }) => spanId))
        return Effect.void
      },
      read: ({ runId }) => Effect.succeed(isRemoved && runId === "a" ? [] : spans(runId, 400))
    }).pipe(Scope.provide(scope))
    for (const runId of ["a", "b", "c"]) deliver({ runId, upTo: 1, spans: undefined })
    yield* Scope.close(scope, Exit.void)
    const all = ["a", "b", "c"].flatMap((runId) => spans(runId, 400).map(({ spanId }) => spanId))
    expect(taken.toSorted()).toEqual(all.toSorted())
  })
)

it.live("X2 a Run that is damaged keeps nobody else's spans back", () =>
  Effect.gen(function* () {
    const taken: Array<string> = []
    const scope = yield* Scope.make()
    const deliver = yield* Sender.make({
      held: new Held(10_000),
      patience: "30 seconds",
      send: (batch) => Effect.sync(() => void taken.push(...batch.map(({ spanId }) => spanId))),
      read: ({ runId }) =>
        runId === "bad"
          ? Effect.fail(new RunError.CheckpointCorrupt({ runId, seq: 2, path: "$" }))
          : Effect.succeed(spans(runId, 2))
    }).pipe(Scope.provide(scope))
    for (const runId of ["a", "bad", "b"]) deliver({ runId, upTo: 1, spans: undefined })
    yield* Scope.close(scope, Exit.void)
    expect(taken).toEqual(["a-0", "a-1", "b-0", "b-1"])
  })
)

it.effect("what is too large for a back end goes in parts, and a span that is too large alone goes nowhere", () =>
  Effect.gen(function* () {
    const taken: Array<string> = []
    const send = (batch: ReadonlyArray<FinishedSpan>) =>
      Effect.suspend(() => {
        if (batch.length > 100 || batch.some(({ spanId }) => spanId === "a-7"))
          return Effect.fail(new ExportFailed({ detail: "too large", status: 413 }))
        taken.push(...batch.map(({ spanId }) => spanId))
        return Effect.void
      })
    yield* Sender.sendAll(send, spans("a", 600))
    const others = spans("a", 600).map(({ spanId }) => spanId)
    expect(taken).toEqual(others.filter((id) => id !== "a-7"))
    const away = () => Effect.fail(new ExportFailed({ detail: "away", status: 503 }))
    expect(yield* Effect.flip(Sender.sendAll(away, spans("a", 2)))).toMatchObject({ status: 503 })
  })
)
