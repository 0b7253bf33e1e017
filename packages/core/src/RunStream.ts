/**
 * Lets a consumer watch a Run: while this process drives it, or from its journal in any process.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import type { Agent, Output, Services } from "./Agent.ts"
import { boundedStore } from "./Bounded.ts"
import { CheckpointStore, type StoreError } from "./CheckpointStore.ts"
import type { Hooks } from "./Drive.ts"
import * as Input from "./Input.ts"
import { type ReadError, readEvents } from "./Journal.ts"
import type { Entry } from "./Observer.ts"
import type { Outcome } from "./Outcome.ts"
import * as Outside from "./Outside.ts"
import { type InputInvalid, type Lift, lift, type RunNotFound } from "./RunError.ts"
import type { Committed, Delta, End, RunUpdate } from "./RunUpdate.ts"
import { resume, type ResumeError, type ResumeInput, start, type StartError, type StartInput } from "./Start.ts"

/** Updates that wait for a slow consumer. Beyond them deltas are lost; committed events are read again from the store. */
const capacity = 256
/** How often a journal is asked for more while its Run goes on elsewhere, unless the store gives a hint before. */
const pollEvery = "500 millis"
/** Events a page. */
const page = 1000

/**
 * Starts a Run and streams it: committed events with their seq, provisional deltas, and exactly one end. A slow consumer
 * never holds up the Run. Leaving the stream interrupts the Run, which can be resumed.
 */
export const stream = <A extends Agent>(
  agent: A,
  input: StartInput
): Stream.Stream<RunUpdate<Output<A>, StartError>, never, Services<A> | CheckpointStore> =>
  streamed(input.runId, (hooks) => start(agent, input, hooks))

/** Resumes a Run and streams it. */
export const streamResume = <A extends Agent>(
  agent: A,
  input: ResumeInput
): Stream.Stream<RunUpdate<Output<A>, ResumeError>, never, Services<A> | CheckpointStore> =>
  streamed(input.runId, (hooks) => resume(agent, input, hooks))

const streamed = <O, E, R>(
  runId: string,
  drive: (hooks: Hooks) => Effect.Effect<Outcome<O>, E, R>
): Stream.Stream<RunUpdate<O, E | Lift<ReadError>>, never, R | CheckpointStore> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const queue = yield* Queue.dropping<Committed | Delta, Cause.Done>(capacity)
      let last = 0
      const publish = (update: Committed | Delta) => void Queue.offerUnsafe(queue, update)
      const onCommit = (entries: ReadonlyArray<Entry>) => {
        for (const entry of entries) publish(committed(entry))
        last = entries.at(-1)?.seq ?? last
      }
      const fiber = yield* Effect.forkScoped(Effect.ensuring(drive({ onCommit, publish }), Queue.end(queue)))
      const gaps = filler(runId)
      const updates = Stream.mapEffect(Stream.fromQueue(queue), gaps.before<O, E>)
      const ended = Effect.flatMap(Fiber.await(fiber), (exit) =>
        Effect.map(
          Effect.catch(gaps.upTo(last), () => Effect.succeed<ReadonlyArray<Committed>>([])), // the end is known all the same
          (missed): ReadonlyArray<RunUpdate<O, E>> => [...missed, end(exit)]
        )
      )
      return Stream.flattenIterable(Stream.concat(updates, Stream.fromEffect(ended))).pipe(
        Stream.catch((error) => Stream.succeed({ _tag: "Failed" as const, error }))
      )
    })
  )

