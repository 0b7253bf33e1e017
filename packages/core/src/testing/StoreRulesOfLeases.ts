/**
 * The rules of the store suite about leases and epochs (C2 to C4).
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { type Capabilities, type Rule, head, rule, same } from "./StoreRules.ts"

const busy = (epoch: number, owner: string) => ({ _tag: "Busy", epoch, owner }) as const
const claimed = (epoch: number, seq: number, previous?: string) =>
  ({ _tag: "Claimed", epoch, seq, ...(previous === undefined ? undefined : { previous }) }) as const

/** CS20 to CS32. */
export const rules = (capabilities: Capabilities): ReadonlyArray<Rule> => [
  rule("CS20 a claim of an unknown Run gives epoch 1 and creates nothing", capabilities, (bench) =>
    Effect.gen(function* () {
      const { bodies, fresh, store, ttlMillis } = bench
      const runId = fresh("a")
      const request = { runId, owner: "o", ttlMillis }
      yield* same("the first claim", yield* store.claim(request), claimed(1, 0))
      yield* same("its head", yield* store.head(runId), undefined)
      yield* same("its events", yield* bodies(runId), [])
      yield* same("another claim", yield* store.claim({ ...request, owner: "p" }), claimed(1, 0))
      yield* same("a takeover", yield* store.claim({ ...request, takeover: 1 }), claimed(1, 0))
      yield* same("renewing it", yield* store.renew({ ...request, epoch: 1 }), false)
      yield* store.release({ runId, epoch: 1, owner: "o" })
      yield* same("its head", yield* store.head(runId), undefined)
    })
  ),
  rule("CS21 each claim raises the epoch (C3), and says how many events there are", capabilities, (bench) =>
    Effect.gen(function* () {
      const { append, fresh, store, ttlMillis } = bench
      const runId = fresh("a")
      yield* append({ runId, events: ["a", "b"] })
      for (let epoch = 1; epoch <= 5; epoch++) {
        yield* same("the claim", yield* store.claim({ runId, owner: `o${epoch}`, ttlMillis }), claimed(epoch, 2))
        yield* store.release({ runId, epoch, owner: `o${epoch}` })
      }
    })
  ),
  rule("CS22 a claim is Busy while another one's lease lasts, and changes nothing", capabilities, (bench) =>
    Effect.gen(function* () {
      const { append, fresh, store, ttlMillis } = bench
      const runId = fresh("a")
      yield* append({ runId })
      yield* store.claim({ runId, owner: "one", ttlMillis: ttlMillis * 100 })
      const before = yield* store.head(runId)
      yield* same("another claim", yield* store.claim({ runId, owner: "two", ttlMillis }), busy(1, "one"))
      yield* same("the same owner's", yield* store.claim({ runId, owner: "one", ttlMillis }), busy(1, "one"))
      yield* same("the head", yield* store.head(runId), before)
      yield* same(
        "the owner's append",
        (yield* append({ runId, epoch: 1, owner: "one", expectedSeq: 1 }))._tag,
        "Committed"
      )
    })
  ),
  rule("CS23 of 20 claims at once exactly one gets the Run", capabilities, ({ append, fresh, store, ttlMillis }) =>
    Effect.gen(function* () {
      for (let round = 0; round < 10; round++) {
        const runId = fresh(`a${round}`)
        yield* append({ runId })
        const lasting = { runId, ttlMillis: ttlMillis * 100 }
        const race = Array.from({ length: 20 }, (_, i) => store.claim({ ...lasting, owner: `o${i}` }))
        const results = yield* Effect.all(race, { concurrency: "unbounded" })
        const winners = results.flatMap((result, i) => (result._tag === "Claimed" ? [`o${i}`] : []))
        yield* same("winners", winners.length, 1)
        const entry = yield* store.head(runId)
        yield* same("the owner", [entry?.owner, entry?.epoch], [winners[0], 1])
      }
    })
  ),
  rule("CS24 a lease ends by the store's clock (C4); the next one learns who never let go", capabilities, (bench) =>
    Effect.gen(function* () {
      const { append, expire, fresh, store, shortMillis: ttlMillis } = bench
      const [created, taken] = [fresh("a"), fresh("b")]
      // The leases that are seen alive are long ones: a busy machine may take longer than the short ones last.
      for (const { runIds, ttl } of [
        { runIds: [created, taken], ttl: ttlMillis },
        { runIds: [fresh("c"), fresh("d")], ttl: ttlMillis * 100 }
      ]) {
        const [first = "", second = ""] = runIds
        yield* append({ runId: first, epoch: 1, lease: { owner: "one", ttlMillis: ttl } })
        yield* append({ runId: second })
        yield* store.claim({ runId: second, owner: "one", ttlMillis: ttl })
      }
      yield* expire
      for (const runId of [fresh("c"), fresh("d")]) {
        yield* same("its lease", (yield* store.head(runId))?.live, true)
      }
      for (const runId of [created, taken]) {
        const entry = yield* store.head(runId)
        yield* same("its lease is over", [entry?.live, entry?.owner, entry?.epoch], [false, "one", 1])
        yield* same("a claim", yield* store.claim({ runId, owner: "two", ttlMillis }), claimed(2, 1, "one"))
      }
    })
  ),
  rule("CS25 the owner of a lease that is over can write until another one claims", capabilities, (bench) =>
    Effect.gen(function* () {
      const { append, expire, fresh, store, shortMillis: ttlMillis } = bench
      const runId = fresh("a")
      yield* append({ runId, epoch: 1, lease: { owner: "one", ttlMillis } })
      yield* expire
      yield* same("its append", (yield* append({ runId, epoch: 1, owner: "one", expectedSeq: 1 }))._tag, "Committed")
      yield* same("renewing", yield* store.renew({ runId, epoch: 1, owner: "one", ttlMillis: ttlMillis * 100 }), true)
      yield* same("its lease", (yield* store.head(runId))?.live, true)
      yield* same("a claim", yield* store.claim({ runId, owner: "two", ttlMillis }), busy(1, "one"))
    })
  ),
  rule("CS26 renewing keeps a lease alive", capabilities, (bench) =>
    Effect.gen(function* () {
      const { advance, append, fresh, store, shortMillis: ttlMillis } = bench
      const runId = fresh("a")
      yield* append({ runId, epoch: 1, lease: { owner: "one", ttlMillis } })
      yield* advance(ttlMillis / 3)
      yield* same("renewing", yield* store.renew({ runId, epoch: 1, owner: "one", ttlMillis: ttlMillis * 100 }), true)
      yield* advance(ttlMillis)
      yield* same("a claim", yield* store.claim({ runId, owner: "two", ttlMillis }), busy(1, "one"))
    })
  ),
  rule("CS27 a takeover takes the lease of a live owner whose epoch is still that one", capabilities, (bench) =>
    Effect.gen(function* () {
      const { append, fresh, store, ttlMillis } = bench
      const runId = fresh("a")
      const longest = ttlMillis * 100
      yield* append({ runId, epoch: 1, lease: { owner: "one", ttlMillis: longest } })
      const claim = (owner: string, takeover: number) => store.claim({ runId, owner, ttlMillis: longest, takeover })
      yield* same("with another epoch", yield* claim("two", 2), busy(1, "one"))
      yield* same("with an older one", yield* claim("two", 0), busy(1, "one"))
      yield* same("with its epoch", yield* claim("two", 1), claimed(2, 1, "one"))
      yield* same("a second one with that epoch", yield* claim("three", 1), busy(2, "two"))
    })
  ),
  rule("CS28 a superseded owner can neither append nor renew nor release", capabilities, (bench) =>
    Effect.gen(function* () {
      const { append, bodies, fresh, store, ttlMillis } = bench
      const runId = fresh("a")
      yield* append({ runId, epoch: 1, lease: { owner: "one", ttlMillis }, events: ["a"] })
      yield* store.claim({ runId, owner: "two", ttlMillis: ttlMillis * 100, takeover: 1 })
      yield* same("its append", yield* append({ runId, epoch: 1, owner: "one", expectedSeq: 1 }), { _tag: "Fenced" })
      yield* same("renewing", yield* store.renew({ runId, epoch: 1, owner: "one", ttlMillis: 1 }), false)
      yield* store.release({ runId, epoch: 1, owner: "one" })
      const entry = yield* store.head(runId)
      yield* same("the owner", [entry?.owner, entry?.epoch, entry?.live], ["two", 2, true])
      yield* same("the events", yield* bodies(runId), ["a"])
    })
  ),
  rule("CS29 a released Run can be claimed at once, and nobody is named as its last owner", capabilities, (bench) =>
    Effect.gen(function* () {
      const { append, fresh, store, ttlMillis } = bench
      const runId = fresh("a")
      yield* append({ runId, epoch: 1, lease: { owner: "one", ttlMillis: ttlMillis * 100 } })
      yield* store.release({ runId, epoch: 1, owner: "one" })
      const entry = yield* store.head(runId)
      yield* same("the owner", [entry?.owner, entry?.live, entry?.epoch], [undefined, false, 1])
      yield* same("a claim", yield* store.claim({ runId, owner: "two", ttlMillis }), claimed(2, 1))
      yield* same("the late one's append", yield* append({ runId, epoch: 1, owner: "one", expectedSeq: 1 }), {
        _tag: "Fenced"
      })
    })
  ),
  rule("CS30 an accepted Run has epoch 0 and its first claim gives 1", capabilities, (bench) =>
    Effect.gen(function* () {
      const { append, fresh, store, ttlMillis } = bench
      const runId = fresh("a")
      yield* append({ runId })
      yield* same("the claim", yield* store.claim({ runId, owner: "one", ttlMillis }), claimed(1, 1))
      yield* same("its append", (yield* append({ runId, epoch: 1, owner: "one", expectedSeq: 1 }))._tag, "Committed")
    })
  ),
  rule("CS31 claims, renewals and releases change no event and no head", capabilities, (bench) =>
    Effect.gen(function* () {
      const { append, bodies, fresh, store, ttlMillis } = bench
      const runId = fresh("a")
      yield* append({ runId, events: ["a"] })
      const before = yield* store.head(runId)
      yield* store.claim({ runId, owner: "one", ttlMillis })
      yield* store.renew({ runId, epoch: 1, owner: "one", ttlMillis })
      yield* store.release({ runId, epoch: 1, owner: "one" })
      yield* same("its events", yield* bodies(runId), ["a"])
      yield* same("its head", yield* store.head(runId), before === undefined ? undefined : { ...before, epoch: 1 })
    })
  ),
  rule("CS32 leases and due Runs go by the store's clock (C4), however wrong the caller's is", capabilities, (bench) =>
    Effect.gen(function* () {
      const { append, expire, fresh, store, shortMillis: ttlMillis } = bench
      const now = yield* Clock.currentTimeMillis
      for (const [name, millis] of [
        ["ahead", year],
        ["behind", -year]
      ] as const) {
        const wrong = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
          Effect.updateService(effect, Clock.Clock, off(millis))
        const [created, agent] = [fresh(`c${name}`), fresh(`agent-${name}`)]
        const longest = ttlMillis * 100
        yield* wrong(append({ runId: created, epoch: 1, lease: { owner: "one", ttlMillis: longest } }))
        yield* same(`a lease of one that is ${name}`, (yield* store.head(created))?.live, true)
        yield* same(`as one that is ${name} sees it`, (yield* wrong(store.head(created)))?.live, true)
        const claim = (owner: string, ttlMillis: number) => store.claim({ runId: created, owner, ttlMillis })
        yield* same(`its claim`, yield* wrong(claim("two", ttlMillis)), busy(1, "one"))
        yield* wrong(store.renew({ runId: created, epoch: 1, owner: "one", ttlMillis }))
        yield* same("what it renewed", (yield* store.head(created))?.live, true)
        yield* expire
        yield* same("is over in time", (yield* wrong(store.head(created)))?.live, false)
        yield* same("and can be claimed", yield* wrong(claim("two", longest)), claimed(2, 1, "one"))
        yield* same("and is held", yield* claim("three", longest), busy(2, "two"))
        const waiting = { agent, status: "waiting", waiting: ["retry"] }
        yield* append({ runId: fresh(`p${name}`), head: head({ ...waiting, wakeAt: now - 60_000 }) })
        yield* append({ runId: fresh(`f${name}`), head: head({ ...waiting, wakeAt: now + year / 2 }) })
        const due = yield* wrong(store.list({ agent: [agent], due: true }, { limit: 10 }))
        yield* same(
          `what is due for one that is ${name}`,
          due.map(({ runId }) => runId),
          [fresh(`p${name}`)]
        )
      }
    })
  )
]

/** Ms. */
const year = 365 * 86_400_000

/** The same clock, that much off; it still sleeps as long as it should. */
const off =
  (millis: number) =>
  (clock: Clock.Clock): Clock.Clock => ({
    currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe() + millis,
    currentTimeMillis: Effect.map(clock.currentTimeMillis, (now) => now + millis),
    currentTimeNanosUnsafe: () => clock.currentTimeNanosUnsafe() + BigInt(millis) * 1_000_000n,
    currentTimeNanos: Effect.map(clock.currentTimeNanos, (now) => now + BigInt(millis) * 1_000_000n),
    monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe(),
    monotonicTimeNanos: clock.monotonicTimeNanos,
    sleep: (duration) => clock.sleep(duration)
  })
