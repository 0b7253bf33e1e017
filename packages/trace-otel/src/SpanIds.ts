/**
 * Derives the ids of a Run's trace and spans from names that the journal knows, so that whoever reads it gets the same.
 *
 * Invariants
 *   I1  The same Run has the same ids in every process and at every time: nothing random, no clock.
 *   I2  What runs inside a call can know the call's span before the call has ended, so foreign spans find their place.
 *
 * @since 0.1.0
 */
import { hash } from "node:crypto"

const digest = (parts: ReadonlyArray<string | number>, bytes: number): string => {
  const hex = hash("sha256", JSON.stringify(["waystone", ...parts])).slice(0, bytes * 2)
  // All zeros is no id. It never happens, but a trace that is lost for it would never be found.
  return /^0+$/.test(hex) ? `${hex.slice(1)}1` : hex
}

/** The trace of a root Run, and of all Runs below it: 16 bytes as hex. */
export const traceId = (rootId: string): string => digest(["trace", rootId], 16)

/** The span that holds all attempts of a Run that has more than one: 8 bytes as hex. */
export const run = (runId: string): string => digest(["run", runId], 8)

/** One attempt: what calls are made in. */
export const attempt = (runId: string, number: number): string => digest(["attempt", runId, number], 8)

/** One logical model call. */
export const turn = (runId: string, number: number): string => digest(["turn", runId, number], 8)

/** The `start`th time that a tool call was started, from 1. */
export const call = (runId: string, callId: string, start: number): string => digest(["call", runId, callId, start], 8)

/** What has no name but its place in the journal: a compaction, a wait. */
export const event = (runId: string, seq: number): string => digest(["event", runId, seq], 8)

/** A number from 0 to below 1 that is the Run's own: the ratio of a sampler compares with it. */
export const share = (trace: string): number => Number.parseInt(trace.slice(-13), 16) / 2 ** 52
