/**
 * Words how a Run stands: its status, and what it waits for.
 */
import { Owner, type Run, type RunEvent } from "@waystone/core"
import * as Effect from "effect/Effect"

export const all = ["accepted", "running", "waiting", "completed", "stopped", "failed", "cancelled"] as const
export type Status = (typeof all)[number]

/** True if nothing happens to it any more, unless it is reopened. */
export const hasEnded = (status: Status): boolean => !["accepted", "running", "waiting"].includes(status)

/** Who drives it at this moment; a lease of a process that is dead does not count. */
export const driver = ({ owner }: Run.RunInfo): Effect.Effect<string | undefined> =>
  owner === undefined
    ? Effect.succeed(undefined)
    : Effect.flatMap(Owner.Owner, ({ isDead }) => Effect.map(isDead(owner), (dead) => (dead ? undefined : owner)))

/** Status and kinds of waits: `waiting (approval)`, `running (interrupted)`. */
export const worded = (info: Run.RunInfo): Effect.Effect<string> =>
  Effect.map(driver(info), (driver) => {
    const kinds = [...new Set(info.waiting.map(({ kind }) => kind))]
    const more = info.status === "running" && driver === undefined && kinds.length === 0 ? ["interrupted"] : kinds
    return more.length === 0 || hasEnded(info.status) ? info.status : `${info.status} (${more.join(", ")})`
  })

/** The text of a task. */
export const taskOf = (content: RunEvent.Of<"RunAccepted">["task"]): string =>
  typeof content === "string" ? content : JSON.stringify(content)
