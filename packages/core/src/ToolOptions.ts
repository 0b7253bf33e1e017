/**
 * Says how a tool is run: annotations that effect/ai does not have.
 *
 * @example
 * import { ToolOptions } from "@waystone/core"
 * const slow = tool.annotate(ToolOptions.Timeout, "2 minutes")
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import type * as Tool from "effect/ai/Tool"

/** How long one execution of the handler may take. Default 30 s. */
export const Timeout: Context.Reference<Duration.Input> = Context.Reference("@waystone/core/ToolOptions/Timeout", {
  defaultValue: (): Duration.Input => "30 seconds"
})

/** A timeout is retried like a Retryable failure, where the effect class allows it. Default false. */
export const RetryTimeout: Context.Reference<boolean> = Context.Reference("@waystone/core/ToolOptions/RetryTimeout", {
  defaultValue: () => false
})

/** Its calls never run beside another call of the same reply. Default false. */
export const Sequential: Context.Reference<boolean> = Context.Reference("@waystone/core/ToolOptions/Sequential", {
  defaultValue: () => false
})

/**
 * It is called again and again until something has happened, so the same call many times is no loop. Recorded with the
 * tool when a Run starts; a guard that looks for loops reads it there. Default false.
 */
export const Polling: Context.Reference<boolean> = Context.Reference("@waystone/core/ToolOptions/Polling", {
  defaultValue: () => false
})

/** Set by `external`. */
export const External: Context.Reference<boolean> = Context.Reference("@waystone/core/ToolOptions/External", {
  defaultValue: () => false
})

/** A tool without a handler here: its call waits until `Run.answer` brings a value of its success schema. */
export interface IsExternal {
  readonly "~@waystone/core/External": true
}

/**
 * Makes a tool external. Asking the user something is such a tool: handlers themselves cannot suspend, so nothing in
 * front of a question is ever run twice (RI-121). Annotate first: `external` comes last.
 */
export const external = <T extends Tool.Any>(tool: T): T & IsExternal =>
  Object.assign(tool.annotate(External, true), { "~@waystone/core/External": true as const }) as Tool.Any as T &
    IsExternal
