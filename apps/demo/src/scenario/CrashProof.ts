/**
 * Proves what came of a Run whose process died inside an edit: nothing was done twice. The journal says what was started,
 * the files and the record of writes say what happened.
 */
import { FileTools } from "@waystone/tools"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Calls from "../Calls.ts"
import { type Claim, completed, ended, type Events, everyCallHasOneResult, of, type Seen } from "./Claims.ts"

/** How the first process ended. */
export interface Death {
  readonly pid: number
  readonly signal: string | undefined
  /** When its end was seen; epoch ms. */
  readonly at: number
}

/** The part of the journal that the process which died wrote, and what came after. */
const parts = (events: Events): readonly [before: Events, after: Events] => {
  const second = events.findIndex((event) => event._tag === "AttemptStarted" && event.attempt === 2)
  return second === -1 ? [events, []] : [events.slice(0, second), events.slice(second)]
}

/** `death` is undefined where nobody saw one. */
export const prove =
  (death: Death | undefined) =>
  (events: Events, seen: Seen = { changes: [], writes: [] }): ReadonlyArray<Claim> => {
    const [before, after] = parts(events)
    const done = completed(before)
    const results = new Set(done.map(({ callId }) => callId))
    const killed = of(before, "ToolCallStarted").find(({ callId }) => !results.has(callId))
    const [again] = of(after, "AttemptStarted")
    const touched = new Set(
      [...of(after, "ToolCallStarted"), ...completed(after), ...of(after, "CallRequeued")].map(({ callId }) => callId)
    )
    const name = killed?.name ?? "no call"
    const wait = again === undefined || death === undefined ? Number.NaN : again.at - death.at
    const ending = completed(after).find(({ callId }) => callId === killed?.callId)
    const path = killed === undefined ? undefined : editOf(events, killed.callId)?.path
    return [
      {
        claim: `the first process died by SIGKILL inside ${name} (${killed?.callId ?? "none"})`,
        holds: death?.signal === "SIGKILL" && killed !== undefined
      },
      { claim: `a second attempt took the run over after ${wait} ms`, holds: again?.recovered === true },
      {
        claim: `none of the ${done.length} calls completed before was started again (${done.map((call) => `${call.name} ${call.callId}`).join(", ")})`,
        holds: done.length > 0 && !done.some(({ callId }) => touched.has(callId))
      },
      {
        claim: `${name} was not started again: its result was read from the file (reconciled)`,
        holds:
          ending?.ending === "reconciled" &&
          !ending.isFailure &&
          !of(after, "ToolCallStarted").some(({ callId }) => callId === killed?.callId)
      },
      {
        claim: `the edit is in ${path ?? "no file"} exactly once`,
        holds: path !== undefined && once(events, seen, path)
      },
      {
        claim: `${path ?? "no file"} was written exactly once, by the process that died (pid ${death?.pid ?? "unknown"}), and by no other`,
        holds: seen.writes.length === 1 && seen.writes.every((write) => write.path === path && write.pid === death?.pid)
      },
      everyCallHasOneResult(events),
      ended(events)
    ]
  }

const Arguments = Schema.decodeUnknownOption(FileTools.EditFile.parametersSchema)

/** What the model asked for. */
const editOf = (events: Events, callId: string) =>
  Option.getOrUndefined(Arguments(Calls.asked(events).find((call) => call.callId === callId)?.arguments))

/** The file as it was, with every edit of it that succeeded made once, is the file as it is. */
const once = (events: Events, { changes }: Seen, path: string): boolean => {
  const change = changes.find((one) => one.path === path)
  const made = completed(events)
    .filter(({ isFailure, name }) => name === FileTools.EditFile.name && !isFailure)
    .flatMap(({ callId }) => editOf(events, callId) ?? [])
    .filter((edit) => edit.path === path)
  return (
    made.length > 0 &&
    change?.before !== undefined &&
    change.after ===
      made.reduce((text, { new_text: right, old_text: wrong }) => text.replace(wrong, () => right), change.before)
  )
}
