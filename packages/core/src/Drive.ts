/**
 * Drives a Run as one Attempt: takes the lease, folds the journal, runs the loop, and lets go again.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as LanguageModel from "effect/ai/LanguageModel"
import type { Agent } from "./Agent.ts"
import { type Attempt, leaseMillis, type Model } from "./Attempt.ts"
import { CheckpointStore, type Held, type StoreError } from "./CheckpointStore.ts"
import { bounded } from "./Bounded.ts"
import { Draining } from "./Drain.ts"
import { canonical } from "./Digest.ts"
import { Fallbacks } from "./Fallback.ts"
import * as Feed from "./Feed.ts"
import { Stoppable } from "./Interruption.ts"
import { Journal, type JournalError } from "./Journal.ts"
import type { Draft } from "./RunEvent.ts"
import * as Lease from "./Lease.ts"
import * as Loop from "./Loop.ts"
import { ModelInfo, ModelSettings, Prices } from "./ModelInfo.ts"
import { ModelRetry } from "./ModelRetry.ts"
import type { Entry } from "./Observer.ts"
import { Owner } from "./Owner.ts"
import { storable } from "./Storable.ts"
import * as Plugin from "./Plugin.ts"
import * as Recovery from "./Recovery.ts"
import { type EncodeFailed, type OwnershipLost, PluginMissing, RunBusy, type RunExists } from "./RunError.ts"
import type { RunState } from "./RunState.ts"
import type { Delta } from "./RunUpdate.ts"
import * as SteadyTime from "./SteadyTime.ts"
import * as Watch from "./Watch.ts"

/** What a stream hears of a driven Run. Both are called in the middle of its work and must not throw or block. */
export interface Hooks {
  readonly onCommit: (entries: ReadonlyArray<Entry>) => void
  readonly publish: (delta: Delta) => void
}

export const silent: Hooks = { onCommit: () => {}, publish: () => {} }

export interface Input extends Hooks {
  readonly agent: Agent
  readonly runId: string
  /** What comes before AttemptStarted: RunAccepted of a new Run, RunReopened, PauseLifted. */
  readonly before: (state: RunState) => Effect.Effect<ReadonlyArray<Draft>, RunExists>
  /** Plugins that this Run may go on without. */
  readonly without: ReadonlyArray<string>
}

export type DriveError = JournalError | RunBusy | PluginMissing | RunExists | EncodeFailed

/** Drives the Run until it ends or rests, and gives its state. What is finished is flushed however this ends. */
export const drive = (
  input: Input
): Effect.Effect<RunState, DriveError, CheckpointStore | LanguageModel.LanguageModel> =>
  Effect.scoped(
    Effect.gen(function* () {
      const claimed = yield* claim(input.runId)
      const context = yield* Effect.context<CheckpointStore | LanguageModel.LanguageModel>()
      const attempt = yield* prepare(input, claimed, context)
      const begun = yield* open(attempt, input, claimed)
      if (begun) {
        yield* Effect.forkScoped(Watch.make(attempt))
        yield* Effect.forkScoped(Watch.hints(attempt))
        yield* Effect.catchTag(loop(attempt), "OwnershipLost", (lost) => lostTo(attempt, lost))
      }
      return attempt.journal.state
    })
  )

const loop = (attempt: Attempt) => Effect.andThen(Recovery.settleForked(attempt), Loop.run(attempt))

/** Of two that create the same Run at once, the one that comes second never owned it. */
const lostTo = ({ journal, runId }: Attempt, lost: OwnershipLost): Effect.Effect<never, OwnershipLost | RunBusy> =>
  Effect.fail(journal.committedSeq === 0 ? new RunBusy({ runId, owner: "another start" }) : lost)

/** What an ended Attempt could not write yet. It keeps the lease until then: who let it go writes nothing any more. */
interface Owed {
  readonly owner: string
  /** Writes it, and lets the lease go. */
  readonly pay: Effect.Effect<void, JournalError>
}

