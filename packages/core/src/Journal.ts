/**
 * Writes the events of one Attempt: stages them, commits them in one append, and folds in what others wrote.
 *
 * Invariants
 *   J1  Stage and commit are one step under a lock: the answer to `put` is about that event and no other (FACTS 12).
 *   J2  After a conflict the outside events are folded in, facts are staged again, intents are dropped, and whoever
 *       staged an intent is told `false` and asks `Step.next` anew.
 *   J3  An append whose answer was lost is recognised by its bytes and epoch and is counted once (FACTS 11).
 *   J4  A superseded owner's append has no effect and fails with OwnershipLost.
 *   J5  Guards' memory is folded with the state, buffered events included, and folded again after a conflict;
 *       duplicates do not reach it.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import * as Semaphore from "effect/Semaphore"
import type {
  AppendResult,
  CheckpointStore,
  Entry as StoreEntry,
  HeadRow,
  Lease,
  StoredEvent,
  StoreError
} from "./CheckpointStore.ts"
import { brokenMemory, type Guard } from "./Guard.ts"
import type { Entry } from "./Observer.ts"
import { CheckpointCorrupt, CheckpointTooNew, OwnershipLost, StoreUnavailable } from "./RunError.ts"
import * as RunEvent from "./RunEvent.ts"
import { type Head, isDuplicate } from "./RunHead.ts"
import * as RunState from "./RunState.ts"
import { ifFails } from "./Interruption.ts"
import type { SteadyTime } from "./SteadyTime.ts"
import { limited } from "./Bounded.ts"

export type ReadError = StoreError | CheckpointTooNew
export type JournalError = ReadError | OwnershipLost

export interface Options {
  /** Its appends need no time limit of their own: the journal sets one for all tries together. */
  readonly store: CheckpointStore["Service"]
  readonly runId: string
  readonly epoch: number
  /** Who appends, and holds the Run if the first append creates it. */
  readonly lease: Lease
  readonly guards: ReadonlyArray<Guard>
  /** What its events are stamped with: epoch ms that a wall clock which is set does not move. */
  readonly now: SteadyTime
  /** Gets everything that is committed, once and in order, outside events included. */
  readonly onCommit: (entries: ReadonlyArray<Entry>) => void
}

/** How often an append is repeated in the time that it has. Repeating is safe by J3. */
const appendRetry = Schedule.exponential("50 millis").pipe(Schedule.upTo({ times: 4 }))
/** Events a page. */
const pageSize = 5000

interface PutOptions {
  readonly commit?: boolean
  /** Asked under the lock: may the event still be staged? */
  readonly still?: (state: RunState.RunState) => boolean
}

interface Folded {
  readonly state: RunState.RunState
  readonly memory: ReadonlyArray<unknown>
}

export class Journal {
  private readonly options: Options
  private readonly lock = Semaphore.makeUnsafe(1)
  private committed: Folded
  private staged: Folded
  private buffer: Array<RunEvent.RunEvent> = []
  private busy = false

  private constructor(options: Options, folded: Folded) {
    this.options = options
    this.committed = this.staged = folded
  }

  /** Reads a Run up to `seq` and folds it. */
  static load(options: Options, seq: number): Effect.Effect<Journal, ReadError> {
    return Effect.suspend(() => {
      const { guards, runId, store } = options
      let folded: Folded = { state: RunState.empty(), memory: guards.map((guard) => guard.initial) }
      const each = ({ event }: Entry) => {
        folded = fold(folded, event, guards)
      }
      return Effect.map(readEvents(store, runId, { after: 0, seq, each }), () => new Journal(options, folded))
    })
  }

  /** The state with what is staged. */
  get state(): RunState.RunState {
    return this.staged.state
  }

  /** How many events are known to be stored. */
  get committedSeq(): number {
    return this.committed.state.seq
  }

  /** The memory of each guard, with what is staged. */
  get memory(): ReadonlyArray<unknown> {
    return this.staged.memory
  }

  /** When the oldest uncommitted event happened. */
  get oldest(): number | undefined {
    return this.buffer[0]?.at
  }

  /** True if a finished effect is not committed yet: nothing that takes time may start before it is (SPEC 6). */
  get owes(): boolean {
    return this.buffer.some(isFinishedEffect)
  }

  /**
   * Stages an event, and commits all that is staged if `commit` is set. False if the event did not make it: `still`
   * said no, or it is an intent and something came first. Then ask `Step.next` again.
   */
  put(draft: RunEvent.Draft, options: PutOptions = {}): Effect.Effect<boolean, JournalError> {
    return Effect.suspend(() =>
      this.busy || options.commit === true
        ? this.lock.withPermits(1)(Effect.suspend(() => this.stageAndCommit(draft, options)))
        : Effect.succeed(this.stage(draft, options.still))
    )
  }

