/**
 * What a worker process is told to do, as its one argument.
 */
import * as Schema from "effect/Schema"

export const Store = Schema.Union([
  Schema.TaggedStruct("Sqlite", { file: Schema.String }),
  Schema.TaggedStruct("Redis", { url: Schema.String, prefix: Schema.String })
])
export type Store = typeof Store.Type

/** One Run of several, with files of its own. */
export const Shared = Schema.Struct({ runId: Schema.String, ledger: Schema.String, trace: Schema.String })

export const effects = ["readonly", "idempotent", "unsafe"] as const

export const Job = Schema.Struct({
  store: Store,
  /** An O_APPEND file: one line per effect that took place. */
  ledger: Schema.String,
  /** Where what the processes of the Run meet is kept (Trace.ts); without one, there are no points. */
  trace: Schema.optionalKey(Schema.String),
  /** The agent has two others work for it, under a budget; all tools are unsafe then. */
  team: Schema.optionalKey(Schema.Boolean),
  /** The class of all tools of an agent that works alone. */
  effect: Schema.Literals(effects),
  /** Calls of one reply that run at once. */
  concurrency: Schema.Int,
  /** Runs to drive beside each other until each has ended or rests, in place of `runId`, `ledger` and `trace`. */
  runs: Schema.optionalKey(Schema.Array(Shared)),
  /** The Run to drive to its end; without any, the worker sweeps for `due` ones until it is told to stop. */
  runId: Schema.optionalKey(Schema.String),
  /** Points of the Run, counted from 0 over all processes that drive it: whoever passes one of them kills itself with SIGKILL. */
  deaths: Schema.optionalKey(Schema.Array(Schema.Int)),
  /** It stops itself with SIGSTOP right after its first effect, before the result can be committed. */
  freeze: Schema.optionalKey(Schema.Boolean),
  /** How long a tool takes before and after its effect. Default 2. */
  actMillis: Schema.optionalKey(Schema.Int)
})
export type Job = typeof Job.Type

export const encode = Schema.encodeSync(Schema.fromJsonString(Job))
export const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(Job))
