/** Stores with one deliberate fault each, beside the number of the rule that must notice it. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as Stream from "effect/Stream"
import type {
  Append,
  AppendResult,
  CheckpointStore,
  Entry,
  Filter,
  HeadRow,
  Held,
  StoreError
} from "../../src/CheckpointStore.ts"

export type Store = CheckpointStore["Service"]
/** The operations that are wrong. */
type Wrong = (store: Store) => Partial<Store>
export type Fault = readonly [rule: string, does: string, wrong: Wrong]

const appends =
  (change: (append: Append) => Append): Wrong =>
  (store) => ({ append: (append) => store.append(change(append)) })

const bodies = (change: (body: string) => string): Wrong =>
  appends((append) => ({ ...append, events: append.events.map(change) }))

/** Changes the head of an append, knowing the one before. */
const heads =
  (change: (head: HeadRow, before: HeadRow | undefined) => HeadRow): Wrong =>
  (store) => ({
    append: (append) =>
      Effect.flatMap(store.head(append.runId), (before) =>
        store.append({ ...append, head: change(append.head, before) })
      )
  })

const filters =
  (change: (filter: Filter) => Filter): Wrong =>
  (store) => ({ list: (filter, page) => store.list(change(filter), page) })

const without = <A extends object, K extends keyof A>(value: A, key: K): Omit<A, K> => {
  const { [key]: _, ...rest } = value
  return rest
}

/** What whoever holds the Run now would say. */
const heldBy = (runId: string, head: Entry | undefined): Held => ({
  runId,
  epoch: head?.epoch ?? 0,
  owner: head?.owner ?? ""
})

/** One event after the other, in steps that others can come between. */
const piecemeal: Wrong = (store) => ({
  append: Effect.fnUntraced(function* (append: Append): Effect.fn.Return<AppendResult, StoreError> {
    for (const [i, body] of append.events.entries()) {
      const result = yield* store.append({ ...append, events: [body], expectedSeq: append.expectedSeq + i })
      if (result._tag !== "Committed") return result
      yield* Effect.yieldNow
    }
    return { _tag: "Committed" }
  })
})

/** Looks first and writes then. */
const racy: Wrong = (store) => ({
  append: Effect.fnUntraced(function* (append: Append): Effect.fn.Return<AppendResult, StoreError> {
    const seq = (yield* store.head(append.runId))?.seq ?? 0
    if (seq !== append.expectedSeq) return { _tag: "Conflict", seq }
    yield* Effect.yieldNow
    return yield* store.append({ ...append, expectedSeq: (yield* store.head(append.runId))?.seq ?? 0 })
  }),
  claim: (request) =>
    Effect.gen(function* () {
      const before = yield* store.head(request.runId)
      if (before?.owner !== undefined && before.live && request.takeover !== before.epoch) {
        return { _tag: "Busy", epoch: before.epoch, owner: before.owner }
      }
      yield* Effect.yieldNow
      const now = yield* store.head(request.runId)
      return yield* store.claim({ ...request, takeover: now?.epoch ?? 0 })
    })
})

/** Removes in two steps; who is killed between them leaves a head without events. */
const halfRemoved: Wrong = (store) => {
  const half = new Set<string>()
  return {
    read: (runId, range) => (half.has(runId) ? Effect.succeed([]) : store.read(runId, range)),
    remove: (runId, expectedSeq) =>
      Effect.gen(function* () {
        half.add(runId)
        yield* Effect.sleep(20)
        half.delete(runId)
        return yield* store.remove(runId, expectedSeq)
      })
  }
}

/** Lets a lease end by the caller's clock. */
const callersClock = (clock: Clock.Clock): Wrong => {
  const off = (ttlMillis: number) =>
    Effect.map(Clock.currentTimeMillis, (now) => ttlMillis + now - clock.currentTimeMillisUnsafe())
  return (store) => ({
    renew: (request) => Effect.flatMap(off(request.ttlMillis), (ttlMillis) => store.renew({ ...request, ttlMillis }))
  })
}

const listed =
  (keep: (filter: Filter, row: HeadRow) => boolean, drop: keyof Filter): Wrong =>
  (store) => ({
    list: (filter, page) =>
      Effect.map(store.list(without(filter, drop), page), (rows) => rows.filter((row) => keep(filter, row)))
  })

