/**
 * The contract of a backend: an append-only list of events per Run, a head beside it, and a lease.
 *
 * A store deals in well-formed strings and numbers, never in domain types. docs/write-a-store.md has the contract as a table
 * and a guide; `CheckpointStoreSuite` in `@waystone/core/testing` proves an implementation, rule by rule.
 *
 * Core gives every question 5 s, the four repeats of an append included; then it goes on as after StoreUnavailable. So what a
 * store waits for itself (a lock, a connection) must be over well before: an option of its own that allows more has no effect.
 *
 * Invariants
 *   C1  An append is compare-and-set on `expectedSeq`, all or nothing, together with its head.
 *   C2  An append with an epoch or an owner that is not the Run's present one is `Fenced` and has no effect.
 *   C3  Each claim raises the epoch, and owners' names are unique, so a superseded owner can never write again: epochs begin
 *       anew in a Run that was removed and begun again, names do not.
 *   C4  A lease ends by the store's clock, not by the caller's.
 *   C5  Nothing is deleted but by `remove`, which leaves nothing behind.
 *   C6  A page of `read` or `list` is shorter than its limit only where there is no more.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import type { CheckpointCorrupt, StoreCorrupt, StoreUnavailable } from "./RunError.ts"

export { leftOut } from "./LeftOut.ts"

/**
 * How every operation can fail. `StoreUnavailable`: come back; it may have happened all the same. `CheckpointCorrupt`: what is
 * stored of this Run is damaged. `StoreCorrupt`: the store is, as a whole. Damage is never repaired or taken for an unknown
 * Run, and deleted only where `remove` is told so.
 */
export type StoreError = StoreUnavailable | CheckpointCorrupt | StoreCorrupt

/** What can be asked about a Run without reading its events. `body` is the encoded head and means nothing to a store. */
export interface HeadRow {
  readonly status: string
  readonly agent: string
  readonly session?: string
  /** The run id of the parent, for the Run of a sub-agent. */
  readonly parent?: string
  /** The kinds of the open waits. */
  readonly waiting: ReadonlyArray<string>
  /** Epoch ms. */
  readonly wakeAt?: number
  readonly updatedAt: number
  readonly body: string
}

export interface Lease {
  readonly owner: string
  readonly ttlMillis: number
}

/** Who an append is by: an owner, with the epoch and the name of its claim; or a writer from outside, which has neither. */
export type Writer =
  | { readonly epoch: 0; readonly owner?: undefined }
  | { readonly epoch: number; readonly owner: string }

/** What an append writes. */
export interface Written {
  readonly runId: string
  /** How many events the Run has. At 0 the append creates it. */
  readonly expectedSeq: number
  /** At least one. Any well-formed text but NUL and lone surrogates, which the Journal escapes; any length, 0 too. */
  readonly events: ReadonlyArray<string>
  readonly head: HeadRow
  /** With an append that creates a Run under an epoch: who holds it from then on. */
  readonly lease?: Lease
}

export type Append = Written & Writer

/** A claim that was made: what renews and releases a lease. */
export interface Held {
  readonly runId: string
  readonly epoch: number
  readonly owner: string
}

export type AppendResult =
  | { readonly _tag: "Committed" }
  | { readonly _tag: "Conflict"; readonly seq: number }
  | { readonly _tag: "Fenced" }

export interface StoredEvent {
  /** 1, 2, 3 … */
  readonly seq: number
  readonly epoch: number
  readonly body: string
  /** It is the last of its append: a checkpoint that can be forked at. */
  readonly ends: boolean
}

export interface Entry extends HeadRow {
  readonly runId: string
  readonly seq: number
  readonly epoch: number
  /** Who claimed it and has not released it; `live` until the lease ends. */
  readonly owner?: string
  readonly live: boolean
  /**
   * The store's clock when it gave this entry (epoch ms): by it the time to answer ends, whatever the caller's clock says.
   * Only `head` needs to say it; of a store that does not, the caller's clock counts.
   */
  readonly now?: number
}

export type ClaimResult =
  /** `previous`: an owner that never released it. The claim of an unknown Run gives epoch 1 and creates nothing. */
  | { readonly _tag: "Claimed"; readonly epoch: number; readonly seq: number; readonly previous?: string }
  | { readonly _tag: "Busy"; readonly epoch: number; readonly owner: string }

