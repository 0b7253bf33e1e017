import { readFileSync } from "node:fs"
import { expect, it } from "@effect/vitest"
import { CheckpointStore, MemoryStore, RunError } from "@waystone/core"
import { WrappedStore } from "@waystone/core/testing"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { bare } from "./support/blocks.ts"

const flaky = Effect.map(MemoryStore.make, (store) => {
  let count = 0
  return WrappedStore.make(store, (operation, name) =>
    Effect.suspend(() =>
      ++count % 3 === 0 ? Effect.fail(new RunError.StoreUnavailable({ detail: `no ${name} now` })) : operation
    )
  )
})
const layer = Layer.effect(CheckpointStore.CheckpointStore, flaky)

it.effect("a wrapped store fails where its wrapper says, and is the same store elsewhere", () =>
  Effect.gen(function* () {
    const store = yield* CheckpointStore.CheckpointStore
    const head = { status: "running", agent: "a", waiting: [], updatedAt: 1, body: "{}" }
    const append = { runId: "r", epoch: 0 as const, expectedSeq: 0, events: ["{}"], head }
    expect(yield* store.append(append)).toEqual({ _tag: "Committed" })
    expect(yield* store.head("r")).toMatchObject({ seq: 1 })
    expect(yield* Effect.flip(store.remove("r", 1))).toMatchObject({
      _tag: "StoreUnavailable",
      detail: "no remove now"
    })
    expect(yield* store.list({}, { limit: 10 })).toHaveLength(1)
  }).pipe(Effect.provide(layer))
)

it("every operation of a store is wrapped but `watch`", () => {
  const seen: Array<string> = []
  const store = Effect.runSync(MemoryStore.make)
  const wrapped = WrappedStore.make({ ...store, watch: () => expect.unreachable() }, (operation, name) => {
    seen.push(name)
    return operation
  })
  const lease = { owner: "o", ttlMillis: 1 }
  void wrapped.append({
    runId: "r",
    epoch: 0,
    expectedSeq: 0,
    events: [],
    head: { status: "", agent: "", waiting: [], updatedAt: 0, body: "" }
  })
  void [wrapped.read("r", { after: 0, limit: 1 }), wrapped.head("r"), wrapped.claim({ runId: "r", ...lease })]
  const held = { runId: "r", epoch: 1, owner: "o" }
  void [wrapped.renew({ ...held, ttlMillis: 1 }), wrapped.release(held)]
  void [wrapped.list({}, { limit: 1 }), wrapped.remove("r", 0)]
  expect(seen.toSorted()).toEqual(Object.keys(store).toSorted())
  expect(wrapped.watch).toBeUndefined()
})

it("its example is this code", () => {
  const source = readFileSync(new URL("../src/testing/WrappedStore.ts", import.meta.url), "utf8")
  const example = source.slice(source.indexOf("@example"), source.indexOf("@since")).split("\n").slice(1)
  const code = bare(example.map((line) => line.replace(/^ \* ?/, "")).join("\n"))
  expect(bare(readFileSync(new URL(import.meta.url), "utf8"))).toContain(code)
})
