/**
 * How the command says that something is wrong: one line on standard error, without a stack.
 */
import * as Effect from "effect/Effect"
import * as Runtime from "effect/Runtime"
import * as Schema from "effect/Schema"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"

/** It did not come to a good end: not repaired, not proven, not possible. Everything was said, so it is not reported again. */
export class NotRepaired extends Schema.TaggedError<NotRepaired>()("NotRepaired", {}) {
  override readonly [Runtime.errorExitCode] = 1
  override readonly [Runtime.errorReported] = false
}

/** What is asked for makes no sense, or cannot be done. */
export class Unusable extends Schema.TaggedError<Unusable>()("Unusable", { message: Schema.String }) {}

const complain = Effect.fnUntraced(function* (message: string) {
  const stdio = yield* Stdio.Stdio
  const line = message.replaceAll(/\s*\n\s*/g, " ")
  yield* Effect.ignore(Stream.run(Stream.succeed(`demo: ${line}\n`), stdio.stderr()))
  return yield* new NotRepaired()
})

interface Spoken {
  readonly _tag: string
  readonly message: string
}

/** Says every error in a line, but for those that were said before and a reader that went away. */
export const spoken = <A, E extends Spoken, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.catchIf(
    effect,
    (error) => error._tag !== "NotRepaired" && error._tag !== "OutputClosed",
    ({ message }) => complain(message)
  )
