/**
 * Sends commands: gives each a time limit and says what its failure means.
 *
 * A command is repeated only where the server certainly has not run it. Of any other failure nobody knows whether it took
 * effect, and only the caller can find out: an owner recognises its own appends (SPEC 6).
 *
 * @since 0.1.0
 */
import { type CheckpointStore, RunError } from "@waystone/core"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { RedisError } from "effect/persistence/Redis"
import * as Schedule from "effect/Schedule"

/** Runs one command about a Run; `runId` stands in the error if the Run turns out to be damaged. */
export type Command = <A>(
  runId: string,
  command: Effect.Effect<A, RedisError>
) => Effect.Effect<A, CheckpointStore.StoreError>

/** How long to wait before a command that was not sent is tried again. */
const again = Schedule.spaced("50 millis")

export const make = (timeout: Duration.Duration): Command => {
  const late = Effect.failSync(
    () => new RunError.StoreUnavailable({ detail: `Redis gave no answer within ${Duration.format(timeout)}` })
  )
  return (runId, command) =>
    Effect.catchIf(command, notRun, () => Effect.retry(command, { schedule: again, while: notRun })).pipe(
      Effect.timeoutOrElse({ duration: timeout, orElse: () => late }),
      Effect.catchTag("RedisError", (error) => Effect.fail(meaning(runId, error)))
    )
}

/**
 * True if the server has not run the command: the client has no connection and did not send it (node-redis with
 * `disableOfflineQueue`), or the server said that it is still loading its data.
 */
const notRun = (error: RedisError): boolean => {
  const text = textOf(error)
  return text === "The client is offline" || text.startsWith("LOADING")
}

/** A key of another type than ours is damage, of the index if there is no run id; everything else may pass: OOM, READONLY, MISCONF, a lost connection. */
export const meaning = (runId: string, error: RedisError): CheckpointStore.StoreError => {
  const text = textOf(error)
  if (!text.includes("WRONGTYPE")) return new RunError.StoreUnavailable({ detail: shown(text) })
  return runId === ""
    ? new RunError.StoreCorrupt({ store: "on Redis", detail: `a key of its index has another type: ${shown(text)}` })
    : new RunError.CheckpointCorrupt({ runId, seq: 0, path: "the type of a key" })
}

const textOf = ({ cause }: RedisError): string => {
  if (!(cause instanceof Error)) return String(cause)
  if (cause.message !== "") return cause.message
  return cause instanceof AggregateError ? cause.errors.map(String).join(", ") : cause.name
}

/** Bounded, on one line, without the user and password of a URL. */
export const shown = (text: string): string =>
  text
    .replace(/:\/\/\S*@/g, "://***@")
    .replace(/\s+/g, " ")
    .slice(0, 300)
