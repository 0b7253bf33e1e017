/**
 * Builds the index anew where a part of it was lost, from the heads of the Runs.
 *
 * Invariants
 *   B1  One process builds, the others wait; one that dies in the middle is followed by another.
 *   B2  Who asks waits for it, but not longer than core waits for a store; it goes on, and the next one who asks waits on.
 *
 * @since 0.1.0
 */
import { type CheckpointStore, RunError } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as WebCrypto from "effect/crypto/WebCrypto"
import * as Repair from "./Repair.ts"
import * as RunIndex from "./RunIndex.ts"
import { begin, going } from "./scripts/build.ts"

/** Comes back when these sets are whole; true if it was this process that built them. */
export type Rebuild = (sets: ReadonlyArray<string>) => Effect.Effect<boolean, CheckpointStore.StoreError>

/** How long others leave it to one that builds and says nothing. Each part takes some 10 ms, and core waits 5 s for any command. */
const ttlMillis = 10_000
/** How long after one look at somebody else's building the next one comes. */
const pause = "100 millis"
/** Enough below core's 5 s that this answer comes first. */
const patience = "4 seconds"

export const make = (deps: RunIndex.Deps): Effect.Effect<Rebuild, never, Scope.Scope> =>
  Effect.gen(function* () {
    const scope = yield* Effect.scope
    const alone = yield* Semaphore.make(1)
    const builder = yield* WebCrypto.WebCrypto.use((crypto) => Effect.sync(() => crypto.randomUUID()))
    return (sets) => {
      const build = Effect.ensuring(Effect.interruptible(building(deps, builder, sets)), alone.release(1))
      return Effect.uninterruptibleMask((restore) =>
        Effect.flatMap(Effect.andThen(restore(alone.take(1)), Effect.forkIn(build, scope)), (fiber) =>
          restore(Fiber.join(fiber))
        )
      ).pipe(Effect.timeoutOrElse({ duration: patience, orElse: () => notYet }))
    }
  })

const notYet = Effect.failSync(
  () =>
    new RunError.StoreUnavailable({
      detail:
        "the index of Runs on Redis was lost in part and is built anew from their heads. Come back in some seconds"
    })
)

const lost = Effect.logWarning(
  "A part of the index of Runs on Redis was lost (a key was deleted, evicted or overwritten?). It is built anew from the Runs."
)

const building = Effect.fnUntraced(function* (
  deps: RunIndex.Deps,
  builder: string,
  sets: ReadonlyArray<string>
): Effect.fn.Return<boolean, CheckpointStore.StoreError> {
  const { command, keys, redis } = deps
  const asked = { sets: sets.map(keys.index), mark: keys.mark, builder, ttlMillis }
  while (true) {
    const [found, ...wrong] = yield* command("", redis.eval(begin)(asked))
    if (found === "whole") return false
    if (found !== "busy") {
      yield* RunIndex.overwritten(wrong)
      if (found === "lost") yield* lost
      if (yield* built(deps, builder)) return true
    }
    yield* Effect.sleep(pause)
  }
})

/** False if another one builds since. */
const built = Effect.fnUntraced(function* (
  deps: RunIndex.Deps,
  builder: string
): Effect.fn.Return<boolean, CheckpointStore.StoreError> {
  const { command, keys, redis } = deps
  const goes = (ttlMillis: number | undefined) =>
    Effect.map(command("", redis.eval(going)({ mark: keys.mark, builder, ttlMillis })), (reply) => reply === 1)
  const all = Effect.gen(function* () {
    let cursor = yield* Repair.from(deps, "0")
    while (cursor !== "0") {
      if (!(yield* goes(ttlMillis))) return false
      cursor = yield* Repair.from(deps, cursor)
    }
    return yield* goes(undefined)
  })
  // Nobody need wait for one that has given up.
  return yield* Effect.onError(all, () => Effect.ignore(goes(0)))
})
