/**
 * Tells the Attempts of a process that it is about to end: each lets go of its Run before it begins something new.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"

export interface Draining {
  /** True from the moment on that nothing new may begin; never false again. */
  readonly begun: () => boolean
}

/** Never, unless a worker says so. */
export const Draining: Context.Reference<Draining> = Context.Reference("@waystone/core/Draining", {
  defaultValue: (): Draining => ({ begun: () => false })
})
