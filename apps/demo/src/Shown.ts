/**
 * Names what the demo shows, in this order: that it began, what happens to the Run, and what the demo found afterwards.
 */
import type { Run, RunUpdate } from "@waystone/core"
import type { Change } from "./Diff.ts"
import type { Report } from "./Tap.ts"

export interface Began {
  readonly _tag: "Began"
  readonly runId: string
  readonly folder: string
}

/** What the demo itself saw after the Run, whatever the model said. */
export interface Verified {
  readonly _tag: "Verified"
  readonly runId: string
  readonly repaired: boolean
  /** Why it does not count as repaired. */
  readonly objections: ReadonlyArray<string>
  readonly changes: ReadonlyArray<Change>
  /** Undefined if the tests could not be run. */
  readonly report: Report | undefined
}

export type Update = RunUpdate.RunUpdate<string, Run.StartError>

export type Shown = Began | Update | Verified
