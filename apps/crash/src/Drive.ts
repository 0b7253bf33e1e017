/**
 * Drives one Run until it ends or rests, and says how: where another worker holds it, for as long as that takes; where its
 * store is away, as patiently as everybody here.
 */
import { Run } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { patient } from "./Patient.ts"
import type * as Subject from "./Subject.ts"
import type * as Trace from "./Trace.ts"

/** The Outcome, or the tag and the message of the last reason. */
export const drive = (agent: Subject.Any, runId: string, mark: (what: Trace.What) => Effect.Effect<void>) =>
  Run.start(agent, { runId, task: "go" }).pipe(
    Effect.retry({
      while: ({ reason }) => {
        switch (reason._tag) {
          case "RunBusy":
            return Effect.as(mark("busy"), true)
          case "OwnershipLost":
            return Effect.as(mark("lost"), true)
          default:
            return false
        }
      },
      schedule: Schedule.spaced("30 millis")
    }),
    patient,
    Effect.match({
      onSuccess: (outcome): unknown => outcome,
      onFailure: ({ reason }) => ({ _tag: reason._tag, message: reason.message })
    })
  )
