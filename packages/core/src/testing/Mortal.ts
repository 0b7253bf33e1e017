/**
 * Stands for a process that can die: once it is dead, nothing that was guarded by it goes on or begins.
 *
 * SIGKILL runs no finalizers and gives no answers. So a guarded effect of a dead process neither fails nor is
 * interrupted from its caller's view: it never ends.
 *
 * @since 0.1.0
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"

export interface Mortal {
  readonly isDead: () => boolean
  /** Kills the process; never ends, since whoever calls it is part of it. */
  readonly die: Effect.Effect<never>
  /** Ends when the process is dead. */
  readonly died: Effect.Effect<void>
  /** Runs an effect as a part of the process. What is under way when it dies is interrupted at once. */
  readonly guard: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

/** A process that lives. */
export const make: Effect.Effect<Mortal> = Effect.sync(() => {
  const death = Deferred.makeUnsafe<void>()
  const died = Deferred.await(death)
  const isDead = () => Deferred.isDoneUnsafe(death)
  return {
    isDead,
    die: Effect.andThen(Deferred.succeed(death, undefined), Effect.never),
    died,
    guard: (effect) =>
      Effect.suspend(() => {
        if (isDead()) return Effect.never
        const first = Effect.raceFirst(Effect.exit(effect), died)
        return Effect.flatMap(first, (exit) => (exit === undefined || isDead() ? Effect.never : exit))
      })
  }
})
