/**
 * Drives a Run as one Attempt: takes the lease, folds the journal, runs the loop, and lets go again.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as LanguageModel from "effect/ai/LanguageModel"
import type { Agent } from "./Agent.ts"
import { type Attempt, type Child, type ChildError, type Driven, leaseMillis, type Model } from "./Attempt.ts"
import { CheckpointStore, type StoreError } from "./CheckpointStore.ts"
import { bounded } from "./Bounded.ts"
import { current, under } from "./Caller.ts"
import * as Debts from "./Debts.ts"
import { defined } from "./Defined.ts"
import { Draining } from "./Drain.ts"
import { canonical } from "./Digest.ts"
import { Fallbacks } from "./Fallback.ts"
import * as Guard from "./Guard.ts"
import * as Feed from "./Feed.ts"
import { Stoppable } from "./Interruption.ts"
import { Journal, type JournalError } from "./Journal.ts"
import type { Draft, Wait } from "./RunEvent.ts"
import * as Lease from "./Lease.ts"
import * as Limits from "./Limits.ts"
import * as Loop from "./Loop.ts"
import { ModelInfo, ModelSettings, Prices } from "./ModelInfo.ts"
import { ModelRetry } from "./ModelRetry.ts"
import type { Entry } from "./Observer.ts"
import { Owner } from "./Owner.ts"
import { storable } from "./Storable.ts"
import * as Plugin from "./Plugin.ts"
import * as Recovery from "./Recovery.ts"
import { type OwnershipLost, PluginMissing, RunBusy, type RunExists } from "./RunError.ts"
import { isEnding, type RunState } from "./RunState.ts"
import type { ChildProgress, Committed, Delta } from "./RunUpdate.ts"
import * as SteadyTime from "./SteadyTime.ts"
import * as Tree from "./Tree.ts"
import * as Unattended from "./Unattended.ts"
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
  /** Of a sub-agent's Run: where it comes in. */
  readonly place?: Tree.Place
}

export type DriveError = ChildError

/** Drives the Run until it ends or rests, and gives its state. What is finished is flushed however this ends. */
export const drive = (
  input: Input
): Effect.Effect<RunState, DriveError, CheckpointStore | LanguageModel.LanguageModel> =>
  Effect.map(driven(input), ({ state }) => state)

const driven = (input: Input): Effect.Effect<Driven, DriveError, CheckpointStore | LanguageModel.LanguageModel> =>
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
      const { memory, state } = attempt.journal
      return { state, used: Guard.used(attempt.plugins.guards, memory) }
    })
  )

const loop = (attempt: Attempt) => Effect.andThen(Recovery.settleForked(attempt), Loop.run(attempt))

/** Of two that create the same Run at once, the one that comes second never owned it. */
const lostTo = ({ journal, runId }: Attempt, lost: OwnershipLost): Effect.Effect<never, OwnershipLost | RunBusy> =>
  Effect.fail(journal.committedSeq === 0 ? new RunBusy({ runId, owner: "another start" }) : lost)

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
  const owed = yield* Debts.owedTo(yield* CheckpointStore)
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
  { agent, onCommit, place, publish, runId }: Input,
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
  const owed = yield* Debts.owedTo(unlimited)
  const info = { runId, agent: agent.name, attempt: journal.state.head.attempts + 1 }
  if (plugins.observers.length > 0) observe = yield* Feed.make(plugins.observers, info)
  // Closed before the observers are: what is finished is committed whatever ended the Attempt.
  yield* Effect.addFinalizer(() => Debts.closing(journal, store, { held: { runId, owner, epoch }, owed }))
  const tree = treeOf(agent, runId, journal, place)
  const draining = yield* Draining
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
    draining,
    lease: Lease.make(store, { runId, owner, epoch }, [now, wall]),
    publish,
    judged: new Map(),
    tree,
    drive: (child) =>
      Effect.provideContext(below(child, { above: tree, caller: runId }, publish), letsGo(context, draining, journal)),
    sizes: { messages: new WeakMap() }
  }
})

const treeOf = (agent: Agent, runId: string, journal: Journal, place: Tree.Place | undefined): Tree.Tree => {
  const turns = () => journal.state.head.turn + (journal.state.head.childTurns ?? 0)
  const maxTurns = () => Limits.override(agent.limits, journal.state.limits).maxTreeTurns
  return Tree.make(agent, runId, { turns, maxTurns }, place)
}

