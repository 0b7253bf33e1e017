/**
 * What the rules of the store suite are made of: capabilities, fresh ids, appends whose answers may be lost, assertions.
 *
 * @since 0.1.0
 */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import {
  type Append,
  type AppendResult,
  CheckpointStore,
  type HeadRow,
  type StoreError,
  type Written
} from "../CheckpointStore.ts"
import type { Peer } from "./StorePeer.ts"

/** What a backend can do beyond the contract, and what the suite needs to look behind it. All of it is optional. */
export interface Capabilities {
  /** Moves the store's clock on, e.g. `TestClock.adjust` for a store that uses Effect's. Default: really waits. */
  readonly advance?: (millis: number) => Effect.Effect<void>
  /** Another instance over the data of the store in the context, as a new process opens it. A durable store has this. */
  readonly reopen?: Effect.Effect<CheckpointStore["Service"], unknown, CheckpointStore | Scope.Scope>
  /**
   * How many things (rows, keys, files, index entries) the backend keeps for a Run, looked up behind the store's back. Things
   * that belong to no Run at all count for each.
   */
  readonly leftovers?: (runId: string) => Effect.Effect<number, unknown, CheckpointStore>
  /**
   * Spoils what is stored of a Run behind the store's back, so that its head cannot be read. Gives an effect that shows those
   * bytes as they are at that time.
   */
  readonly damage?: (runId: string) => Effect.Effect<Effect.Effect<string, unknown>, unknown, CheckpointStore>
  /** Starts a process of its own over the data of the store in the context; it ends with the scope. */
  readonly peer?: Effect.Effect<Peer, unknown, CheckpointStore | Scope.Scope>
  /** The store has `watch`. */
  readonly watch?: true
}

/** One rule. Its name begins with its number, which never changes: `CS01`. */
export interface Rule {
  readonly _tag: "Rule"
  readonly name: string
  readonly run: Effect.Effect<void, unknown, CheckpointStore>
}

/** A rule that is not tried, and why. */
export interface Skipped {
  readonly _tag: "Skipped"
  readonly name: string
  readonly reason: string
}

/** A rule is broken. */
export class Broken extends Data.TaggedError("Broken")<{ readonly message: string }> {}

/** What a rule says of an append: the rest is as good as any. Without an `owner` an epoch is that of the lease's. */
export interface Appending extends Partial<Written> {
  readonly runId: string
  readonly epoch?: number
  readonly owner?: string
}

/** What a rule works with. */
export interface Bench {
  readonly store: CheckpointStore["Service"]
  /** An id, agent or session that no other rule uses. */
  readonly fresh: (name: string) => string
  /** A time to live that lasts longer than a rule. */
  readonly ttlMillis: number
  /** A shorter one, and a wait that is surely longer. */
  readonly shortMillis: number
  readonly expire: Effect.Effect<void>
  readonly advance: (millis: number) => Effect.Effect<void>
  /** Appends, whoever may lose the answer. */
  readonly append: (append: Appending) => Effect.Effect<AppendResult, StoreError>
  /** All of the Run. */
  readonly bodies: (runId: string) => Effect.Effect<ReadonlyArray<string>, StoreError>
}

/** What a rule does; it fails with `Broken` where the store breaks it. */
type Run<Args extends ReadonlyArray<unknown> = []> = (
  bench: Bench,
  ...given: Args
) => Effect.Effect<void, unknown, CheckpointStore | Scope.Scope>

/** A rule of the suite. */
export const rule = (name: string, capabilities: Capabilities, run: Run): Rule => ({
  _tag: "Rule",
  name,
  run: Effect.scoped(Effect.flatMap(CheckpointStore, (store) => run(bench(store, { name, capabilities }))))
})

/** What a missing capability would be good for. */
const wanted = {
  reopen: "how another process opens what the store has kept; a durable store has it",
  leftovers: "how many things the backend keeps for a Run, looked up behind the store's back",
  damage: "how to spoil the stored head of a Run behind the store's back; a durable store has it",
  peer: "how to start a process of its own over the same data; a store that processes share has it",
  watch: "that the store has `watch`"
} as const

