import { afterAll, describe, expect, it } from "@effect/vitest"
import { type ChildProcess, fork } from "node:child_process"
import { once } from "node:events"
import * as Effect from "effect/Effect"
import type { Order } from "./support/child.ts"
import * as TestServer from "./support/server.ts"
import { created, eventually, head, ids, open } from "./support/stores.ts"

const shared = await TestServer.shared("the tests of checkpoint-redis with processes of their own")
const url = shared?.url ?? ""
const prefix = TestServer.freshPrefix()

afterAll(async () => {
  if (shared !== undefined) await TestServer.clean(shared, prefix)
  await shared?.stop()
})

const child = Effect.acquireRelease(
  Effect.promise(async () => {
    const started = fork(new URL("support/child.ts", import.meta.url), [url, prefix])
    await once(started, "message")
    return started
  }),
  (started) => Effect.sync(() => started.kill("SIGKILL"))
)

const obey = (process: ChildProcess, order: Order) =>
  Effect.promise<{ readonly _tag: string }>(async () => {
    const answer = once(process, "message")
    process.send(order)
    return (await answer)[0]
  })

describe.skipIf(shared === undefined)("processes", () => {
  it.live("RI-001 of two processes that append at once exactly one wins, 100 rounds", () =>
    Effect.gen(function* () {
      const [one, two] = yield* Effect.all([child, child], { concurrency: 2 })
      const store = yield* open(url, { prefix })
      for (let round = 0; round < 100; round++) {
        const append = (who: string) =>
          created("race", { expectedSeq: round, events: [`${round} ${who}`], head: head({ body: who }) })
        const results = yield* Effect.all(
          [obey(one, { _tag: "Append", append: append("one") }), obey(two, { _tag: "Append", append: append("two") })],
          { concurrency: 2 }
        )
        const winners = results.flatMap(({ _tag }, i) => (_tag === "Committed" ? [["one", "two"][i]] : []))
        expect(winners).toHaveLength(1)
        expect(results.filter(({ _tag }) => _tag === "Conflict")).toHaveLength(1)
        const [stored] = yield* store.read("race", { after: round, limit: 5 })
        expect(stored?.body).toBe(`${round} ${winners[0]}`)
        expect((yield* store.head("race"))?.body).toBe(winners[0])
      }
      expect(yield* store.read("race", { after: 0, limit: 200 })).toHaveLength(100)
    })
  )

  it.live("RI-001 of two processes that claim at once exactly one gets the Run, 100 rounds", () =>
    Effect.gen(function* () {
      const [one, two] = yield* Effect.all([child, child], { concurrency: 2 })
      const store = yield* open(url, { prefix })
      for (let round = 0; round < 100; round++) {
        const runId = `claimed-${round}`
        yield* store.append(created(runId))
        const results = yield* Effect.all(
          [obey(one, { _tag: "Claim", runId, owner: "one" }), obey(two, { _tag: "Claim", runId, owner: "two" })],
          { concurrency: 2 }
        )
        expect(results.map(({ _tag }) => _tag).toSorted()).toEqual(["Busy", "Claimed"])
        const owner = results[0]?._tag === "Claimed" ? "one" : "two"
        expect(yield* store.head(runId)).toMatchObject({ owner, epoch: 1, live: true })
      }
    })
  )

  it.live(
    "a writer that is killed in a stream of appends leaves whole appends, their head, and a Run that is found",
    () =>
      Effect.gen(function* () {
        for (let life = 0; life < 5; life++) {
          const writer = yield* child
          const [runId, session] = [`killed-${life}`, `session-${life}`]
          let told = -1
          writer.on("message", (message: { readonly round?: number }) => {
            told = message.round ?? told
          })
          writer.send({ _tag: "AppendForEver", runId, batch: 7, session } satisfies Order)
          yield* Effect.sleep(20 + life * 29)
          const dead = once(writer, "exit")
          writer.kill("SIGKILL")
          yield* Effect.promise(() => dead)
          const store = yield* open(url, { prefix })
          const events = yield* store.read(runId, { after: 0, limit: 100_000 })
          expect(events.length % 7).toBe(0)
          expect(events.length).toBeGreaterThanOrEqual((told + 1) * 7)
          expect(events.every(({ body, seq }, i) => seq === i + 1 && body === `${Math.floor(i / 7)}/${i % 7}`)).toBe(
            true
          )
          const entry = yield* store.head(runId)
          if (events.length === 0) continue
          expect([entry?.seq, entry?.body]).toEqual([events.length, `${events.length / 7 - 1}`])
          const found = yield* eventually(store.list({ session }, { limit: 10 }), (entries) => entries.length > 0)
          expect(ids(found)).toEqual([runId])
        }
      })
  )
})
