/**
 * Prepares a tool once per agent: its effect class, wire name, codecs and digest.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Tool from "effect/ai/Tool"
import type * as Toolkit from "effect/ai/Toolkit"
import { defined } from "./Defined.ts"
import { sha256 } from "./Digest.ts"
import * as Limits from "./Limits.ts"
import type { EffectClass, ToolRecord } from "./RunEvent.ts"
import * as SubAgent from "./SubAgent.ts"
import * as ToolName from "./ToolName.ts"
import * as ToolOptions from "./ToolOptions.ts"

/** Fails with a SchemaError, or with whatever a schema throws (RI-122). */
type Codec = (input: unknown) => Effect.Effect<unknown, unknown>

export interface AgentTool {
  /** As declared; `wire` is the name that the model sees. */
  readonly name: string
  readonly wire: string
  readonly tool: Tool.Any
  readonly effect: EffectClass
  readonly external: boolean
  /** Explicitly annotated as such. */
  readonly destructive: boolean
  readonly openWorld: boolean
  readonly sequential: boolean
  /** The agent that a call starts a Run of; such a tool has no handler. */
  readonly child: SubAgent.SubAgent | undefined
  readonly retryTimeout: boolean
  readonly timeout: Duration.Duration
  /** Encoded arguments to what the handler takes. Called once per execution (RI-036). */
  readonly decode: Codec
  readonly encodeSuccess: Codec
  readonly encodeFailure: Codec
  /** An encoded success, from outside, to a value: only to see that it is one. */
  readonly decodeSuccess: Codec
  readonly record: Effect.Effect<ToolRecord>
}

/** Prepares a tool. Schemas are compiled at first use. */
export const make = (tool: Tool.Any): AgentTool => {
  const read = <A>(annotation: Context.Reference<A>): A => Context.get(tool.annotations, annotation)
  const effect: EffectClass = read(Tool.Readonly) ? "readonly" : read(Tool.Idempotent) ? "idempotent" : "unsafe"
  const wire = ToolName.toWire(tool.name)
  const external = read(ToolOptions.External)
  const child = read(SubAgent.Annotation)
  // What a sub-agent says may come from whatever its own tools read.
  const reads = child?.agent.tools.some(({ openWorld }) => openWorld) === true
  // Tool.Any hides which services its schemas need; the Run's context has them, by the type of RunR.
  const success = Schema.toCodecJson(tool.successSchema as Schema.Codec<unknown>)
  const failure = Schema.toCodecJson(tool.failureSchema as Schema.Codec<unknown>)
  // The model is told how they look in JSON, so that is how they come: a Date as text (RI-063).
  const parameters = Schema.toCodecJson(tool.parametersSchema as Schema.Codec<unknown>)
  return {
    name: tool.name,
    wire,
    tool,
    effect,
    external,
    destructive: tool.annotations.mapUnsafe.has(Tool.Destructive.key) && read(Tool.Destructive),
    openWorld: (tool.annotations.mapUnsafe.has(Tool.OpenWorld.key) && read(Tool.OpenWorld)) || reads,
    sequential: read(ToolOptions.Sequential),
    child,
    retryTimeout: read(ToolOptions.RetryTimeout),
    timeout: Limits.duration(read(ToolOptions.Timeout)),
    decode: lazy(() => Schema.decodeUnknownEffect(parameters)),
    encodeSuccess: lazy(() => Schema.encodeUnknownEffect(success)),
    encodeFailure: lazy(() => Schema.encodeUnknownEffect(failure)),
    decodeSuccess: lazy(() => Schema.decodeUnknownEffect(success)),
    record: Effect.map(
      Effect.suspend(() => sha256([tool.name, tool.description ?? "", Tool.getJsonSchema(tool)])),
      (digest) => ({
        digest,
        effect,
        ...(wire === tool.name ? undefined : { wire }),
        ...explicit(tool, "openWorld", Tool.OpenWorld),
        ...(reads ? { openWorld: true } : undefined),
        ...explicit(tool, "destructive", Tool.Destructive),
        ...(external ? { external } : undefined),
        ...(read(ToolOptions.Polling) ? { polling: true } : undefined),
        ...(child === undefined ? undefined : { agent: child.agent.name, ...defined({ share: child.share }) })
      })
    )
  }
}

/** effect/ai's defaults are the most pessimistic ones, so only what the author wrote down counts (SPEC 5). */
const explicit = (tool: Tool.Any, name: "openWorld" | "destructive", annotation: Context.Reference<boolean>) =>
  tool.annotations.mapUnsafe.has(annotation.key) ? { [name]: Context.get(tool.annotations, annotation) } : undefined

/** A tool whose codecs ask for no services: a request only describes it, and the Run's context has them anyway. */
type WireTool = Tool.Tool<
  string,
  {
    readonly parameters: Schema.Codec<unknown>
    readonly success: Schema.Codec<unknown>
    readonly failure: Schema.Codec<unknown>
    readonly failureMode: Tool.FailureMode
  }
>
export type WireToolkit = Toolkit.WithHandler<Record<string, WireTool>>

/** What a request tells the model: the tools under their wire names. It cannot run one (M2). */
export const wireToolkit = (tools: ReadonlyArray<AgentTool>): WireToolkit =>
  describing(tools.map(({ tool, wire }) => renamed(tool, wire)))

/** A toolkit that tells a model of these tools and runs none. */
export const describing = (tools: ReadonlyArray<Tool.Any>): WireToolkit => ({
  tools: Object.fromEntries(tools.map((tool) => [tool.name, tool as WireTool])),
  handle: () => Effect.die(new Error("a model call never runs a tool"))
})

const renamed = (tool: Tool.Any, name: string): Tool.Any =>
  name === tool.name ? tool : Object.assign(Object.create(Object.getPrototypeOf(tool)), tool, { name })

/** The records of all tools, by name; made once. */
export const records = (tools: ReadonlyArray<AgentTool>): Effect.Effect<{ readonly [name: string]: ToolRecord }> => {
  let known: { readonly [name: string]: ToolRecord } | undefined
  return Effect.suspend(() =>
    known !== undefined
      ? Effect.succeed(known)
      : Effect.map(
          Effect.forEach(tools, ({ name, record }) => Effect.map(record, (made) => [name, made] as const)),
          (made) => {
            known = Object.fromEntries(made)
            return known
          }
        )
  )
}

const lazy = (make: () => Codec): Codec => {
  let codec: Codec | undefined
  return (input) =>
    Effect.catchDefect(
      Effect.suspend(() => (codec ??= make())(input)),
      Effect.fail
    )
}
