/**
 * What another process is told to do, and what it tells of it. Both are JSON.
 */
import type { RunEvent } from "@waystone/core"
import type { ScriptedModel } from "@waystone/core/testing"
import type { Approvals } from "@waystone/policy"
import type * as Duration from "effect/Duration"
import type { Store } from "../../src/Job.ts"
import type { Release } from "./Desk.ts"

export type Verb =
  | { readonly _tag: "Start"; readonly runId: string; readonly task: string }
  | { readonly _tag: "Resume"; readonly runId: string; readonly without?: ReadonlyArray<string> }
  | { readonly _tag: "Recover" }
  | {
      readonly _tag: "Answer"
      readonly runId: string
      readonly callId: string
      readonly answer: RunEvent.Answer
      /** How often it is delivered, all at once. Default 1. */
      readonly times?: number
      /** Default: ann. */
      readonly by?: string
    }
  | { readonly _tag: "Fork"; readonly runId: string; readonly id: string; readonly at?: number }

/** How that process is to be. */
export interface Options {
  /** What it knows of the agent. Default: the present one. */
  readonly release?: Release
  /** The name of a plugin that it has; it allows everything. */
  readonly plugin?: string
  /** It has the policy of approvals, with these options. */
  readonly approvals?: { readonly expiresAfter?: Duration.Input; readonly mode?: Approvals.Mode }
  /** The tool in whose handler it kills itself, right after the effect. */
  readonly dies?: string
}

export interface Order extends Options {
  readonly id: number
  readonly store: Store
  readonly ledger: string
  readonly verb: Verb
}

export interface Told {
  /** What the verb gave; or `{ _tag: "Fatal" | "Retryable", reason }`; or "killed". */
  readonly said: unknown
  /** What its model was asked. */
  readonly requests: ReadonlyArray<Request>
}

export interface Request {
  readonly roles: ReadonlyArray<string>
  /** The results in its last message. */
  readonly results: ReadonlyArray<{ readonly name: string; readonly isFailure: boolean; readonly result: unknown }>
  /** Its last two messages as text, to look for words in. */
  readonly text: string
}

export const request = ({ messages, results }: ScriptedModel.Request): Request => ({
  roles: messages.map(({ role }) => role),
  results: results.map(({ isFailure, name, result }) => ({ name, isFailure, result })),
  text: JSON.stringify(messages.slice(-2))
})