/** What this process owes to its stores, by run id. */
const Debts: Context.Reference<WeakMap<CheckpointStore["Service"], Map<string, Owed>>> = Context.Reference(
  "@waystone/core/Drive/Debts",
  { defaultValue: () => new WeakMap() }
)

const owedTo = (store: CheckpointStore["Service"]): Effect.Effect<Map<string, Owed>> =>
  Effect.map(Debts, (debts) => {
    const owed = debts.get(store) ?? new Map<string, Owed>()
    debts.set(store, owed)
    return owed
  })

interface Claimed {
  readonly owner: string
  readonly epoch: number
  readonly seq: number
  /** The owner before never let go. */
  readonly recovered: boolean
}

/** Takes the lease for as long as the scope is open; from a dead owner at once. */
const claim = Effect.fnUntraced(function* (
  runId: string
): Effect.fn.Return<Claimed, StoreError | RunBusy, CheckpointStore | Scope.Scope> {
  const store = bounded(yield* CheckpointStore)
  const { isDead, name } = yield* Owner
  // What an Attempt of this process still owes comes first; a store that is away says so here.
  const owed = yield* owedTo(yield* CheckpointStore)
  const debt = owed.get(runId)
  if (debt !== undefined)
    yield* Effect.catchIf(
      debt.pay,
      (error) => error._tag !== "StoreUnavailable",
      () => Effect.void
    )
  const request = { runId, owner: yield* name, ttlMillis: leaseMillis }
  const claims = Effect.gen(function* () {
    const first = yield* store.claim(request)
    if (first._tag === "Claimed" || !(yield* isDead(first.owner))) return first
    return yield* store.claim({ ...request, takeover: first.epoch })
  })
  const { owner } = request
  const result = yield* Effect.acquireRelease(claims, (result) =>
    result._tag === "Claimed" && owed.get(runId)?.owner !== owner
      ? Lease.release(store, { runId, owner, epoch: result.epoch })
      : Effect.void
  )
  if (result._tag === "Busy") return yield* new RunBusy({ runId, owner: result.owner })
  const { epoch, previous, seq } = result
  return { owner, epoch, seq, recovered: previous !== undefined }
})

const prepare = Effect.fnUntraced(function* (
  { agent, onCommit, publish, runId }: Input,
  { epoch, owner, seq }: Claimed,
  context: Context.Context<CheckpointStore | LanguageModel.LanguageModel>
): Effect.fn.Return<Attempt, JournalError, Scope.Scope> {
  const unlimited = Context.get(context, CheckpointStore)
  const store = bounded(unlimited)
  const plugins = Plugin.collect(context)
  const { now, wall } = yield* SteadyTime.make
  const settings = Context.make(ModelSettings, yield* ModelSettings)
  let observe: Feed.Offer = () => {}
  const journal = yield* Journal.load(
    {
      store: { ...store, append: unlimited.append },
      runId,
      epoch,
      lease: { owner, ttlMillis: leaseMillis },
      guards: plugins.guards,
      now,
      onCommit: (entries) => {
        onCommit(entries)
        observe(entries)
      }
    },
    seq
  )
  const owed = yield* owedTo(unlimited)
  const info = { runId, agent: agent.name, attempt: journal.state.head.attempts + 1 }
  if (plugins.observers.length > 0) observe = yield* Feed.make(plugins.observers, info)
  // Closed before the observers are: what is finished is committed whatever ended the Attempt.
  yield* Effect.addFinalizer(() => closing(journal, store, { held: { runId, owner, epoch }, owed }))
  return {
    runId,
    epoch,
    agent,
    store,
    journal,
    plugins,
    context,
    models: [modelOf(context), ...(yield* Fallbacks).map((other) => modelOf(Context.merge(settings, other)))],
    modelRetry: yield* ModelRetry,
    prices: yield* Prices,
    now,
    wall,
    stoppable: new Stoppable(),
    draining: yield* Draining,
    lease: Lease.make(store, { runId, owner, epoch }, [now, wall]),
    publish,
    judged: new Map(),
    sizes: { messages: new WeakMap() }
  }
})

/** What an Attempt that ends still has to write, and whose Run it was. */
interface Ending {
  readonly held: Held
  readonly owed: Map<string, Owed>
}

