/**
 * What journals are asked, by all scenarios.
 */
import type { RunEvent } from "@waystone/core"
import * as Calls from "../Calls.ts"
import type { Change } from "../Snapshot.ts"
import type { Write } from "./WriteRecord.ts"

export type Events = ReadonlyArray<RunEvent.RunEvent>

/** What the demo saw of the folder: how its files differ from before the Run. */
export interface Seen {
  readonly changes: ReadonlyArray<Change>
  /** The writes that happened, where the scenario records them. */
  readonly writes: ReadonlyArray<Write>
  /** The journals of the Runs below, by run id. */
  readonly below?: ReadonlyMap<string, Events>
}

/** Something that the journal shows, or does not. */
export interface Claim {
  readonly claim: string
  readonly holds: boolean
}

export const of = <Tag extends RunEvent.RunEvent["_tag"]>(events: Events, tag: Tag): ReadonlyArray<RunEvent.Of<Tag>> =>
  events.filter((event): event is RunEvent.Of<Tag> => event._tag === tag)

export const completed = (events: Events) => of(events, "ToolCallCompleted")
export const turns = (events: Events) => of(events, "TurnCompleted")
export const tries = ({ tries = [] }: RunEvent.Of<"TurnCompleted">) => tries
export const requests = (events: Events): number =>
  turns(events).reduce((sum, turn) => sum + Math.max(1, tries(turn).length), 0)

export const everyCallHasOneResult = (events: Events): Claim => {
  const asked = Calls.asked(events).map(({ callId }) => callId)
  const answered = completed(events).map(({ callId }) => callId)
  const holds = asked.length > 0 && asked.toSorted().join() === answered.toSorted().join()
  return { claim: `each of the ${asked.length} calls has exactly one result`, holds }
}

export const ended = (events: Events): Claim => ({
  claim: `the run is completed in ${turns(events).length} turns`,
  holds: of(events, "RunFinished").some(({ outcome }) => outcome._tag === "Completed")
})