/** Remembers what a consumer has seen and reads what its queue had no room for from the store. */
const filler = (runId: string) => {
  let seen: number | undefined
  const upTo = (seq: number): Effect.Effect<ReadonlyArray<Committed>, Lift<ReadError>, CheckpointStore> =>
    seen === undefined || seq <= seen
      ? Effect.succeed([])
      : Effect.map(between(runId, seen, seq), (entries) => entries.map(committed))
  const before = <O, E>(
    update: Committed | Delta
  ): Effect.Effect<ReadonlyArray<RunUpdate<O, E>>, Lift<ReadError>, CheckpointStore> => {
    if (update._tag !== "Committed") return Effect.succeed([update])
    return Effect.map(upTo(update.seq - 1), (missed) => {
      seen = update.seq
      return [...missed, update]
    })
  }
  return { upTo, before }
}

const committed = ({ event, seq }: Entry): Committed => ({ _tag: "Committed", seq, event })

const end = <O, E>(exit: Exit.Exit<Outcome<O>, E>): End<O, E> => {
  if (Exit.isSuccess(exit)) return { _tag: "Ended", outcome: exit.value }
  const reason = exit.cause.reasons.find(Cause.isFailReason)
  if (reason === undefined) throw Cause.squash(exit.cause)
  return { _tag: "Failed", error: reason.error }
}

/** A store that is away for a moment costs a consumer nothing but time. */
const retries = Schedule.exponential("100 millis").pipe(Schedule.upTo({ times: 6 }))

const between = (
  runId: string,
  after: number,
  upTo: number
): Effect.Effect<ReadonlyArray<Entry>, Lift<ReadError>, CheckpointStore> =>
  lift(
    Effect.flatMap(boundedStore, (store) => {
      let entries: Array<Entry> = []
      const each = (entry: Entry) => {
        if (entry.seq === after + 1) entries = [] // a try that begins anew
        entries.push(entry)
      }
      const reading = Effect.map(readEvents(store, runId, { after, seq: upTo, each }), () => entries)
      return Effect.retry(reading, { schedule: retries, while: (error) => error._tag === "StoreUnavailable" })
    })
  )

/** How `events` can fail. */
export type EventsError = Lift<ReadError | StoreError | RunNotFound | InputInvalid>

export interface EventsInput {
  /** The last seq that was seen: a whole number from 0; another one fails with InputInvalid. Default 0. */
  readonly after?: number
  /** Go on with what is committed later, until the Run rests or ends. Default true. */
  readonly follow?: boolean
}

/**
 * The committed events of a Run, in any process; a consumer that lost its place goes on after the last seq (RI-127). It looks
 * for more twice a second, and at once when a store with `watch` hints that there may be some.
 */
export const events = (
  runId: string,
  { after = 0, follow = true }: EventsInput = {}
): Stream.Stream<Entry, EventsError, CheckpointStore> =>
  Stream.unwrap(
    Effect.map(Effect.andThen(lift(checked(after)), waker(runId)), (wait) =>
      Stream.paginate(after, (position) =>
        Effect.gen(function* () {
          const { entry, head } = yield* lift(Outside.look(runId))
          const upTo = Math.max(position, Math.min(entry.seq, position + page))
          const entries = upTo > position ? yield* between(runId, position, upTo) : []
          const over = upTo >= entry.seq && !(follow && head.status === "running")
          if (entries.length === 0 && !over) yield* wait
          return [entries, over ? Option.none() : Option.some(upTo)] as const
        })
      )
    )
  )

const checked = (after: number): Effect.Effect<void, InputInvalid> =>
  Number.isSafeInteger(after) && after >= 0
    ? Effect.void
    : Input.invalid("Run.events: after", after, "a whole number from 0")

/** Waits for the next hint of the store, or until it is time to look anyway: hints can be lost, and `watch` can end. */
const waker = Effect.fnUntraced(function* (runId: string) {
  const store = yield* CheckpointStore
  if (store.watch === undefined) return Effect.sleep(pollEvery)
  const hints = yield* Queue.sliding<void>(1)
  const told = Stream.runForEach(store.watch(runId), () => Queue.offer(hints, undefined))
  yield* Effect.forkScoped(Effect.ignoreCause(told))
  return Effect.asVoid(Effect.timeoutOption(Queue.take(hints), pollEvery))
})
