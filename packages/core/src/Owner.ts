/**
 * Says who drives a Run, and whether such an owner is dead.
 *
 * Core runs anywhere, so by default an owner is a random name of which nothing is known: its lease must end. A Layer for
 * the platform can know better (boot id, pid namespace, pid and start time), so that a restart takes over at once.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as WebCrypto from "effect/crypto/WebCrypto"

export interface Owner {
  /** A new name for one Attempt; no two are equal. */
  readonly name: Effect.Effect<string>
  /** True only if an owner of that name can never act again. When in doubt: false. */
  readonly isDead: (owner: string) => Effect.Effect<boolean>
}

export const Owner: Context.Reference<Owner> = Context.Reference("@waystone/core/Owner", {
  defaultValue: (): Owner => ({
    name: WebCrypto.WebCrypto.use((crypto) => Effect.sync(() => `anonymous ${crypto.randomUUID()}`)),
    isDead: () => Effect.succeed(false)
  })
})
