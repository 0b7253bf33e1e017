/** The stories of core's fixtures: journals that were written by hand. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { type Observer, RunEvent } from "@waystone/core"
import * as Result from "effect/Result"
import { Folding } from "../../src/Folding.ts"
import type { FinishedSpan } from "../../src/FinishedSpan.ts"
import * as Writing from "../../src/Writing.ts"

const folder = join(import.meta.dirname, "../../../core/test/fixtures")

const outside = new Set<string>([
  "CallAnswered",
  "MessageReceived",
  "PauseRequested",
  "PauseLifted",
  "CancelRequested",
  "ChildWoken",
  "RunAccepted"
])

/** A story by its number. */
export const story = (number: string): ReadonlyArray<Observer.Entry> => {
  const file = readdirSync(folder).find((name) => name.startsWith(number))
  const { events }: { events: ReadonlyArray<unknown> } = JSON.parse(readFileSync(join(folder, file ?? ""), "utf8"))
  return entriesOf(
    events.map((event) => Result.getOrThrow(RunEvent.decode(JSON.stringify({ ...Object(event), v: RunEvent.version }))))
  )
}

export const entriesOf = (events: ReadonlyArray<RunEvent.RunEvent>): ReadonlyArray<Observer.Entry> =>
  events.map((event, index) => ({ seq: index + 1, epoch: outside.has(event._tag) ? 0 : 1, event }))

export const finished = ["01", "02", "03", "04", "05", "06", "08", "09", "12", "13", "14"] as const

/** All spans of a Run with these entries. */
export const spansOf = (
  entries: ReadonlyArray<Observer.Entry>,
  options: Writing.Options = {},
  runId = "r"
): ReadonlyArray<FinishedSpan> => {
  const folding = new Folding(runId, Writing.make(options))
  let spans: Array<FinishedSpan> = []
  for (const entry of entries) {
    const taken = folding.take(entry)
    spans = taken.forked === true ? [] : [...spans, ...taken.spans]
  }
  return spans
}
