import { describe, expect, it } from "@effect/vitest"
import { CheckpointStore } from "@waystone/core"
import { CheckpointStoreSuite } from "@waystone/core/testing"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"
import { bare, blocksOf, read, statementsOf } from "./support/blocks.ts"
import * as Guide from "./support/guide.ts"
import * as GuideSuite from "./support/guideSuite.ts"

const guide = read("../../../docs/write-a-store.md")
const compiled = bare(read("support/guide.ts")) + bare(read("support/guideSuite.ts"))
const blocks = blocksOf(guide)
const capabilities = guide.slice(guide.indexOf("## 8."), guide.indexOf("## 9."))

/** The numbers in a text; `CS21 to CS24` are four. */
const numbersIn = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(/CS(\d\d)(?: to CS(\d\d))?/g)].flatMap(([, first, last = first]) =>
    Array.from(
      { length: Number(last) - Number(first) + 1 },
      (_, i) => `CS${String(Number(first) + i).padStart(2, "0")}`
    )
  )

/** A capability is only looked at, so any will do. */
const everything: CheckpointStoreSuite.Capabilities = {
  reopen: CheckpointStore.CheckpointStore.use(Effect.succeed),
  leftovers: () => Effect.succeed(0),
  peer: Effect.die("not started"),
  watch: true
}

describe("docs/write-a-store.md", () => {
  it.each(blocks)("shows code that compiles: %s", (block) => {
    for (const statement of statementsOf(block)) expect(compiled).toContain(statement)
  })

  it("shows eight blocks", () => {
    expect(blocks.length).toBe(8)
  })

  it("has every rule of the suite in the table of the contract, and no other", () => {
    const table = guide.slice(0, guide.indexOf("## 2."))
    const rules = CheckpointStoreSuite.rules(everything).map(({ name }) => name.slice(0, 4))
    expect([...new Set(numbersIn(table))].toSorted()).toEqual(rules)
    expect(numbersIn(guide).filter((number) => !rules.includes(number))).toEqual([])
  })

  it("says of each capability which rules it is for", () => {
    for (const { name, reason } of CheckpointStoreSuite.skipped()) {
      const capability = /"(\w+)"/.exec(reason)?.[1] ?? ""
      const row = capabilities.split("\n").find((line) => new RegExp(`^\\| \`${capability}\\b`).test(line)) ?? ""
      expect(numbersIn(row.split("|").at(-2) ?? "")).toContain(name.slice(0, 4))
    }
  })
})

/** What the guide leaves to its reader, in the simplest way: arrays, whose steps are synchronous. */
const backend = Effect.clockWith((clock) =>
  Effect.sync((): Guide.Backend => {
    const rows = new Map<string, Guide.Row>()
    const journals = new Map<string, Array<CheckpointStore.StoredEvent>>()
    return {
      change: (runId, decide) =>
        Effect.sync(() => {
          const { answer, events = [], row } = decide(rows.get(runId), clock.currentTimeMillisUnsafe())
          if (row !== undefined) rows.set(runId, row)
          if (events.length > 0) journals.set(runId, [...(journals.get(runId) ?? []), ...events])
          return answer
        }),
      events: (runId, { after, limit }) => Effect.sync(() => journals.get(runId)?.slice(after, after + limit) ?? []),
      rows: Effect.sync(() => ({ now: clock.currentTimeMillisUnsafe(), rows: [...rows] })),
      remove: (runId, expectedSeq) =>
        Effect.sync(() => {
          if (rows.get(runId)?.seq !== expectedSeq) return false
          journals.delete(runId)
          return rows.delete(runId)
        })
    }
  })
)

describe("a store after the guide", () => {
  CheckpointStoreSuite.register(it.effect, {
    layer: Guide.layer(backend),
    capabilities: { advance: (millis) => TestClock.adjust(millis) }
  })
})

describe("a store after the guide, proved as the guide says", () => {
  GuideSuite.prove(Guide.layer(backend), {})
})

describe("a store after the guide that loses answers", () => {
  GuideSuite.prove(GuideSuite.forgetful(Effect.map(backend, Guide.make)), {})
})

describe("what the guide shows beside", () => {
  it.live("a peer obeys until it is killed", () =>
    Effect.gen(function* () {
      const peer = yield* Guide.peer(new URL("support/guideChild.ts", import.meta.url), [])
      const claim = { runId: "r", owner: "o", ttlMillis: 1000 }
      expect(yield* peer.ask({ _tag: "Claim", claim })).toEqual({ _tag: "Claimed", epoch: 1, seq: 0 })
      yield* peer.kill
    })
  )

  it.effect("work that throws is StoreUnavailable, and what is not as it should be is CheckpointCorrupt", () =>
    Effect.gen(function* () {
      const failed = yield* Effect.flip(Guide.attempt("data", () => Promise.reject(new Error("no room"))))
      expect(failed).toMatchObject({ _tag: "StoreUnavailable", detail: "data: no room" })
      const isText = (value: unknown): value is string => typeof value === "string"
      const read = (text: string) => Guide.parsed({ runId: "r", seq: 2, text }, isText)
      expect(yield* read('"a"')).toBe("a")
      expect(yield* Effect.flip(read("1"))).toMatchObject({ _tag: "CheckpointCorrupt", runId: "r", seq: 2, path: "$" })
      expect(yield* Effect.flip(read("{"))).toMatchObject({ path: "not JSON" })
    })
  )
})