  /** Commits all that is staged; false if an intent was dropped. */
  readonly commit: Effect.Effect<boolean, JournalError> = Effect.suspend(() =>
    this.buffer.length === 0 && !this.busy ? Effect.succeed(true) : this.lock.withPermits(1)(this.append)
  )

  /** Folds in what others wrote; true if there was anything. */
  readonly refresh: Effect.Effect<boolean, JournalError> = Effect.suspend(() =>
    this.lock.withPermits(1)(
      this.whileBusy(() => Effect.map(this.catchUp(this.buffer.map(RunEvent.encode)), ({ seen }) => seen > 0))
    )
  )

  /** Commits the facts that are left when an Attempt ends; what it announced will not happen (J2). */
  readonly close: Effect.Effect<void, JournalError> = Effect.suspend(() =>
    this.buffer.length === 0
      ? Effect.void
      : this.lock.withPermits(1)(
          this.whileBusy(() =>
            Effect.andThen(
              this.catchUp(this.buffer.map(RunEvent.encode)),
              Effect.suspend(() => {
                this.absorb([])
                return Effect.asVoid(this.append)
              })
            )
          )
        )
  )

  /** While the store is asked, whoever stages waits for the lock. */
  private whileBusy<A>(ask: () => Effect.Effect<A, JournalError>): Effect.Effect<A, JournalError> {
    return Effect.suspend(() => {
      this.busy = true
      return Effect.ensuring(
        ask(),
        Effect.sync(() => {
          this.busy = false
        })
      )
    })
  }

  private stageAndCommit(draft: RunEvent.Draft, { commit, still }: PutOptions): Effect.Effect<boolean, JournalError> {
    if (!this.stage(draft, still)) return Effect.succeed(false)
    return commit === true ? this.append : Effect.succeed(true)
  }

  private stage(draft: RunEvent.Draft, still?: (state: RunState.RunState) => boolean): boolean {
    if (still !== undefined && !still(this.state)) return false
    this.restage(RunEvent.stamp(draft, this.options.now()))
    return true
  }

  private restage(event: RunEvent.RunEvent): void {
    this.buffer.push(event)
    this.staged = fold(this.staged, event, this.options.guards)
  }

  /** One append, and another after a conflict. True if no intent was dropped. Runs under the lock. */
  private readonly append: Effect.Effect<boolean, JournalError> = Effect.suspend(() => {
    if (this.buffer.length === 0) return Effect.succeed(true)
    const bodies = this.buffer.map(RunEvent.encode)
    return this.whileBusy(() => Effect.flatMap(this.send(bodies), (result) => this.settle(result, bodies)))
  })

  private send(bodies: ReadonlyArray<string>): Effect.Effect<AppendResult, StoreError> {
    const { epoch, lease, runId, store } = this.options
    const { head, seq } = this.committed.state
    const request = {
      runId,
      epoch,
      owner: lease.owner,
      expectedSeq: seq,
      events: bodies,
      head: headRow(this.staged.state.head),
      ...(head.agent === "" ? { lease } : undefined)
    }
    return limited(
      ifFails(store.append(request), (again) =>
        Effect.retry(again, { schedule: appendRetry, while: (error) => error._tag === "StoreUnavailable" })
      )
    )
  }

  private settle(result: AppendResult, bodies: ReadonlyArray<string>): Effect.Effect<boolean, JournalError> {
    switch (result._tag) {
      case "Committed":
        this.accept()
        return Effect.succeed(true)
      case "Fenced":
        return Effect.fail(new OwnershipLost({ runId: this.options.runId }))
      case "Conflict":
        if (result.seq === 0 && this.committedSeq > 0) return Effect.fail(gone(this.options.runId))
        return Effect.flatMap(this.catchUp(bodies), ({ dropped, seen }) =>
          seen === 0 ? Effect.fail(unshown()) : Effect.map(this.append, (whole) => whole && dropped === 0)
        )
      default:
        return Effect.fail(new StoreUnavailable({ detail: "it answered an append with something unknown" }))
    }
  }

  /** False if another owner has the Run, or another life of it began. */
  isOurs({ epoch, owner }: Pick<StoreEntry, "epoch" | "owner">): boolean {
    return epoch === this.options.epoch && owner === this.options.lease.owner
  }

  /** All that was staged is committed, exactly as staged. */
  private accept(): void {
    const { epoch, onCommit } = this.options
    const first = this.committed.state.seq + 1
    const entries = this.buffer.map((event, i) => ({ seq: first + i, epoch, event }))
    this.buffer = []
    this.committed = this.staged
    onCommit(entries)
  }

