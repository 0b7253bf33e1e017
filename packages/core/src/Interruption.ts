/**
 * Stops what is running, from outside its fiber: a time limit, a cancel, a deadline or a lost lease.
 *
 * @since 0.1.0
 */
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type { OwnershipLost } from "./RunError.ts"

/**
 * Runs `effect` beside `monitor`; the first to end counts and the other is interrupted. Free if `effect` is synchronous.
 * It runs detached, since a parent would wait for a child that ignores its interruption.
 */
export const beside = <A, E, R, A2, E2, R2>(
  effect: Effect.Effect<A, E, R>,
  monitor: Effect.Effect<A2, E2, R2>
): Effect.Effect<A | A2, E | E2, R | R2> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(
      Effect.forkDetach(effect, { startImmediately: true }),
      (fiber): Effect.Effect<A | A2, E | E2, R | R2> => fiber.pollUnsafe() ?? firstOf(fiber, monitor, restore)
    )
  )

/** `Effect.raceFirst` of a fiber that runs already, with one fiber less. */
const firstOf = <A, E, A2, E2, R2>(
  fiber: Fiber.Fiber<A, E>,
  monitor: Effect.Effect<A2, E2, R2>,
  restore: <B, F>(effect: Effect.Effect<B, F>) => Effect.Effect<B, F>
): Effect.Effect<A | A2, E | E2, R2> =>
  Effect.flatMap(Effect.forkDetach(monitor, { startImmediately: true }), (watching) => {
    const first = Effect.callback<A | A2, E | E2>((resume) => {
      fiber.addObserver(resume)
      watching.addObserver(resume)
    })
    return Effect.onExit(restore(first), () => Effect.andThen(Fiber.interrupt(watching), letGo(fiber)))
  })

/** How long something that is interrupted may take to end; after that nobody waits for it any more. */
const grace = Duration.seconds(1)

/** Interrupts a fiber and waits for its end, but not for one that ignores it. Safe where nothing can be interrupted. */
export const letGo = (fiber: Fiber.Fiber<unknown, unknown>): Effect.Effect<void> =>
  Effect.suspend(() => {
    fiber.interruptUnsafe()
    if (fiber.pollUnsafe() !== undefined) return Effect.void
    return Effect.flatMap(Effect.forkDetach(Effect.sleep(grace)), (timer) =>
      Effect.callback<void>((resume) => {
        const done = () => resume(Effect.void)
        timer.addObserver(done)
        fiber.addObserver(() => {
          timer.interruptUnsafe()
          done()
        })
      })
    )
  })

/** Interrupts `effect` after `duration` and goes on with `onTimeout`. */
export const within = <A, E, R, A2, E2, R2>(
  effect: Effect.Effect<A, E, R>,
  duration: Duration.Duration,
  onTimeout: Effect.Effect<A2, E2, R2>
): Effect.Effect<A | A2, E | E2, R | R2> => beside(effect, Effect.andThen(Effect.sleep(duration), onTimeout))

/**
 * `retry(effect)`, set up only when the first try has failed: a schedule costs more than most tries. The retry is given
 * an effect that fails with that failure first.
 */
export const ifFails = <A, E, R, E2, R2>(
  effect: Effect.Effect<A, E, R>,
  retry: (effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E2, R2>
): Effect.Effect<A, E2, R | R2> =>
  Effect.catch(effect, (error) => {
    let first: Effect.Effect<A, E, R> | undefined = Effect.fail(error)
    return retry(
      Effect.suspend(() => {
        const next = first ?? effect
        first = undefined
        return next
      })
    )
  })

/** What was running was stopped; the state says why. */
export class Halted extends Data.TaggedError("Halted")<{}> {}

/** Why an Attempt can stop what it runs: the state says it, or it has lost the Run. */
export type Halt = Halted | OwnershipLost

/** What an Attempt is doing that can be stopped. */
export type Phase = "model" | "retry" | "tool" | "guard"

/** Lets the watch of an Attempt stop what its loop waits for, without interrupting the loop itself. */
export class Stoppable {
  /** What runs, and how to stop waiting for it. */
  private readonly running = new Map<Fiber.Fiber<unknown, unknown>, () => void>()
  private halted: Halt | undefined
  /** The tools that began or ended since the watch looked last. */
  readonly lately = new Set<string>()
  /** The last phase that was entered. */
  phase: Phase = "guard"

  /** True while something runs that can be stopped. */
  get active(): boolean {
    return this.running.size > 0
  }

  /** Interrupts all that runs, waits a moment for what ignores it, and lets nothing start any more. */
  halt(why: Halt): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.halted !== undefined) return Effect.void
      this.halted = why
      const abandoned = Effect.map(Effect.sleep(grace), () => {
        for (const abandon of this.running.values()) abandon()
      })
      for (const fiber of this.running.keys()) fiber.interruptUnsafe()
      return Effect.asVoid(Effect.forkDetach(abandoned))
    })
  }

  /** Runs `effect` until it ends or is halted. Detached, like `beside`. */
  run<A, E, R>(phase: Phase, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | Halt, R> {
    return Effect.uninterruptibleMask((restore) => {
      if (this.halted !== undefined) return Effect.fail(this.halted)
      this.phase = phase
      return Effect.flatMap(
        Effect.forkDetach(effect, { startImmediately: true }),
        (fiber): Effect.Effect<A, E | Halt> => fiber.pollUnsafe() ?? this.join(fiber, restore)
      )
    })
  }

  private join<A, E>(
    fiber: Fiber.Fiber<A, E>,
    restore: (effect: Effect.Effect<A, E | Halt>) => Effect.Effect<A, E | Halt>
  ): Effect.Effect<A, E | Halt> {
    const ended = Effect.callback<A, E | Halt>((resume) => {
      const stopped = () => Effect.fail(this.halted ?? new Halted())
      this.running.set(fiber, () => resume(stopped()))
      fiber.addObserver((exit) => resume(this.halted !== undefined && Exit.hasInterrupts(exit) ? stopped() : exit))
    })
    return restore(ended).pipe(
      Effect.onInterrupt(() => letGo(fiber)),
      Effect.ensuring(Effect.sync(() => this.running.delete(fiber)))
    )
  }
}