/** A rule that needs a capability; it is skipped where that is not given. */
export const needing = <Name extends keyof typeof wanted>(
  name: string,
  need: Name,
  capabilities: Capabilities,
  run: Run<[NonNullable<Capabilities[Name]>]>
): Rule | Skipped => {
  const given = capabilities[need]
  return given === undefined
    ? { _tag: "Skipped", name, reason: `no capability "${need}" was given (${wanted[need]})` }
    : rule(name, capabilities, (bench) => run(bench, given))
}

/** Without the time of day, so that heads can be compared. */
export const timeless = (store: CheckpointStore["Service"]): CheckpointStore["Service"] => ({
  ...store,
  head: (runId) =>
    Effect.map(store.head(runId), (entry) => {
      if (entry === undefined) return undefined
      const { now: _, ...rest } = entry
      return rest
    })
})

const bench = (
  given: CheckpointStore["Service"],
  { capabilities, name }: { readonly name: string; readonly capabilities: Capabilities }
): Bench => {
  const { advance = Effect.sleep } = capabilities
  const store = timeless(given)
  const own = `${Math.random().toString(36).slice(2, 12)}-${name.slice(0, 4)}`
  // In real time long enough for a busy machine to get there before it ends.
  const shortMillis = capabilities.advance === undefined ? 1000 : 10_000
  return {
    store,
    fresh: (name) => `${name}-${own}`,
    ttlMillis: 100_000,
    shortMillis,
    expire: advance(shortMillis + 100),
    advance,
    append: (append) => settled(store, whole(append)),
    bodies: (runId) =>
      Effect.map(store.read(runId, { after: 0, limit: 10_000 }), (events) => events.map(({ body }) => body))
  }
}

/** A head. */
export const head = (fields: Partial<HeadRow> = {}): HeadRow => ({
  status: "running",
  agent: "suite",
  waiting: [],
  updatedAt: 1,
  body: "{}",
  ...fields
})

const whole = ({ epoch = 0, owner, ...append }: Appending): Append => ({
  expectedSeq: 0,
  events: ["{}"],
  head: head(),
  ...append,
  ...(epoch === 0 ? { epoch } : { epoch, owner: owner ?? append.lease?.owner ?? "" })
})

/** Repeats an append whose answer was lost; a conflict then may be with itself. */
const settled = (store: CheckpointStore["Service"], append: Append): Effect.Effect<AppendResult, StoreError> =>
  Effect.catchTag(store.append(append), "StoreUnavailable", () =>
    Effect.gen(function* () {
      const result = yield* settled(store, append)
      if (result._tag !== "Conflict") return result
      const { epoch, events, expectedSeq, runId } = append
      const stored = yield* store.read(runId, { after: expectedSeq, limit: events.length })
      const ours =
        stored.length === events.length && stored.every((one, i) => one.body === events[i] && one.epoch === epoch)
      return ours ? { _tag: "Committed" as const } : result
    })
  )

/** The due Runs of an agent, once they are as expected: an index that is written after the Run may be put right by sweeps only. */
export const swept = Effect.fnUntraced(function* (
  { advance, store }: Bench,
  agent: string,
  expected: ReadonlyArray<string>
) {
  const due = Effect.map(store.list({ agent: [agent], due: true }, { limit: 10 }), (rows) =>
    rows.map(({ runId }) => runId).toSorted()
  )
  let found = yield* due
  for (let sweep = 0; sweep < 100 && plain(found) !== plain(expected); sweep++) {
    yield* advance(50)
    found = yield* due
  }
  return found
})

/** Fails the rule unless both are structurally equal. */
export const same = <A>(what: string, got: A, expected: NoInfer<A>): Effect.Effect<void, Broken> =>
  plain(got) === plain(expected)
    ? Effect.void
    : Effect.fail(new Broken({ message: `${what}: expected ${shown(expected)}, got ${shown(got)}` }))

/** Fails the rule unless it holds. */
export const holds = (what: string, condition: boolean): Effect.Effect<void, Broken> =>
  condition ? Effect.void : Effect.fail(new Broken({ message: what }))

/** As text, whatever the order of fields; a field that is undefined is none. */
const plain = (value: unknown): string => (value === undefined ? "undefined" : JSON.stringify(sorted(value)))

const sorted = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .map(([key, inner]) => [key, sorted(inner)] as const)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
  )
}

const shown = (value: unknown): string => {
  const text = JSON.stringify(value) ?? "undefined"
  return text.length > 500 ? `${text.slice(0, 500)}…` : text
}
