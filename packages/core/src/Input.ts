/**
 * Checks what the application gives to a verb.
 *
 * @since 0.1.0
 */
import type * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as Prompt from "effect/ai/Prompt"
import type { Agent } from "./Agent.ts"
import * as Limits from "./Limits.ts"
import type { Collected } from "./Plugin.ts"
import { EncodeFailed, InputInvalid, RunIdInvalid, ToolkitInvalid } from "./RunError.ts"
import type { Content, LimitChanges } from "./RunEvent.ts"
import * as ToolResult from "./ToolResult.ts"

/** Text, or text and files. */
export type Message = string | ReadonlyArray<Prompt.UserMessagePart>

const encodeParts = Schema.encodeUnknownEffect(Schema.toCodecJson(Schema.Array(Prompt.UserMessagePart)))

/** A message as it is stored. */
export const content = (what: string, message: Message): Effect.Effect<Content, EncodeFailed> => {
  const refused = (error: unknown) =>
    new EncodeFailed({ what, detail: ToolResult.describe(ToolResult.messageOf(error)) })
  const encoded = Effect.suspend(() =>
    typeof message === "string" ? Effect.succeed(message) : Effect.mapError(encodeParts(message), refused)
  )
  const stored = Effect.flatMap(encoded, (json) =>
    Effect.try({ try: () => ToolResult.toJson(json) as Content, catch: refused })
  )
  return Effect.filterOrFail(
    stored,
    (content) => says(content),
    () => refused("it is empty")
  )
}

/** No provider takes a message without text or a file. */
const says = (content: Content): boolean =>
  typeof content === "string" ? content.trim() !== "" : content.some((part) => !isBlank(part))

const isBlank = (part: unknown): boolean =>
  Predicate.hasProperty(part, "text") && typeof part.text === "string" && part.text.trim() === ""

/** What is out of range, and what it must be. */
export const invalid = (field: string, value: unknown, wanted: string): Effect.Effect<never, InputInvalid> =>
  Effect.fail(new InputInvalid({ field, detail: `is ${String(value)}: it must be ${wanted}` }))

const runIds = /^[A-Za-z0-9._:-]{1,128}$/

export const runId = (runId: string): Effect.Effect<void, RunIdInvalid> =>
  typeof runId === "string" && runIds.test(runId)
    ? Effect.void
    : Effect.fail(new RunIdInvalid({ runId: String(runId).slice(0, 200) }))

/** An agent that can be driven in this context. */
export const agent = (
  { invalid, name, tools }: Agent,
  context: Context.Context<never>
): Effect.Effect<void, ToolkitInvalid> => {
  const missing = tools.find(({ child, external, tool }) => !external && !child && !context.mapUnsafe.has(tool.id))
  const detail = invalid ?? (missing && `${missing.name} has no handler: provide its toolkit's layer`)
  if (detail !== undefined) return Effect.fail(new ToolkitInvalid({ agent: name, detail }))
  const below = tools.flatMap(({ child }) => (child === undefined ? [] : [child.agent]))
  return Effect.forEach(below, (child) => agent(child, context), { discard: true })
}

/** Plugins and guards whose names tell them apart in the journal. */
export const plugins = ({ name }: Agent, { guards, names }: Collected): Effect.Effect<void, ToolkitInvalid> => {
  const guard = twice(guards.map((guard) => guard.name))
  const plugin = twice(names)
  if (guard === undefined && plugin === undefined) return Effect.void
  const detail = guard === undefined ? `two plugins are named ${plugin}` : `two guards are named ${guard}`
  return Effect.fail(new ToolkitInvalid({ agent: name, detail }))
}

const twice = (names: ReadonlyArray<string>): string | undefined =>
  names.find((name, index) => names.indexOf(name) !== index)

/** The limits that a Run can be reopened with. */
export type Reopened = Pick<
  Limits.Options,
  "maxTurns" | "maxConsecutiveFailures" | "maxCallsPerReply" | "maxRepeats" | "maxTreeTurns" | "activeTime"
>

export const limits = ({ name }: Agent, changes: Reopened): Effect.Effect<LimitChanges, ToolkitInvalid> => {
  const { activeTime, ...counts } = changes
  const detail = Limits.invalid(Limits.make(changes))
  if (detail !== undefined) return Effect.fail(new ToolkitInvalid({ agent: name, detail }))
  return Effect.succeed({
    ...counts,
    ...(activeTime === undefined ? undefined : { activeTimeMs: Duration.toMillis(Limits.duration(activeTime)) })
  })
}