const closing = (journal: Journal, store: CheckpointStore["Service"], ending: Ending): Effect.Effect<void> =>
  Effect.matchEffect(journal.close, {
    onSuccess: () => Effect.void,
    onFailure: (error) =>
      error._tag === "StoreUnavailable"
        ? Effect.forkDetach(later(journal, store, ending), { startImmediately: true }) // a claim may come at once
        : Effect.void
  })

const modelOf = (context: Context.Context<LanguageModel.LanguageModel>): Model => ({
  model: Context.get(context, LanguageModel.LanguageModel),
  info: Context.get(context, ModelInfo),
  settings: Context.get(context, ModelSettings)
})

/** What is finished is written when the store is back, as long as nobody took the Run over (RI-134). */
const later = (journal: Journal, store: CheckpointStore["Service"], { held, owed }: Ending): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { owner, runId } = held
    const pay = Effect.andThen(journal.close, Lease.release(store, held))
    owed.set(runId, { owner, pay })
    return Effect.retry(pay, {
      schedule: Schedule.spaced("500 millis").pipe(Schedule.upTo({ times: 1200 })), // about ten minutes, whatever the clock
      while: (error) => error._tag === "StoreUnavailable"
    }).pipe(
      Effect.ignore,
      Effect.ensuring(
        Effect.sync(() => {
          if (owed.get(runId)?.owner === owner) owed.delete(runId)
        })
      )
    )
  })

/** Stages what an Attempt begins with; false if the Run has ended. A recovery is committed at once, so that deaths are counted (RI-161). */
const open = Effect.fnUntraced(function* (
  attempt: Attempt,
  { before, without }: Input,
  { owner, recovered }: Claimed
): Effect.fn.Return<boolean, DriveError> {
  const { agent, journal, plugins, runId } = attempt
  const drafts = yield* before(journal.state)
  yield* Effect.forEach(drafts, storable, { discard: true })
  if (journal.state.outcome !== undefined && drafts.length === 0) return false
  const missing = journal.state.plugins.filter((name) => !plugins.names.includes(name) && !without.includes(name))
  if (missing.length > 0) return yield* new PluginMissing({ runId, missing })
  const tools = yield* agent.records
  for (const draft of drafts) yield* journal.put(draft)
  const { head, plugins: known, tools: recorded } = journal.state
  const answering = [...plugins.answering.keys()]
  if (!head.started) {
    const { name, version } = agent
    const said = answering.length === 0 ? undefined : { answering }
    yield* journal.put({ _tag: "RunStarted", agent: name, version, tools, plugins: plugins.names, ...said })
  } else if (canonical(tools) !== canonical(recorded)) {
    yield* journal.put({ _tag: "ToolsChanged", tools })
  }
  yield* journal.put({
    _tag: "AttemptStarted",
    attempt: head.attempts + 1,
    owner,
    recovered,
    ...(head.version === agent.version ? undefined : { version: agent.version }),
    ...(head.started && known.join() !== plugins.names.join() ? { plugins: plugins.names } : undefined),
    ...(without.length === 0 ? undefined : { without }),
    ...(head.started && (head.answering ?? []).join() !== answering.join() ? { answering } : undefined)
  })
  for (const callId of yield* expired(attempt)) yield* journal.put({ _tag: "WaitExpired", callId })
  if (recovered) yield* journal.commit
  return true
})

/** What nobody answered in time, by the store's clock as when answering. */
const expired = ({ journal, runId, store, wall }: Attempt): Effect.Effect<ReadonlyArray<string>, StoreError> => {
  const { deferred, waits } = journal.state.head
  const limited = [...waits.filter(({ path }) => path === undefined), ...deferred].filter(
    ({ expiresAt }) => expiresAt !== undefined
  )
  if (limited.length === 0) return Effect.succeed([])
  return Effect.map(store.head(runId), (entry) => {
    const now = entry?.now ?? wall()
    return limited.filter(({ expiresAt = now }) => expiresAt <= now).map(({ id }) => id)
  })
}
