/**
 * Stops calling a tool that is down, and says so at once: the circuit breaker of effect, one circuit per tool and key.
 *
 * It sits inside of core's retries, so each try counts. Circuits live as long as the Layer, over all Runs that it serves;
 * what a Run got stands in its journal.
 *
 * Invariants
 *   B1  Only what says that the tool is away counts: `ToolError.retryable`, a timeout, an unknown outcome, and the errors
 *       that are named. Wrong arguments and files that are not there say that it works.
 *   B2  A call that is not made was not made: its result says so, and it is not tried again while the circuit is open.
 *   B3  Where the store of the circuits is away, calls are made.
 *
 * @since 0.1.0
 */
import { type Interceptor, Plugin } from "@waystone/core"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as CircuitBreaker from "effect/persistence/CircuitBreaker"
import type { OptionsInvalid } from "./OptionsInvalid.ts"
import * as Settings from "./Settings.ts"

const name = "breaker"

const seconds = (minimum: number, maximum: number) => Schema.Finite.check(Schema.isBetween({ minimum, maximum }))

/** How one circuit behaves. All of it may be left out. */
export const Circuit = Schema.Struct({
  /** Failures in a row that open it; 1 to 1000. Default 5: more than the three tries that core makes of one call. */
  failures: Settings.withDefault(Settings.whole(1, 1000), 5),
  /** Seconds until one call may try again; 0.001 to 86,400. Default 30: a restart of a service takes about that. */
  openSeconds: Settings.withDefault(seconds(0.001, 86_400), 30),
  /**
   * The name of a text argument that tells circuits apart, such as a host: one that is down leaves the others alone.
   * Default: one circuit for the tool.
   */
  key: Schema.optionalKey(Schema.String),
  /** Names of the tool's errors (their `_tag`) that count as well. Default none. */
  errors: Settings.withDefault(Schema.Array(Schema.String), [])
})

/** All of them may be left out. */
export const Options = Schema.Struct({
  ...Circuit.fields,
  /** By tool, what is different for it; what is left out there has the defaults above. */
  tools: Settings.withDefault(Schema.Record(Schema.String, Circuit), {})
})
export type Options = typeof Options.Encoded

interface Guarded {
  readonly breaker: CircuitBreaker.CircuitBreaker
  readonly circuit: typeof Circuit.Type
}

const make = (circuit: typeof Circuit.Type) =>
  Effect.map(
    CircuitBreaker.make({
      tripPolicy: CircuitBreaker.consecutive(circuit.failures),
      openDuration: Duration.seconds(circuit.openSeconds)
    }),
    (breaker): Guarded => ({ breaker, circuit })
  )

const interceptor = (all: Guarded, tools: ReadonlyMap<string, Guarded>): Interceptor.Interceptor => ({
  name,
  stage: "breaker",
  tool: (info, next) => {
    const { breaker, circuit } = tools.get(info.name) ?? all
    return next.pipe(
      breaker.execute({
        key: keyOf(info, circuit.key),
        classify: (exit) => (Exit.isSuccess(exit) ? classify(circuit.errors, exit.value) : CircuitBreaker.ignored)
      }),
      // A store that is away lets calls through: its error never comes here.
      Effect.catchTag("CircuitBreakerError", ({ reason }) =>
        reason._tag === "CircuitBreakerStoreError"
          ? Effect.die(reason)
          : Effect.succeed(refused(info.name, circuit.failures, reason))
      )
    )
  }
})

/** UTF-16 units of a key: it is a name, and a store may hold it. */
const maxKey = 200

const keyOf = ({ arguments: args, name }: Interceptor.ToolInfo, field: string | undefined): string => {
  if (field === undefined || typeof args !== "object" || args === null) return name
  const value: unknown = Object.hasOwn(args, field)
    ? Object.entries(args).find(([key]) => key === field)?.[1]
    : undefined
  return typeof value === "string" ? `${name} ${value.slice(0, maxKey)}` : name
}

const classify = (
  errors: ReadonlyArray<string>,
  { error, isFailure, kind }: Interceptor.ToolOutput
): CircuitBreaker.Outcome => {
  if (kind === "interrupted") return CircuitBreaker.ignored
  const away = kind === "retry" || (isFailure && (error === "Timeout" || errors.includes(error ?? "")))
  return away ? CircuitBreaker.failure() : CircuitBreaker.success
}

const refused = (
  tool: string,
  failures: number,
  reason: CircuitBreaker.CircuitOpen | CircuitBreaker.CircuitHalfOpen
): Interceptor.ToolOutput => {
  const why =
    reason._tag === "CircuitOpen"
      ? `it failed ${failures} times in a row and is left alone for ${Duration.format(Duration.seconds(Math.ceil(Duration.toSeconds(reason.retryAfter))))} more`
      : "it failed many times in a row, and another call is finding out whether it works again"
  return {
    isFailure: true,
    result: { error: `${tool} was not called: ${why}. Do something else first, or say that it is not available.` },
    error: reason._tag
  }
}

/** Switches it on; an agent that `requires` it does not run without. */
export class Breaker extends Context.Service<Breaker, Plugin.Plugin>()("@waystone/policy/Breaker") {
  /** With circuits that processes share, or that a test looks at. Fails where an option is out of range. */
  static readonly layerStored = (
    options: Options = {}
  ): Layer.Layer<Breaker, OptionsInvalid, CircuitBreaker.CircuitBreakerStore> =>
    Layer.effect(
      Breaker,
      Effect.gen(function* () {
        const { tools, ...circuit } = yield* Settings.decode("Breaker", Options, options)
        const own = yield* Effect.forEach(Object.entries(tools), ([tool, circuit]) =>
          Effect.map(make(circuit), (guarded) => [tool, guarded] as const)
        )
        return { [Plugin.PluginId]: { name, interceptors: [interceptor(yield* make(circuit), new Map(own))] } }
      })
    )

  /** With circuits in the memory of this process. Fails where an option is out of range. */
  static readonly layer = (options: Options = {}): Layer.Layer<Breaker, OptionsInvalid> =>
    Layer.provide(Breaker.layerStored(options), CircuitBreaker.layerStoreMemory())
}

/** Switches it on. */
export const { layer, layerStored } = Breaker
