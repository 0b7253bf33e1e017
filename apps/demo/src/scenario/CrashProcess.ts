/**
 * Lets a process of the demo die, and takes its Run over.
 */
import { Run } from "@waystone/core"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import { spawn } from "node:child_process"
import * as Calls from "../Calls.ts"
import { Unusable } from "../Complaint.ts"
import type * as CrashProof from "./CrashProof.ts"
import * as Status from "../Status.ts"

/** How a process ended. */
export interface End extends CrashProof.Death {
  readonly code: number | undefined
}

/** Starts the demo once more, with these arguments; its output goes where that of this process goes. */
export const child = (args: ReadonlyArray<string>): Effect.Effect<End, Unusable> =>
  Effect.callback<{ readonly pid: number; readonly code: number | null; readonly signal: string | null }, Unusable>(
    (resume) => {
      const main = process.argv[1] ?? ""
      const one = spawn(process.execPath, [...process.execArgv, main, ...args], {
        stdio: ["ignore", "inherit", "inherit"]
      })
      one.once("error", ({ message }) =>
        resume(Effect.fail(new Unusable({ message: `the process that is to die did not start: ${message}` })))
      )
      one.once("exit", (code, signal) => resume(Effect.succeed({ pid: one.pid ?? 0, code, signal })))
      // It pauses its Run and says so, as this process would.
      return Effect.callback<void>((done) => {
        if (one.exitCode !== null || one.signalCode !== null) return done(Effect.void)
        one.once("exit", () => done(Effect.void))
        one.kill("SIGTERM")
      })
    }
  ).pipe(
    Effect.flatMap(({ code, pid, signal }) =>
      Effect.map(Clock.currentTimeMillis, (at) => ({ pid, code: code ?? undefined, signal: signal ?? undefined, at }))
    )
  )

/** Longer than the lease that a dead process may still have where nothing tells that it is dead. */
const patience = "15 seconds"

/** Waits until nobody drives the Run. At once where the system tells that the process is dead. */
export const free = (runId: string) =>
  Effect.flatMap(Run.get(runId), Status.driver).pipe(
    Effect.repeat({ schedule: Schedule.spaced("200 millis"), while: (driver) => driver !== undefined }),
    Effect.timeoutOption(patience),
    Effect.asVoid
  )

/** The calls that had started and have no result. */
export const during = (runId: string) =>
  Stream.runCollect(Run.events(runId, { follow: false })).pipe(
    Effect.map((entries) =>
      Calls.asked(entries.map(({ event }) => event)).filter(({ ending, starts }) => starts > 0 && ending === undefined)
    ),
    Effect.map((calls) => calls.map(({ callId, name }) => `${name} (${callId})`))
  )