export interface Filter {
  readonly status?: ReadonlyArray<string>
  /** At least one open wait of this kind. */
  readonly waiting?: string
  readonly agent?: ReadonlyArray<string>
  readonly session?: string
  /** The Runs of this parent; `null` for roots only. */
  readonly parent?: string | null
  /** Epoch ms. */
  readonly updatedBefore?: number
  /** Running, or with a `wakeAt` that has come by the store's clock. */
  readonly due?: boolean
}

export interface Page {
  /** At most this many, oldest `updatedAt` first. */
  readonly limit: number
  /** The run id and `updatedAt` of the last one seen. */
  readonly after?: { readonly runId: string; readonly updatedAt: number }
}

/** Whether a filter lets a Run through; `now` by the store's clock. */
export const matches = (entry: Entry, filter: Filter, now: number): boolean =>
  (filter.status?.includes(entry.status) ?? true) &&
  (filter.waiting === undefined || entry.waiting.includes(filter.waiting)) &&
  (filter.agent?.includes(entry.agent) ?? true) &&
  (filter.session === undefined || entry.session === filter.session) &&
  (filter.parent === undefined || (entry.parent ?? null) === filter.parent) &&
  (filter.updatedBefore === undefined || entry.updatedAt < filter.updatedBefore) &&
  (filter.due !== true || entry.status === "running" || (entry.wakeAt !== undefined && entry.wakeAt <= now))

type Place = NonNullable<Page["after"]>

/** The order of lists: by `updatedAt`, then by run id. */
export const byAge = (a: Place, b: Place): number =>
  a.updatedAt - b.updatedAt || (a.runId < b.runId ? -1 : a.runId > b.runId ? 1 : 0)

/** What `list` gives, for a store that has all entries at hand; `now` by the store's clock. */
export const pageOf = (
  entries: ReadonlyArray<Entry>,
  { filter, now, page: { after, limit } }: { readonly filter: Filter; readonly page: Page; readonly now: number }
): ReadonlyArray<Entry> =>
  entries
    .filter((entry) => matches(entry, filter, now) && (after === undefined || byAge(entry, after) > 0))
    .toSorted(byAge)
    .slice(0, limit)

export class CheckpointStore extends Context.Service<
  CheckpointStore,
  {
    /** Compare-and-set: Fenced, else Conflict, else all of it in one step (C1, C2). */
    readonly append: (append: Append) => Effect.Effect<AppendResult, StoreError>
    /** The events after `after`, in order: `limit` of them if there are so many, whatever their size. */
    readonly read: (
      runId: string,
      range: { readonly after: number; readonly limit: number }
    ) => Effect.Effect<ReadonlyArray<StoredEvent>, StoreError>
    /** The last head, and who holds the Run. */
    readonly head: (runId: string) => Effect.Effect<Entry | undefined, StoreError>
    /** Takes the lease. `takeover` takes it from a live owner whose epoch is still that one: the caller knows it is dead. */
    readonly claim: (
      request: Lease & { readonly runId: string; readonly takeover?: number }
    ) => Effect.Effect<ClaimResult, StoreError>
    /** The lease lasts so long from now, even if it was over. False if that epoch or that owner is not the Run's. */
    readonly renew: (request: Held & { readonly ttlMillis: number }) => Effect.Effect<boolean, StoreError>
    /** The Run has no owner any more, its epoch stays. Does nothing if that epoch or that owner is not the Run's. */
    readonly release: (held: Held) => Effect.Effect<void, StoreError>
    /**
     * The entries for which every given field of the filter holds, by `updatedAt`, then by run id. A Run whose head is damaged is
     * left out and named in the log (`leftOut`): it must not keep the others from being found.
     */
    readonly list: (filter: Filter, page: Page) => Effect.Effect<ReadonlyArray<Entry>, StoreError>
    /**
     * Everything of the Run is gone, in one step. False if it is unknown or not at that seq. With `"damaged"` it goes only if
     * its head cannot be read, and whatever else of it can be.
     */
    readonly remove: (runId: string, expectedSeq: number | "damaged") => Effect.Effect<boolean, StoreError>
    /** Hints that somebody else may have written to the Run; may be lost, late, doubled or wrong. Optional. */
    readonly watch?: (runId: string) => Stream.Stream<void, StoreError>
  }
>()("@waystone/core/CheckpointStore") {}