export const faults = (clock: Clock.Clock): ReadonlyArray<Fault> => [
  [
    "CS01",
    "makes an event up for an unknown Run",
    (store) => ({
      read: (runId, range) =>
        Effect.map(store.read(runId, range), (events) =>
          events.length > 0 ? events : [{ seq: 1, epoch: 0, body: "{}", ends: true }]
        )
    })
  ],
  ["CS02", "trims bodies", bodies((body) => body.trim())],
  ["CS02", "turns escapes into what they stand for", bodies((body) => body.replaceAll("\\n", "\n"))],
  ["CS02", "cuts a body at 64 KiB", bodies((body) => body.slice(0, 65_536))],
  [
    "CS02",
    "takes an empty body for none",
    appends((append) => ({ ...append, events: append.events.map((body) => body || "{}") }))
  ],
  ["CS03", "forgets the session", heads((head) => without(head, "session"))],
  [
    "CS03",
    "keeps the old parent",
    heads((head, before) => (before?.parent === undefined ? head : { ...head, parent: before.parent }))
  ],
  [
    "CS04",
    "takes every event for the owner's",
    (store) => ({
      read: (runId, range) =>
        Effect.map(store.read(runId, range), (events) => events.map((event) => ({ ...event, epoch: 1 })))
    })
  ],
  [
    "CS05",
    "takes every event for the end of an append",
    (store) => ({
      read: (runId, range) =>
        Effect.map(store.read(runId, range), (events) => events.map((event) => ({ ...event, ends: true })))
    })
  ],
  [
    "CS05",
    "takes the end of a page for the end of an append",
    (store) => ({
      read: (runId, range) =>
        Effect.map(store.read(runId, range), (events) =>
          events.map((event, i) => ({ ...event, ends: event.ends || i === events.length - 1 }))
        )
    })
  ],
  [
    "CS06",
    "says the asked seq in a Conflict",
    (store) => ({
      append: (append) =>
        Effect.map(store.append(append), (result) =>
          result._tag === "Conflict" ? { ...result, seq: append.expectedSeq } : result
        )
    })
  ],
  [
    "CS06",
    "takes any seq",
    (store) => ({
      append: (append) =>
        Effect.flatMap(store.head(append.runId), (head) => store.append({ ...append, expectedSeq: head?.seq ?? 0 }))
    })
  ],
  [
    "CS07",
    "does not look at the epoch",
    appends((append) => (append.expectedSeq === 0 ? append : { ...without(append, "owner"), epoch: 0 }))
  ],
  [
    "CS07",
    "looks at the epoch only",
    (store) => ({
      append: (append) =>
        Effect.flatMap(store.head(append.runId), (head) =>
          store.append(append.owner === undefined ? append : { ...append, owner: head?.owner ?? append.owner })
        )
    })
  ],
  [
    "CS08",
    "lets an outside append end the lease",
    (store) => ({
      append: (append) =>
        Effect.tap(store.append(append), () =>
          append.epoch === 0
            ? Effect.flatMap(store.head(append.runId), (head) => store.release(heldBy(append.runId, head)))
            : Effect.void
        )
    })
  ],
  ["CS09", "looks first and writes then", racy],
  ["CS10", "loses the last event of a batch", appends((append) => ({ ...append, events: append.events.slice(0, 4) }))],
  [
    "CS11",
    "creates a Run without its owner",
    appends((append) => (append.owner === undefined ? append : { ...without(append, "lease"), owner: append.owner }))
  ],
  [
    "CS12",
    "tells both who create a Run that they did",
    (store) => ({
      append: (append) =>
        Effect.map(store.append(append), (result) =>
          result._tag !== "Committed" && append.lease !== undefined ? { _tag: "Committed" as const } : result
        )
    })
  ],
  [
    "CS13",
    "does not tell big letters from small ones",
    (store) => ({
      append: (append) => store.append({ ...append, runId: append.runId.toLowerCase() }),
      read: (runId, range) => store.read(runId.toLowerCase(), range)
    })
  ],
  [
    "CS13",
    "cuts an id at 64 characters",
    (store) => ({ append: (append) => store.append({ ...append, runId: append.runId.slice(0, 64) }) })
  ],
  [
    "CS14",
    "never reads more than 10 events",
    (store) => ({ read: (runId, { after, limit }) => store.read(runId, { after, limit: Math.min(10, limit) }) })
  ],
  [
    "CS14",
    "begins a page one event late",
    (store) => ({ read: (runId, { after, limit }) => store.read(runId, { after: after === 0 ? 0 : after + 1, limit }) })
  ],
  [
    "CS15",
    "never reads more than 1,000 events",
    (store) => ({ read: (runId, { after, limit }) => store.read(runId, { after, limit: Math.min(1000, limit) }) })
  ],
  ["CS17", "makes one kind of line break of all", bodies((body) => body.replaceAll("\r\n", "\n"))],
  [
    "CS17",
    "stores one event a line",
    appends((append) => ({ ...append, events: append.events.join("\n").split("\n") }))
  ],
  ["CS17", "turns an escaped NUL into NUL", bodies((body) => body.replaceAll("\\u0000", "\0"))],
  [
    "CS18",
    "reads whole appends",
    (store) => ({
      read: (runId, { after, limit }) =>
        Effect.map(store.read(runId, { after, limit: 10_000 }), (events) => {
          const end = events.findIndex(({ ends }, i) => ends && i + 1 >= limit)
          return end === -1 ? events : events.slice(0, end + 1)
        })
    })
  ],
  [
    "CS18",
    "never reads more than 4 MiB",
    (store) => ({
      read: (runId, range) =>
        Effect.map(store.read(runId, range), (events) => {
          let size = 0
          return events.filter(({ body }) => (size += body.length) < 4 * 1024 * 1024)
        })
    })
  ],
  [
    "CS20",
    "creates a Run when it is claimed",
    (store) => ({
      claim: (request) =>
        Effect.tap(store.claim(request), ({ epoch, _tag }) =>
          _tag === "Claimed" && epoch === 1
            ? store.append({
                runId: request.runId,
                epoch: 1,
                owner: request.owner,
                expectedSeq: 0,
                events: ["{}"],
                lease: request,
                head: { status: "accepted", agent: "a", waiting: [], updatedAt: 0, body: "{}" }
              })
            : Effect.void
        )
    })
  ],
  [
    "CS21",
    "does not say how many events there are",
    (store) => ({
      claim: (request) =>
        Effect.map(store.claim(request), (result) => (result._tag === "Claimed" ? { ...result, seq: 0 } : result))
    })
  ],
  [
    "CS22",
    "lets the same owner claim again",
    (store) => ({
      claim: (request) =>
        Effect.flatMap(store.claim(request), (result) =>
          result._tag === "Busy" && result.owner === request.owner
            ? store.claim({ ...request, takeover: result.epoch })
            : Effect.succeed(result)
        )
    })
  ],
  ["CS23", "looks first and claims then", racy],
  [
    "CS24",
    "never lets a lease end",
    (store) => ({ claim: (request) => store.claim({ ...request, ttlMillis: request.ttlMillis * 1000 }) })
  ],
  [
    "CS24",
    "forgets who never let go",
    (store) => ({
      claim: (request) =>
        Effect.map(store.claim(request), (result) => (result._tag === "Claimed" ? without(result, "previous") : result))
    })
  ],
  [
    "CS25",
    "fences an owner whose lease is over",
    (store) => ({
      append: (append) =>
        Effect.flatMap(store.head(append.runId), (head) =>
          append.epoch !== 0 && head?.live === false
            ? Effect.succeed({ _tag: "Fenced" as const })
            : store.append(append)
        )
    })
  ],
  ["CS26", "renews nothing", () => ({ renew: () => Effect.succeed(true) })],
  ["CS27", "knows no takeover", (store) => ({ claim: (request) => store.claim(without(request, "takeover")) })],
  [
    "CS27",
    "takes any takeover",
    (store) => ({
      claim: (request) =>
        Effect.flatMap(store.head(request.runId), (head) =>
          store.claim(request.takeover === undefined ? request : { ...request, takeover: head?.epoch ?? 0 })
        )
    })
  ],
  [
    "CS28",
    "lets anybody release",
    (store) => ({
      release: ({ runId }) => Effect.flatMap(store.head(runId), (head) => store.release(heldBy(runId, head)))
    })
  ],
  [
    "CS28",
    "lets anybody renew",
    (store) => ({
      renew: (request) =>
        Effect.flatMap(store.head(request.runId), (head) => store.renew({ ...request, ...heldBy(request.runId, head) }))
    })
  ],
  ["CS29", "releases nothing", () => ({ release: () => Effect.void })],
  [
    "CS30",
    "begins at epoch 2",
    (store) => ({
      claim: (request) =>
        Effect.flatMap(store.claim(request), (result) =>
          result._tag === "Claimed" && result.epoch === 1
            ? store.claim({ ...request, takeover: 1 })
            : Effect.succeed(result)
        )
    })
  ],
  [
    "CS31",
    "writes an event when a lease is renewed",
    (store) => ({
      renew: (request) =>
        Effect.tap(store.renew(request), () =>
          Effect.flatMap(store.head(request.runId), (head) =>
            head === undefined
              ? Effect.void
              : store.append({ runId: request.runId, epoch: 0, expectedSeq: head.seq, events: ["renewed"], head })
          )
        )
    })
  ],
  ["CS32", "renews a lease by the caller's clock", callersClock(clock)],
  [
    "CS32",
    "knows what is due by the caller's clock",
    (store) => ({
      list: (filter, page) =>
        Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis
          const rows = yield* store.list(without(filter, "due"), page)
          return rows.filter(
            ({ status, wakeAt }) => !filter.due || status === "running" || (wakeAt !== undefined && wakeAt <= now)
          )
        })
    })
  ],
  [
    "CS40",
    "looks at the first status only",
    filters((filter) => (filter.status === undefined ? filter : { ...filter, status: filter.status.slice(0, 1) }))
  ],
  [
    "CS40",
    "takes no status for any",
    filters((filter) => (filter.status?.length === 0 ? without(filter, "status") : filter))
  ],
  [
    "CS41",
    "looks at the first agent only",
    filters((filter) => (filter.agent === undefined ? filter : { ...filter, agent: filter.agent.slice(0, 1) }))
  ],
  [
    "CS42",
    "takes a session that only begins so",
    listed(({ session }, row) => session === undefined || (row.session ?? "").startsWith(session), "session")
  ],
  [
    "CS43",
    "takes null for any parent",
    filters((filter) => (filter.parent === null ? without(filter, "parent") : filter))
  ],
  [
    "CS44",
    "takes part of a kind for it",
    listed(({ waiting = "" }, row) => row.waiting.join().includes(waiting), "waiting")
  ],
  [
    "CS44",
    "looks at the first wait only",
    listed(({ waiting }, row) => waiting === undefined || row.waiting[0] === waiting, "waiting")
  ],
  [
    "CS45",
    "counts the time itself as before",
    filters((filter) =>
      filter.updatedBefore === undefined ? filter : { ...filter, updatedBefore: filter.updatedBefore + 1 }
    )
  ],
  [
    "CS46",
    "looks at no waits where there is a session",
    filters((filter) => (filter.session === undefined ? filter : without(filter, "waiting")))
  ],
  [
    "CS47",
    "lists the newest first",
    (store) => ({ list: (filter, page) => Effect.map(store.list(filter, page), (rows) => rows.toReversed()) })
  ],
  [
    "CS47",
    "compares ids whatever their case",
    (store) => ({
      list: (filter, page) =>
        Effect.map(store.list(filter, page), (rows) =>
          rows.toSorted((a, b) => a.updatedAt - b.updatedAt || (a.runId.toLowerCase() < b.runId.toLowerCase() ? -1 : 1))
        )
    })
  ],
  [
    "CS48",
    "goes on after all of the same time",
    (store) => ({
      list: (filter, { after, limit }) =>
        store.list(filter, { limit, ...(after && { after: { ...after, runId: "~" } }) })
    })
  ],
  [
    "CS48",
    "gives short pages",
    (store) => ({ list: (filter, page) => store.list(filter, { ...page, limit: Math.ceil(page.limit / 2) }) })
  ],
  [
    "CS49",
    "knows no place after a Run that is gone",
    (store) => ({
      list: (filter, page) => {
        const { after } = page
        if (after === undefined) return store.list(filter, page)
        return Effect.flatMap(store.head(after.runId), (head) =>
          head === undefined ? Effect.succeed([]) : store.list(filter, page)
        )
      }
    })
  ],
  [
    "CS50",
    "lists no owners",
    (store) => ({
      list: (filter, page) => Effect.map(store.list(filter, page), (rows) => rows.map((row) => without(row, "owner")))
    })
  ],
  [
    "CS51",
    "looks at no wakeAt",
    filters((filter) => (filter.due ? { ...without(filter, "due"), status: ["running"] } : filter))
  ],
  [
    "CS51",
    "takes every wakeAt for due",
    listed(({ due }, row) => !due || row.status === "running" || row.wakeAt !== undefined, "due")
  ],
  [
    "CS52",
    "keeps the first session",
    heads((head, before) => (before?.session === undefined ? head : { ...head, session: before.session }))
  ],
  [
    "CS53",
    "removes a Run at any seq",
    (store) => ({ remove: (runId) => Effect.flatMap(store.head(runId), (head) => store.remove(runId, head?.seq ?? 0)) })
  ],
  ["CS53", "removes nothing", () => ({ remove: () => Effect.succeed(true) })],
  [
    "CS54",
    "lets no updatedAt go back",
    heads((head, before) => ({ ...head, updatedAt: Math.max(head.updatedAt, before?.updatedAt ?? 0) }))
  ],
  ["CS55", "only says that it removed", () => ({ remove: () => Effect.succeed(true) })],
  [
    "CS56",
    "looks first and removes then",
    (store) => ({
      remove: Effect.fnUntraced(function* (runId, expectedSeq) {
        if ((yield* store.head(runId))?.seq !== expectedSeq) return false
        yield* Effect.yieldNow
        return yield* store.remove(runId, (yield* store.head(runId))?.seq ?? 0)
      })
    })
  ],
  ["CS56", "lets a late append into the new Run", racy],
  [
    "CS57",
    "takes damage for an unknown Run",
    (store) => ({ head: (runId) => Effect.catchTag(store.head(runId), "CheckpointCorrupt", () => Effect.undefined) })
  ],
  [
    "CS57",
    "deletes what is damaged",
    (store) => ({
      head: (runId) =>
        Effect.catchTag(store.head(runId), "CheckpointCorrupt", (error) =>
          Effect.andThen(store.remove(runId, "damaged"), Effect.fail(error))
        )
    })
  ],
  [
    "CS57",
    "writes over what is damaged",
    (store) => ({
      head: (runId) =>
        Effect.catchTag(store.head(runId), "CheckpointCorrupt", (error) =>
          Effect.andThen(store.claim({ runId, owner: "repair", ttlMillis: 1 }), Effect.fail(error))
        )
    })
  ],
  [
    "CS57",
    "lists nothing while a Run is damaged",
    (store) => ({
      list: (filter, page) =>
        Effect.flatMap(store.list(filter, page), (rows) => {
          const [first] = rows
          const damaged = first?.runId.replace(/^./, "b") ?? ""
          return Effect.as(first?.runId.endsWith("-CS57") ? Effect.asVoid(store.head(damaged)) : Effect.void, rows)
        })
    })
  ],
  [
    "CS57",
    "leaves a damaged Run out and says nothing",
    (store) => ({ list: (filter, page) => Effect.provide(store.list(filter, page), Logger.layer([])) })
  ],
  [
    "CS57",
    "gives a short page where a Run is damaged",
    (store) => ({ list: (filter, { limit }) => store.list(filter, { limit: limit === 3 ? 2 : limit }) })
  ],
  [
    "CS58",
    "lets any owner of that epoch append",
    (store) => ({
      append: (append) =>
        Effect.flatMap(store.head(append.runId), (head) =>
          store.append(append.owner === undefined ? append : { ...append, owner: head?.owner ?? append.owner })
        )
    })
  ],
  [
    "CS58",
    "lets any owner of that epoch renew",
    (store) => ({
      renew: (request) =>
        Effect.flatMap(store.head(request.runId), (head) =>
          store.renew({ ...request, owner: head?.owner ?? request.owner })
        )
    })
  ],
  [
    "CS58",
    "lets any owner of that epoch release",
    (store) => ({
      release: (request) =>
        Effect.flatMap(store.head(request.runId), (head) =>
          store.release({ ...request, owner: head?.owner ?? request.owner })
        )
    })
  ],
  [
    "CS58",
    "lets anybody append to a Run that nobody holds",
    (store) => ({
      append: (append) =>
        Effect.flatMap(store.head(append.runId), (head) =>
          head !== undefined && head.owner === undefined && head.epoch === append.epoch
            ? store.append({ ...without(append, "owner"), epoch: 0 })
            : store.append(append)
        )
    })
  ],
  [
    "CS59",
    "removes no damaged Run",
    (store) => ({ remove: (runId, seq) => (seq === "damaged" ? Effect.succeed(false) : store.remove(runId, seq)) })
  ],
  [
    "CS59",
    "removes a sound Run as a damaged one",
    (store) => ({
      remove: (runId, seq) =>
        seq === "damaged"
          ? Effect.flatMap(
              Effect.orElseSucceed(store.head(runId), () => undefined),
              (head) => store.remove(runId, head === undefined ? seq : head.seq)
            )
          : store.remove(runId, seq)
    })
  ],
  ["CS60", "writes one event after the other", piecemeal],
  ["CS61", "looks first and writes then", racy],
  ["CS62", "looks first and claims then", racy],
  ["CS63", "writes one event after the other", piecemeal],
  ["CS64", "removes the events first and the head then", halfRemoved],
  ["CS70", "never hints", () => ({ watch: () => Stream.never })],
  [
    "CS70",
    "ends the watch of an unknown Run",
    (store) => ({
      watch: (runId) =>
        Stream.unwrap(
          Effect.map(store.head(runId), (head) => (head === undefined ? Stream.empty : Stream.make(undefined)))
        )
    })
  ]
]
