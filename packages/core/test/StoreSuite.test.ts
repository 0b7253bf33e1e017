import { describe, expect, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as PubSub from "effect/PubSub"
import * as Stream from "effect/Stream"
import { TestClock } from "effect/testing"
import { CheckpointStore } from "../src/CheckpointStore.ts"
import * as MemoryStore from "../src/MemoryStore.ts"
import { CheckpointCorrupt } from "../src/RunError.ts"
import * as CheckpointStoreSuite from "../src/testing/CheckpointStoreSuite.ts"
import { faults, type Store } from "./support/faults.ts"

/** The same store, in which these Runs are damaged. */
const spoilt = (store: Store, damaged: Set<string>): Store => ({
  ...store,
  remove: (runId, expectedSeq) => {
    if (!damaged.has(runId)) return store.remove(runId, expectedSeq)
    if (expectedSeq !== "damaged") return Effect.fail(new CheckpointCorrupt({ runId, seq: 0, path: "head" }))
    damaged.delete(runId)
    return Effect.flatMap(store.head(runId), (entry) => store.remove(runId, entry?.seq ?? 0))
  },
  head: (runId) =>
    damaged.has(runId) ? Effect.fail(new CheckpointCorrupt({ runId, seq: 0, path: "head" })) : store.head(runId),
  list: (filter, page) =>
    Effect.tap(
      Effect.map(store.list(filter, { ...page, limit: page.limit + damaged.size }), (rows) =>
        rows.filter(({ runId }) => !damaged.has(runId)).slice(0, page.limit)
      ),
      () => (damaged.size === 0 ? Effect.void : Effect.logWarning(`left out: ${[...damaged].join(", ")}`))
    )
})

/** A store with everything that can be declared; `wrong` replaces what a fault breaks, `kept` looks behind it. */
const world = Effect.fnUntraced(function* (wrong: (store: Store) => Partial<Store> = () => ({})) {
  const kept = yield* MemoryStore.make
  const damaged = new Set<string>()
  const changed = yield* PubSub.unbounded<string>()
  const watched: Store = {
    ...kept,
    append: (append) => Effect.tap(kept.append(append), () => PubSub.publish(changed, append.runId)),
    watch: (runId) =>
      Stream.fromPubSub(changed).pipe(
        Stream.filter((changedId) => changedId === runId),
        Stream.map(() => undefined)
      )
  }
  const sound = spoilt(watched, damaged)
  const store = { ...sound, ...wrong(sound) }
  const capabilities: CheckpointStoreSuite.Capabilities = {
    advance: (millis) => TestClock.adjust(millis),
    reopen: CheckpointStore.use(Effect.succeed),
    leftovers: (runId) => Effect.map(kept.head(runId), (head) => (head === undefined ? 0 : 1)),
    damage: (runId) =>
      Effect.sync(() => {
        damaged.add(runId)
        return Effect.map(kept.head(runId), (head) => JSON.stringify(head) ?? "nothing")
      }),
    peer: CheckpointStore.use((store) =>
      Effect.succeed({ ask: (order) => CheckpointStoreSuite.obey(store, order), kill: Effect.void })
    ),
    watch: true
  }
  return { store, capabilities }
})

const numbered = (capabilities: CheckpointStoreSuite.Capabilities, number: string) =>
  CheckpointStoreSuite.rules(capabilities).find(({ name }) => name.startsWith(number))?.run ??
  Effect.die(new Error(`there is no rule ${number}`))

const all = CheckpointStoreSuite.rules(Effect.runSync(world()).capabilities).map(({ name }) => name)
/** Only to name the faults: each test has a clock of its own. */
const names = faults(Effect.runSync(Effect.clockWith(Effect.succeed<Clock.Clock>)))

describe("a sound store", () => {
  it.effect.each(all)("keeps %s", (name) =>
    Effect.gen(function* () {
      const { capabilities, store } = yield* world()
      yield* Effect.provideService(numbered(capabilities, name.slice(0, 4)), CheckpointStore, store)
    })
  )
})

describe("a rule can fail", () => {
  it.effect.each(names.map(([rule, does], i) => [rule, does, i] as const))(
    "%s fails for a store that %s",
    ([rule, , i]) =>
      Effect.gen(function* () {
        const [, , wrong] = (yield* Effect.clockWith((clock) => Effect.succeed(faults(clock))))[i] ?? []
        const { capabilities, store } = yield* world(wrong)
        const exit = yield* Effect.exit(Effect.provideService(numbered(capabilities, rule), CheckpointStore, store))
        const failed = Exit.isFailure(exit) ? exit.cause.reasons.find(Cause.isFailReason)?.error : "it passed"
        expect(failed).toBeInstanceOf(CheckpointStoreSuite.Broken)
      })
  )

  it.effect("CS16 fails for a store whose data another process does not find", () =>
    Effect.gen(function* () {
      const { capabilities, store } = yield* world()
      const rule = numbered({ ...capabilities, reopen: MemoryStore.make }, "CS16")
      const failed = yield* Effect.flip(Effect.provideService(rule, CheckpointStore, store))
      expect(failed).toBeInstanceOf(CheckpointStoreSuite.Broken)
    })
  )

  it("every rule has a fault that it notices", () => {
    const known = new Set([...names.map(([rule]) => rule), "CS16"])
    expect([...known].toSorted()).toEqual(all.map((name) => name.slice(0, 4)))
  })
})

describe("the suite", () => {
  it("has a number for each rule, and no number twice", () => {
    const numbers = all.map((name) => /^CS\d\d(?= )/.exec(name)?.[0])
    expect(numbers).not.toContain(undefined)
    expect(new Set(numbers).size).toBe(all.length)
  })

  it("without capabilities skips the rules that need one, and says which it is", () => {
    const skipped = CheckpointStoreSuite.skipped()
    expect(skipped.map(({ name, reason }) => [name.slice(0, 4), /"(\w+)"/.exec(reason)?.[1]])).toEqual([
      ["CS16", "reopen"],
      ["CS55", "leftovers"],
      ["CS57", "damage"],
      ["CS59", "damage"],
      ["CS61", "peer"],
      ["CS62", "peer"],
      ["CS63", "peer"],
      ["CS64", "peer"],
      ["CS70", "watch"]
    ])
    const tried = CheckpointStoreSuite.rules().map(({ name }) => name)
    expect([...tried, ...skipped.map(({ name }) => name)].toSorted()).toEqual(all)
  })

  it("registers one test per rule, and one per skipped rule whose name has the reason", () => {
    const tests: Array<string> = []
    const skips: Array<string> = []
    const framework = Object.assign((name: string) => void tests.push(name), {
      skip: (name: string) => void skips.push(name)
    })
    CheckpointStoreSuite.register(framework, { layer: MemoryStore.layer, capabilities: { watch: true } })
    expect(tests).toEqual(CheckpointStoreSuite.rules({ watch: true }).map(({ name }) => name))
    expect(skips).toHaveLength(all.length - tests.length)
    for (const name of skips) expect(name).toMatch(/^CS\d\d .*: skipped, no capability "\w+" was given/)
  })
})
