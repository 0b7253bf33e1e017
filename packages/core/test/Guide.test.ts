import { mkdtempSync, rmSync } from "node:fs"
import { readFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "@effect/vitest"
import { CheckpointStore } from "@waystone/core"
import { CheckpointStoreSuite } from "@waystone/core/testing"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { TestClock } from "effect/testing"
import { bare, blocksOf, read, statementsOf } from "./support/blocks.ts"
import * as Guide from "./support/guide.ts"
import * as GuideSuite from "./support/guideSuite.ts"
import * as MyStore from "./support/guideStore.ts"

const guide = read("../../../docs/write-a-store.md")
/** The test's own files are called otherwise. */
const compiled = ["guide", "guideSuite", "guideChild"]
  .map((name) => bare(read(`support/${name}.ts`)).replace("guideChild.ts", "peer.ts"))
  .join("")
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
  damage: () => Effect.succeed(Effect.succeed("")),
  peer: Effect.die("not started"),
  watch: true
}

describe("docs/write-a-store.md", () => {
  it.each(blocks)("shows code that compiles: %s", (block) => {
    for (const statement of statementsOf(block)) expect(compiled).toContain(statement)
  })

  it("shows nine pieces of code, and no fenced one is left out above", () => {
    expect(guide.match(/^```\w+/gm)).toEqual(Array(9).fill("```ts"))
    expect(blocks).toHaveLength(9)
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

describe("a store after the guide in files, with what the guide says of capabilities", () => {
  const folder = mkdtempSync(join(tmpdir(), "waystone-guide-"))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  // Its clock is a real one.
  const { advance: _, ...capabilities } = GuideSuite.capabilities(folder)
  const looking = CheckpointStoreSuite.rules(capabilities).filter(({ name }) => /^CS(16|55|57)/.test(name))
  for (const { name, run } of looking) it.live(name, () => Effect.provide(run, MyStore.layer(folder)))
})

describe("a Run on a store after the guide, killed at every point", () => {
  GuideSuite.crash(Effect.map(backend, Guide.make))
})

describe("what the guide shows beside", () => {
  it.live("a peer obeys until it is killed", () =>
    Effect.gen(function* () {
      const peer = yield* Guide.peer(new URL("support/guideChild.ts", import.meta.url), [tmpdir()])
      const claim = { runId: "r", owner: "o", ttlMillis: 1000 }
      expect(yield* peer.ask({ _tag: "Claim", claim })).toEqual({ _tag: "Claimed", epoch: 1, seq: 0 })
      yield* peer.kill
    })
  )

  it.live("what the system refuses is StoreUnavailable, and a bug stays a defect", () =>
    Effect.gen(function* () {
      const nowhere = join(tmpdir(), "waystone-is-not-here")
      const failed = yield* Effect.flip(Guide.attempt("data", () => readFile(nowhere)))
      expect(failed).toMatchObject({ _tag: "StoreUnavailable", detail: expect.stringMatching(/^data: ENOENT/) })
      const bug = new TypeError("no function")
      for (const work of [() => Promise.reject(bug), () => Effect.runPromise(Effect.die(bug))]) {
        expect(yield* Effect.exit(Guide.attempt("data", work))).toEqual(Exit.die(bug))
      }
    })
  )

  it.effect("what is not as it should be is CheckpointCorrupt", () =>
    Effect.gen(function* () {
      const isText = (value: unknown): value is string => typeof value === "string"
      const read = (text: string) => Guide.parsed({ runId: "r", seq: 2, text }, isText)
      expect(yield* read('"a"')).toBe("a")
      expect(yield* Effect.flip(read("1"))).toMatchObject({ _tag: "CheckpointCorrupt", runId: "r", seq: 2, path: "$" })
      expect(yield* Effect.flip(read("{"))).toMatchObject({ path: "not JSON" })
    })
  )
})
