/**
 * Checks what the application gives to a verb.
 *
 * @since 0.1.0
 */
import type * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Prompt from "effect/ai/Prompt"
import type { Agent } from "./Agent.ts"
import type { Guard } from "./Guard.ts"
import type * as Limits from "./Limits.ts"
import { EncodeFailed, RunIdInvalid, ToolkitInvalid } from "./RunError.ts"
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
  return Effect.flatMap(encoded, (json) =>
    Effect.try({ try: () => ToolResult.toJson(json) as Content, catch: refused })
  )
}

const runIds = /^[A-Za-z0-9._:-]{1,128}$/

export const runId = (runId: string): Effect.Effect<void, RunIdInvalid> =>
  runIds.test(runId) ? Effect.void : Effect.fail(new RunIdInvalid({ runId: runId.slice(0, 200) }))

/** An agent that can be driven in this context. */
export const agent = (
  { invalid, name, tools }: Agent,
  context: Context.Context<never>
): Effect.Effect<void, ToolkitInvalid> => {
  const missing = tools.find(({ external, tool }) => !external && !context.mapUnsafe.has(tool.id))
  const detail = invalid ?? (missing && `${missing.name} has no handler: provide its toolkit's layer`)
  return detail === undefined ? Effect.void : Effect.fail(new ToolkitInvalid({ agent: name, detail }))
}

/** Guards whose names tell their verdicts and reservations apart. */
export const guards = ({ name }: Agent, guards: ReadonlyArray<Guard>): Effect.Effect<void, ToolkitInvalid> => {
  const names = guards.map((guard) => guard.name)
  const twice = names.find((guard, index) => names.indexOf(guard) !== index)
  if (twice === undefined) return Effect.void
  return Effect.fail(new ToolkitInvalid({ agent: name, detail: `two guards are named ${twice}` }))
}

/** The limits that a Run can be reopened with. */
export type Reopened = Pick<Limits.Options, "maxTurns" | "maxConsecutiveFailures" | "maxCallsPerReply" | "activeTime">

export const limits = ({ activeTime, ...counts }: Reopened): LimitChanges => ({
  ...counts,
  ...(activeTime === undefined ? undefined : { activeTimeMs: Duration.toMillis(Duration.fromInputUnsafe(activeTime)) })
})