  /** Folds in what is stored beyond our knowledge; appends of ours may be among it, their answers lost. */
  private catchUp(
    bodies: ReadonlyArray<string>
  ): Effect.Effect<{ readonly seen: number; readonly dropped: number }, JournalError> {
    const { epoch, runId, store } = this.options
    return Effect.gen({ self: this }, function* () {
      const events = yield* store.read(runId, { after: this.committed.state.seq, limit: pageSize })
      if (events.length === 0) return { seen: 0, dropped: 0 }
      const differs = events.findIndex((event, i) => event.epoch !== epoch || event.body !== bodies[i])
      const landed = differs === -1 ? events.length : differs
      // A claim of an unknown Run holds nothing until our own append has created it.
      const theirs = landed === 0 && this.committed.state.seq === 0
      if (theirs || events.slice(landed).some((event) => event.epoch >= epoch))
        return yield* new OwnershipLost({ runId })
      const entries: Array<Entry> = []
      for (const event of events) {
        const entry = decode(runId, event)
        if (Result.isFailure(entry)) return yield* entry.failure
        entries.push(entry.success)
      }
      this.buffer = this.buffer.slice(landed)
      return { seen: events.length, dropped: this.absorb(entries) }
    })
  }

  /** Folds committed entries in and stages the facts of the buffer again; says how many intents were dropped. */
  private absorb(entries: ReadonlyArray<Entry>): number {
    const { guards, onCommit } = this.options
    for (const { event } of entries) this.committed = fold(this.committed, event, guards)
    const facts = this.buffer.filter(RunEvent.isFact)
    const dropped = this.buffer.length - facts.length
    this.buffer = []
    this.staged = this.committed
    for (const fact of facts) this.restage(fact)
    onCommit(entries)
    return dropped
  }
}

/** What an Attempt ends with whose Run is not there any more. */
export const gone = (runId: string): OwnershipLost => new OwnershipLost({ runId, gone: true })

/** A store that reports a conflict has something newer to show; without it, asking again would never end. */
export const unshown = (): StoreUnavailable =>
  new StoreUnavailable({ detail: "it refuses an append for events that it does not show" })

const isFinishedEffect = (event: RunEvent.RunEvent): boolean =>
  event._tag === "ToolCallCompleted" &&
  (event.ending === "reconciled" || (event.ending === "executed" && event.startedAt === undefined))

const fold = ({ memory, state }: Folded, event: RunEvent.RunEvent, guards: ReadonlyArray<Guard>): Folded => ({
  state: RunState.evolve(state, event),
  memory:
    guards.length === 0 || isDuplicate(state.head, event)
      ? memory
      : guards.map((guard, i) => remembered(guard, memory[i], event))
})

/** A fold that throws has no memory any more; its guard refuses everything from then on. */
const remembered = (guard: Guard, memory: unknown, event: RunEvent.RunEvent): unknown => {
  if (memory === brokenMemory) return memory
  try {
    return guard.fold(memory, event)
  } catch {
    return brokenMemory
  }
}

/** The row that a store keeps of a head. */
export const headRow = (head: Head): HeadRow => ({
  status: head.status,
  agent: head.agent,
  waiting: waitingKinds(head),
  updatedAt: head.updatedAt,
  body: JSON.stringify(head),
  ...(head.session === undefined ? undefined : { session: head.session }),
  ...(head.parent === undefined ? undefined : { parent: head.parent.runId }),
  ...(head.wakeAt === undefined ? undefined : { wakeAt: head.wakeAt })
})

const waitingKinds = ({ paused, retry, status, waits }: Head): ReadonlyArray<string> =>
  status !== "waiting"
    ? []
    : [
        ...new Set(waits.map((wait) => wait.kind)),
        ...(paused === undefined ? [] : ["paused"]),
        ...(retry === undefined ? [] : ["retry"])
      ]

/** Decodes one stored event, or says which and where it is damaged. No Effect: a resume decodes tens of thousands. */
const decode = (
  runId: string,
  { body, epoch, seq }: StoredEvent
): Result.Result<Entry, CheckpointCorrupt | CheckpointTooNew> =>
  Result.mapBoth(RunEvent.decode(body), {
    onSuccess: (event) => ({ seq, epoch, event }),
    onFailure: (failure) =>
      failure._tag === "TooNew"
        ? new CheckpointTooNew({ runId, seq, version: failure.version })
        : new CheckpointCorrupt({ runId, seq, path: failure.path })
  })

/** Calls `each` with the events from `after` up to `seq`, page by page; a missing one is damage. */
export const readEvents = (
  store: CheckpointStore["Service"],
  runId: string,
  range: { readonly after: number; readonly seq: number; readonly each: (entry: Entry, ends: boolean) => void }
): Effect.Effect<void, ReadError> =>
  Effect.gen(function* () {
    let next = range.after + 1
    while (next <= range.seq) {
      const page = yield* store.read(runId, { after: next - 1, limit: Math.min(pageSize, range.seq - next + 1) })
      if (page.length === 0) return yield* new CheckpointCorrupt({ runId, seq: next, path: "missing" })
      for (const stored of page) {
        if (stored.seq !== next) return yield* new CheckpointCorrupt({ runId, seq: next, path: "missing" })
        const entry = decode(runId, stored)
        if (Result.isFailure(entry)) return yield* entry.failure
        range.each(entry.success, stored.ends)
        next++
      }
    }
  })
