/**
 * Lets a tool say what became of a call that had started when its process died.
 *
 * @example
 * const PayReconcile = Reconcile.layer(Pay, ({ key }) => bank.find(key))
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Tool from "effect/ai/Tool"

export type Reconciled<Success = unknown> =
  /** It happened; `result` is a value of the tool's success schema. */
  | { readonly _tag: "Done"; readonly result: Success }
  /** It did not happen, and never will: final only if the target honours the key. Else say `Unknown`. */
  | { readonly _tag: "NeverStarted" }
  | { readonly _tag: "Unknown" }

export interface Input {
  /** The idempotency key that the lost execution had. */
  readonly key: string
  /** Encoded. */
  readonly arguments: unknown
}

type Stored = (input: Input) => Effect.Effect<Reconciled>

const keyOf = (name: string): string => `@waystone/core/Reconcile/${name}`

/** Switches reconciling on for a tool. Asked once per lost execution; a defect counts as `Unknown`. */
export const layer = <T extends Tool.Any, R = never>(
  tool: T,
  reconcile: (input: Input) => Effect.Effect<Reconciled<Tool.Success<T>>, never, R>
): Layer.Layer<never, never, R> =>
  Layer.effectContext(
    Effect.contextWith((context: Context.Context<R>) => {
      const stored: Stored = (input) => Effect.provideContext(reconcile(input), context)
      return Effect.succeed(Context.makeUnsafe<never>(new Map([[keyOf(tool.name), stored]])))
    })
  )

/** The reconciler of a tool, if there is one. */
export const find = (context: Context.Context<never>, name: string): Stored | undefined =>
  context.mapUnsafe.get(keyOf(name))
