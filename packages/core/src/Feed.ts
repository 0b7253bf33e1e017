/**
 * Hands committed events to observers without ever holding up the Run.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import { letGo } from "./Interruption.ts"
import type { AttemptInfo, Entry, Observer } from "./Observer.ts"

/** How many events wait for one observer. */
const capacity = 1024
/** How long the end of an Attempt waits for its observers. */
const drain = "1 second"
/** How long they may go on after that by themselves: a process that is busy with many Runs lets none of them work for a while. */
const afterwards = "1 minute"

/** Takes what is committed. Synchronous: it is called in the middle of a commit. */
export type Offer = (entries: ReadonlyArray<Entry>) => void

/** Starts the observers of one Attempt. */
export const make = (observers: ReadonlyArray<Observer>, info: AttemptInfo): Effect.Effect<Offer, never, Scope.Scope> =>
  Effect.map(
    Effect.forEach(observers, (observer) => one(observer, info)),
    (offers) => (entries) => {
      for (const offer of offers) offer(entries)
    }
  )

const one = Effect.fnUntraced(function* (
  observer: Observer,
  info: AttemptInfo
): Effect.fn.Return<Offer, never, Scope.Scope> {
  const queue = yield* Queue.dropping<Entry, Cause.Done>(capacity)
  const consume = Effect.gen(function* () {
    const handle = yield* observer.attempt(info)
    while (true) yield* handle(yield* Queue.take(queue))
  })
  const safely = Effect.catchCause(Effect.scoped(consume), (cause) =>
    isDone(cause) ? Effect.void : failed(observer, cause)
  )
  const fiber = yield* Effect.forkDetach(safely)
  const late = Effect.gen(function* () {
    if (Option.isSome(yield* Effect.timeoutOption(Fiber.await(fiber), afterwards))) return
    yield* missed(observer, yield* Queue.size(queue))
    yield* letGo(fiber)
  })
  let dropped = 0
  yield* Effect.addFinalizer(() =>
    Effect.andThen(Queue.end(queue), Effect.timeoutOption(Fiber.await(fiber), drain)).pipe(
      Effect.flatMap((ended) => (Option.isSome(ended) ? Effect.void : Effect.forkDetach(late))),
      Effect.andThen(Effect.suspend(() => (dropped === 0 ? Effect.void : missed(observer, dropped))))
    )
  )
  return (entries) => {
    for (const entry of entries) if (!Queue.offerUnsafe(queue, entry)) dropped++
  }
})

const isDone = (cause: Cause.Cause<unknown>): boolean =>
  cause.reasons.every((reason) => Cause.isFailReason(reason) && Cause.isDone(reason.error))

const missed = ({ name }: Observer, count: number): Effect.Effect<void> =>
  Effect.logWarning(`The observer ${name} was too slow for ${count} events of this attempt; the journal has them.`)

const failed = ({ name }: Observer, cause: Cause.Cause<unknown>): Effect.Effect<void> =>
  Effect.logWarning(`The observer ${name} failed and gets no more events of this attempt; the Run goes on.`, cause)
