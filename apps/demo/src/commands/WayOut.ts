/**
 * Says of each thing that a Run waits for how it goes on.
 */
import type { Run, RunEvent } from "@waystone/core"
import * as CallPath from "./CallPath.ts"

type Wait = Run.RunInfo["waiting"][number]

interface Stored {
  readonly seq: number
  readonly event: RunEvent.RunEvent
}

/** What is known of the Run that waits. */
export interface Known {
  readonly runId: string
  readonly entries: ReadonlyArray<Stored>
  /** Where it can be forked. */
  readonly checkpoints: ReadonlyArray<number>
  /** The command that does something with a Run of this store. */
  readonly command: (verb: string) => string
  /** The one that resumes it. */
  readonly goOn: string
}

/** One sentence. */
export const of = ({ checkpoints, command, entries, goOn, runId }: Known, wait: Wait): string => {
  const { kind } = wait
  const id = CallPath.of(wait)
  switch (kind) {
    case "paused":
      return `to go on: ${goOn}`
    case "retry":
      return `it waits until ${new Date(wait.wakeAt).toISOString()}; then: ${goOn} ; to go on at once, as a new run: ${command(`fork ${runId}`)}`
    case "approval":
      return `yes: ${command(`approve ${runId} ${id}`)} ; no: ${command(`deny ${runId} ${id} --reason …`)}`
    case "external":
      return `to answer: ${command(`answer ${runId} ${id} <json>`)}`
    case "in-doubt": {
      // Of a worker's call, the one of its root that began the worker.
      const own = id.split("/")[0]
      const started =
        entries.findLast(({ event }) => event._tag === "ToolCallStarted" && event.callId === own)?.seq ?? 0
      const before = checkpoints.findLast((seq) => seq < started)
      const again = before === undefined ? [] : [`to make the call again: ${command(`fork ${runId} --at ${before}`)}`]
      return [
        "it had started, and nobody knows what became of it. Look at the files, then choose",
        ...again,
        `to give up: ${command(`cancel ${runId}`)}`,
        "a program may answer it by Run.answer: RunAgain, TakeResult or TellFailed"
      ].join("; ")
    }
  }
}
