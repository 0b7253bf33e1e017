/**
 * Says what came of a Run that has ended and whose folder is gone, so that nothing can be done or tested any more: its
 * journal tells.
 */
import { Run } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { isThere } from "./Project.ts"
import * as RunTests from "./RunTests.ts"
import * as Claims from "./scenario/Claims.ts"
import * as Status from "./Status.ts"
import { Keeping } from "./Stores.ts"

export interface Ending {
  /** It completed, and its tests passed after its last change. */
  readonly repaired: boolean
  readonly status: Status.Status
  /** One line for people. */
  readonly line: string
}

/** Undefined if the Run can go on, or its folder can be looked at. */
export const found = Effect.fnUntraced(function* (runId: string) {
  const { session, status } = yield* Run.get(runId)
  if (!Status.hasEnded(status) || session === undefined || (yield* isThere(session))) return undefined
  const entries = yield* Stream.runCollect(Run.events(runId, { follow: false }))
  const tests = lastTests(entries.map(({ event }) => event))
  const repaired = status === "completed" && tests !== undefined
  const came = repaired ? `its last tests passed, ${tests.passed} of ${tests.tests}` : "the project was not repaired"
  const { command } = yield* Keeping
  const ending: Ending = {
    repaired,
    status,
    line: `Run ${runId} has ended (${status}): ${came}. Its folder ${session} is gone. What came of every call: ${command(`show ${runId}`)}`
  }
  return ending
})

/** What the tests reported, if they passed and nothing was started after them. */
const lastTests = (events: Claims.Events) => {
  const last = Claims.of(events, "ToolCallStarted").at(-1)
  const end = Claims.completed(events).find(({ callId }) => callId === last?.callId)
  if (end?.name !== RunTests.RunTests.name) return undefined
  return Option.getOrUndefined(
    Option.flatMap(Schema.decodeUnknownOption(RunTests.TestRun)(end.result), ({ exit_code: code, report }) =>
      code === 0 && report?.failed === 0 && report.tests > 0 ? Option.some(report) : Option.none()
    )
  )
}
