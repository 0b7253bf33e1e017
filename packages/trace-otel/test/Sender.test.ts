import { expect, it } from "@effect/vitest"
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