/**
 * A pause of a Run reaches the ones below it as the end of their process does: they let go between two of their Steps. What
 * has to end is not held up by it.
 */
const letsGo = <R>(context: Context.Context<R>, draining: Draining, journal: Journal): Context.Context<R> =>
  Context.add(context, Draining, { begun: () => draining.begun() || isPaused(journal.state) })

const isPaused = (state: RunState): boolean => state.head.paused !== undefined && !isEnding(state)

/** Drives a Run below another one. What it does is progress of the call. */
const below = (
  { agent, before, call, denies, runId }: Child,
  { above, caller }: { readonly above: Tree.Tree; readonly caller: string },
  publish: Hooks["publish"]
) => {
  const { callId } = call
  const told = (update: Exclude<Delta, ChildProgress> | Committed, path: ReadonlyArray<string> = []) =>
    publish({ _tag: "ChildProgress", path: [callId, ...path], update })
  const hooks: Hooks = {
    onCommit: (entries) => entries.forEach(({ event, seq }) => told({ _tag: "Committed", seq, event })),
    publish: (delta) => (delta._tag === "ChildProgress" ? told(delta.update, delta.path) : told(delta))
  }
  const place = { above, callId, denies }
  const start = call.status === "started" ? call.starts : call.starts + 1
  return under({ runId: caller, callId, start })(driven({ agent, runId, before, without: [], place, ...hooks }))
}

const modelOf = (context: Context.Context<LanguageModel.LanguageModel>): Model => ({
  model: Context.get(context, LanguageModel.LanguageModel),
  info: Context.get(context, ModelInfo),
  settings: Context.get(context, ModelSettings)
})

/** Stages what an Attempt begins with; false if the Run has ended. A recovery is committed at once, so that deaths are counted (RI-161). */
const open = Effect.fnUntraced(function* (
  attempt: Attempt,
  { before, place, without }: Input,
  { owner, recovered }: Claimed
): Effect.fn.Return<boolean, DriveError> {
  const { agent, journal, plugins, runId } = attempt
  const drafts = yield* before(journal.state)
  yield* Effect.forEach(drafts, storable, { discard: true })
  if (journal.state.outcome !== undefined && drafts.length === 0) return false
  // A sub-agent's Run never knew more plugins than its root, which was asked already, and may go on without some.
  const asked = place === undefined ? journal.state.plugins : []
  const missing = asked.filter((name) => !plugins.names.includes(name) && !without.includes(name))
  if (missing.length > 0) return yield* new PluginMissing({ runId, missing })
  const tools = yield* agent.records
  for (const draft of drafts) yield* journal.put(draft)
  const { head, plugins: known, tools: recorded } = journal.state
  const answering = [...plugins.answering.keys()]
  const caller = yield* current
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
    ...(head.started && (head.answering ?? []).join() !== answering.join() ? { answering } : undefined),
    ...defined({ caller })
  })
  for (const { id, path } of yield* expired(attempt)) {
    const [callId] = path ?? []
    // It is over for the Run below, which says so when it is driven.
    yield* journal.put(
      callId === undefined || path === undefined
        ? { _tag: "WaitExpired", callId: id }
        : { _tag: "ChildWoken", callId, id, path }
    )
  }
  const moot = Unattended.withdrawn(agent, runId, journal.state, attempt.tree.denies)
  for (const draft of yield* Effect.provideService(moot, CheckpointStore, attempt.store)) yield* journal.put(draft)
  if (recovered) yield* journal.commit
  return true
})

type Expiring = Pick<Wait, "id" | "path" | "expiresAt">

/** What nobody answered in time, by the store's clock as when answering. */
const expired = ({ journal, runId, store, wall }: Attempt): Effect.Effect<ReadonlyArray<Expiring>, StoreError> => {
  const { deferred, waits } = journal.state.head
  const limited: ReadonlyArray<Expiring> = [...waits, ...deferred].filter(({ expiresAt }) => expiresAt !== undefined)
  if (limited.length === 0) return Effect.succeed([])
  return Effect.map(store.head(runId), (entry) => {
    const now = entry?.now ?? wall()
    return limited.filter(({ expiresAt = now }) => expiresAt <= now)
  })
}
