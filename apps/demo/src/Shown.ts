/**
 * Names what the demo shows, in this order: that it began, what happens to the Run, what the demo found afterwards, and
 * what a scenario has proven.
 */
import type { ModelInfo, Run, RunUpdate } from "@waystone/core"
import type * as Calls from "./Calls.ts"
import type { Source } from "./Project.ts"
import type { Change } from "./Snapshot.ts"
import type { Report } from "./Tap.ts"

export interface Began {
  readonly _tag: "Began"
  readonly runId: string
  readonly folder: string
  readonly source: Source
  readonly task: string
  readonly model: ModelInfo.ModelInfo
  /** That model follows a script. */
  readonly scripted: boolean
  /** What is about to be done to the Run, if something is. */
  readonly scenario?: { readonly name: string; readonly says: string }
  /** The Run was there before and goes on, with the calls of its last reply. */
  readonly resumed?: ReadonlyArray<Pick<Calls.Call, "callId" | "name" | "arguments">>
}

/** A call runs for long. */
export interface StillRunning {
  readonly _tag: "StillRunning"
  readonly callId: string
  readonly name: string
  readonly seconds: number
}

/** Somebody ended the demo before the Run came to its end. */
export interface Interrupted {
  readonly _tag: "Interrupted"
  readonly runId: string
  /** What is not as it was when it began. */
  readonly changes: ReadonlyArray<Change>
  /** The command that goes on with the Run, which is paused; missing where nothing is kept. */
  readonly goOn?: string
}

/** The Run waits for somebody. */
export interface Rests {
  readonly _tag: "Rests"
  readonly runId: string
  /** It waits for more than a resume: the command says for what. */
  readonly asks: boolean
  /** The command that goes on with it, or says what it waits for. */
  readonly goOn: string
  /** The model is asked again from then on, epoch ms; `goOn` does nothing before. */
  readonly wakeAt?: number
  /** The command that makes a new Run of it, which need not wait. */
  readonly atOnce?: string
}

/** A provider took no request of the Run, or stayed away for too long: it has failed, and can go on with another key or another model. */
export interface Rejected {
  readonly _tag: "Rejected"
  readonly runId: string
  /** What to do about it. */
  readonly advice: string
  /** The command that goes on with it then; missing where nothing is kept. */
  readonly goOn?: string
}

/** The process that drove the Run died. */
export interface Crashed {
  readonly _tag: "Crashed"
  readonly runId: string
  readonly signal: string | undefined
  /** What ran when it died. */
  readonly during: ReadonlyArray<string>
}

/** What the demo itself saw after the Run, whatever the model said. */
export interface Verified {
  readonly _tag: "Verified"
  readonly runId: string
  readonly folder: string
  readonly source: Source
  readonly model: ModelInfo.ModelInfo
  readonly repaired: boolean
  /** Why it does not count as repaired. */
  readonly objections: ReadonlyArray<string>
  readonly changes: ReadonlyArray<Change>
  /** What the changes are compared with, where it is not the folder as it was before the Run. */
  readonly since?: "resume"
  /** The folder holds more files than the demo compares. */
  readonly truncated: boolean
  /** The tests were not run: somebody ended the Run, or it waits. */
  readonly untested?: true
  /** Undefined if Node's test runner did not report anything. */
  readonly report: Report | undefined
}

/** What a scenario showed, read from the journal. */
export interface Proof {
  readonly _tag: "Proof"
  readonly scenario: string
  readonly proven: boolean
  /** One sentence. */
  readonly line: string
}

export type Update = RunUpdate.RunUpdate<string, Run.StartError | Run.ResumeError>

export type Shown = Began | Update | StillRunning | Interrupted | Rests | Rejected | Crashed | Verified | Proof
