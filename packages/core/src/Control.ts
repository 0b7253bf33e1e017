/**
 * Speaks to a Run from outside: answers, messages, pause and cancel. None of them needs the lease, and whoever drives
 * the Run notices within a second.
 *
 * @since 0.1.0
 */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as WebCrypto from "effect/crypto/WebCrypto"
import type { Agent } from "./Agent.ts"
import * as Answers from "./Answers.ts"
import type { CheckpointStore, StoreError } from "./CheckpointStore.ts"
import * as Descendants from "./Descendants.ts"
import * as Input from "./Input.ts"
import type { ReadError } from "./Journal.ts"
import type { Draft } from "./RunEvent.ts"
import * as Plugin from "./Plugin.ts"
import * as Outside from "./Outside.ts"
import * as Route from "./Route.ts"
import {
  AnswerInvalid,
  type EncodeFailed,
  type Lift,
  lift,
  NotPending,
  type RunIsChild,
  type RunNotFound,
  RunTerminal
} from "./RunError.ts"
import { isTerminal } from "./RunHead.ts"
import * as Stored from "./Stored.ts"
import { defined } from "./Defined.ts"

/** Who acts; recorded. Default "user". */
export interface By {
  readonly runId: string
  readonly by?: string
}

/**
 * Answers a call that waits: an approval, an external result, or what became of a call in doubt. One decision counts
 * per call; a duplicate of it is a success. The Run goes on when somebody resumes it, or at the next sweep.
 */
export const answer = (
  agent: Agent,
  input: Answers.Input
): Effect.Effect<void, Lift<Answers.Refusal | RunNotFound | RunIsChild>, CheckpointStore> =>
  lift(
    (input.path === undefined || input.path.length === 0 ? own(agent, input) : below(agent, input, input.path)).pipe(
      Effect.catchTag("EncodeFailed", ({ detail }) => {
        const { callId, runId } = input
        return Effect.fail(new AnswerInvalid({ runId, callId, issues: detail }))
      })
    )
  )

const own = (agent: Agent, input: Answers.Input) => append(input.runId, (seen) => Answers.decide(agent, input, seen))

/** Answers a call of a sub-agent, as its own Run's, then tells the Runs above. */
const below = (agent: Agent, { answer, by, callId, runId: rootId }: Answers.Input, path: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const root = yield* Outside.look(rootId)
    yield* Route.root(rootId, root.head)
    const { above, runId } = yield* Route.along(rootId, path)
    const found = yield* Route.agentAt(agent, rootId, path)
    const decide = (seen: Outside.Seen): Drafts<Answers.Refusal> =>
      seen.head.parent?.rootId === rootId
        ? Answers.decide(Route.orGone(found, seen.head), { runId, callId, answer, by }, seen)
        : Effect.fail(new NotPending({ runId: rootId, callId, path }))
    yield* Outside.append(runId, decide).pipe(
      Effect.catchTag("RunNotFound", () => Effect.fail(new NotPending({ runId: rootId, callId, path }))),
      // Whoever decided it before may have died before the Runs above were told.
      Effect.tapErrorTag("AlreadyDecided", () => Route.wake(callId, above))
    )
    yield* Route.wake(callId, above)
  })

/**
 * Gives the Run a message of the user. It enters the history before the next model call; pending approvals and external
 * calls are superseded by it. `id` makes it safe to send again; by default it is random.
 */
export const send = (
  input: By & { readonly message: Input.Message; readonly id?: string }
): Effect.Effect<void, Lift<StoreError | EncodeFailed | RunNotFound | RunIsChild | RunTerminal>, CheckpointStore> =>
  lift(
    Effect.gen(function* () {
      const { by, runId } = input
      const content = yield* Input.content("message", input.message)
      const id = input.id ?? (yield* WebCrypto.WebCrypto.use((crypto) => Effect.sync(() => crypto.randomUUID())))
      yield* append(runId, ({ head }) => {
        if (head.messages.includes(id)) return nothing
        if (isTerminal(head)) return Effect.fail(new RunTerminal({ runId, status: head.status }))
        return one({ _tag: "MessageReceived", id, content, ...defined({ by }) })
      })
    })
  )

/** Makes the Run rest at its next boundary, until `resume`. */
export const pause = ({
  by = "user",
  runId
}: By): Effect.Effect<
  void,
  Lift<StoreError | EncodeFailed | RunNotFound | RunIsChild | RunTerminal>,
  CheckpointStore
> =>
  lift(
    append(runId, ({ head }) => {
      if (isTerminal(head)) return Effect.fail(new RunTerminal({ runId, status: head.status }))
      return head.paused === undefined ? one({ _tag: "PauseRequested", by }) : nothing
    })
  )

/**
 * Cancels the Run for good: nothing is started any more, what runs is interrupted, open calls get a result. A Run that
 * nobody drives is ended at once; of its calls in doubt the outcome stays unknown.
 */
export const cancel = ({
  by = "user",
  reason,
  runId
}: By & { readonly reason?: string }): Effect.Effect<
  void,
  Lift<ReadError | EncodeFailed | RunNotFound | RunIsChild>,
  CheckpointStore
> => {
  const why = { by, ...defined({ reason }) }
  let ends = false
  const requested: Draft = { _tag: "CancelRequested", ...why }
  const request = append(runId, ({ entry, head }): Drafts<ReadError> => {
    const { cancelled, status } = head
    ends = status !== "cancelled" && status !== "completed" && status !== "running"
    if (cancelled !== undefined || status === "completed" || status === "cancelled") return nothing
    if (status === "running") return one(requested)
    return Effect.map(Stored.load(runId, entry.seq), (state) =>
      Descendants.has(state) ? [requested] : [requested, ...Descendants.cancelled(state, why)]
    )
  })
  return lift(Effect.andThen(request, Descendants.end(runId, why))).pipe(
    Effect.andThen(Effect.suspend(() => (ends ? told(runId) : Effect.void)))
  )
}

/** Tells those who watch of an end that no Attempt saw. */
const told = (runId: string): Effect.Effect<void> =>
  Effect.contextWith((context: Context.Context<never>) =>
    Effect.forEach(
      Plugin.collect(context).observers,
      ({ ended, name }) =>
        ended === undefined
          ? Effect.void
          : Effect.catchCause(ended(runId), (cause) => Effect.logWarning(`The observer ${name} failed.`, cause)),
      { discard: true }
    )
  )

type Drafts<E> = Effect.Effect<ReadonlyArray<Draft>, E, CheckpointStore>

/** Appends to a root. */
const append = <E>(runId: string, decide: (seen: Outside.Seen) => Drafts<E>) =>
  Outside.append(runId, (seen) => Effect.andThen(Route.root(runId, seen.head), decide(seen)))

const nothing: Effect.Effect<ReadonlyArray<Draft>> = Effect.succeed([])
const one = (draft: Draft): Effect.Effect<ReadonlyArray<Draft>> => Effect.succeed([draft])
