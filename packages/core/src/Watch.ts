/**
 * Looks after a driven Run from beside its loop: commits what is old, renews the lease, notices outside events, and
 * stops what runs when the Run is cancelled or its time is over.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { type Attempt, leaseMillis } from "./Attempt.ts"
import * as Deadline from "./Deadline.ts"
import { Halted } from "./Interruption.ts"
import { gone, type JournalError } from "./Journal.ts"
import { OwnershipLost } from "./RunError.ts"

/** An event waits at most this long for its append (SPEC 6). */
const flushMillis = 250
/** How often the head is looked at while a model or a tool runs (SPEC 6). */
const pollMillis = 500

/** Runs until it is interrupted. It never fails: what it finds reaches the loop as a halt. */
export const make = (attempt: Attempt): Effect.Effect<never> =>
  Effect.suspend(() => {
    let polled = attempt.now()
    const work = (due: number): Effect.Effect<void> => {
      const now = attempt.now()
      const tasks: Array<Effect.Effect<void>> = []
      if (now - due > leaseMillis / 2) tasks.push(blocked(attempt, now - due))
      attempt.stoppable.lately.clear()
      if (isOld(attempt, now)) tasks.push(guarded(attempt, attempt.journal.commit))
      if (attempt.lease.left() <= (leaseMillis * 2) / 3) tasks.push(guarded(attempt, attempt.lease.renew))
      if (attempt.stoppable.active) {
        if (now - polled >= pollMillis) {
          polled = now
          tasks.push(guarded(attempt, poll(attempt)))
        }
        tasks.push(guarded(attempt, stop(attempt)))
      }
      return tasks.length === 0 ? Effect.void : Effect.all(tasks, { discard: true })
    }
    const tick = Effect.suspend(() => {
      const millis = untilNext(attempt)
      const due = attempt.now() + millis
      return Effect.flatMap(Effect.sleep(millis), () => work(due))
    })
    return Effect.forever(tick)
  })

/** Looks at once where the store says that something may have changed. A hint that fails costs nothing but its speed. */
export const hints = (attempt: Attempt): Effect.Effect<void> => {
  const { runId, store } = attempt
  if (store.watch === undefined) return Effect.void
  const look = guarded(attempt, Effect.andThen(poll(attempt), stop(attempt)))
  return Effect.ignore(Stream.runForEach(store.watch(runId), () => look))
}

/** Until the next thing to do: an old event, the next look, the deadline; at most `flushMillis`. */
const untilNext = (attempt: Attempt): number => {
  const now = attempt.now()
  const { oldest } = attempt.journal
  const flush = oldest === undefined ? flushMillis : oldest + flushMillis - now
  const left = Deadline.remaining(attempt)
  return Math.max(1, Math.min(flush, flushMillis, left > 0 ? left : flushMillis))
}

const isOld = ({ journal }: Attempt, now: number): boolean =>
  journal.oldest !== undefined && now - journal.oldest >= flushMillis

const poll = ({ journal, runId, store }: Attempt): Effect.Effect<unknown, JournalError> =>
  Effect.flatMap(store.head(runId), (head): Effect.Effect<unknown, JournalError> => {
    if (head === undefined) return journal.committedSeq > 0 ? Effect.fail(gone(runId)) : Effect.void
    if (journal.committedSeq > 0 && !journal.isOurs(head)) return Effect.fail(new OwnershipLost({ runId }))
    return head.seq > journal.committedSeq ? journal.refresh : Effect.void
  })

/** A store that is away is asked again at the next tick; a lost lease stops everything. */
const guarded = (attempt: Attempt, effect: Effect.Effect<unknown, JournalError>): Effect.Effect<void> =>
  Effect.matchEffect(effect, {
    onSuccess: () => Effect.void,
    onFailure: (error) =>
      error._tag === "OwnershipLost" ? attempt.stoppable.halt(error) : Effect.logDebug(error.message)
  }).pipe(Effect.catchDefect((defect) => Effect.logWarning(`Run ${attempt.runId}: its store failed`, defect)))

/** Stops what runs when nothing may go on. */
const stop = (attempt: Attempt): Effect.Effect<void, JournalError> =>
  Effect.suspend(() => {
    const { journal, stoppable } = attempt
    if (!stoppable.active) return Effect.void
    if (journal.state.head.cancelled !== undefined) return stoppable.halt(new Halted())
    if (Deadline.remaining(attempt) > 0) return Effect.void
    return Effect.flatMap(Deadline.check(attempt, stoppable.phase), (over) =>
      over ? stoppable.halt(new Halted()) : Effect.void
    )
  })

/** A handler that does not yield keeps the lease from being renewed; say which one it was. */
const blocked = ({ journal, runId, stoppable }: Attempt, millis: number): Effect.Effect<void> => {
  const running = journal.state.calls.filter((call) => call.status === "started" || call.status === "requested")
  const names = [...new Set([...running.map((call) => call.name), ...stoppable.lately])].join(", ") || "no tool"
  return Effect.logWarning(
    `Run ${runId}: the event loop was blocked for ${Math.round(millis)} ms while ${names} ran. ` +
      `After ${leaseMillis} ms the lease is lost; move blocking work off the event loop.`
  )
}
