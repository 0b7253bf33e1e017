/**
 * Prints what happens while it happens.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Runtime from "effect/Runtime"
import * as Schema from "effect/Schema"
import * as Ref from "effect/Ref"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import * as TerminalCapabilities from "effect/cli/TerminalCapabilities"
import * as JsonLines from "./JsonLines.ts"
import * as Pretty from "./Pretty.ts"
import type { Shown } from "./Shown.ts"
import * as Style from "./Style.ts"

/** Nobody reads what is printed any more, as in `npm run demo | head`. Ends as other programs do: 128 + SIGPIPE, silently. */
export class OutputClosed extends Schema.TaggedError<OutputClosed>()("OutputClosed", {}) {
  static readonly code = 141
  override readonly [Runtime.errorExitCode] = OutputClosed.code
  override readonly [Runtime.errorReported] = false
}

export class View extends Context.Service<
  View,
  { readonly show: (shown: Shown) => Effect.Effect<void, OutputClosed> }
>()("demo/View") {
  /** Writes to standard output; colours only where `NO_COLOR` and the terminal allow them. */
  static readonly layer = ({ json }: { readonly json: boolean }): Layer.Layer<View, never, Stdio.Stdio> =>
    Layer.effect(View, json ? jsonLines : pretty).pipe(Layer.provide(TerminalCapabilities.layer))
}

/** Writes text to standard output. */
export const write = Effect.map(
  Stdio.Stdio,
  (stdio) => (text: string) =>
    Effect.mapError(Stream.run(Stream.succeed(text), stdio.stdout()), () => new OutputClosed())
)

const jsonLines = Effect.map(write, (write) => View.of({ show: (shown) => write(JsonLines.line(shown)) }))

const pretty = Effect.gen(function* () {
  const out = yield* write
  const { canColor } = yield* TerminalCapabilities.TerminalCapabilities
  const next = Pretty.next(canColor ? Style.colours : Style.plain)
  const printed = yield* Ref.make(Pretty.nothing)
  return View.of({
    show: Effect.fnUntraced(function* (shown) {
      const [now, text] = next(yield* Ref.get(printed), shown)
      yield* Ref.set(printed, now)
      if (text !== "") yield* out(text)
    })
  })
})
