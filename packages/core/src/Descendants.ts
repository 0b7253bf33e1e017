/**
 * Ends and removes the Runs below a Run that nobody drives.
 *
 * Invariants
 *   D1  What is below goes first: a process that dies on the way leaves no Run without the one above it.
 *   D2  A Run that was cancelled and whose descendants were not all ended yet is due: a sweep ends the rest.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type { CheckpointStore, Entry, StoreError } from "./CheckpointStore.ts"
import * as ChildRun from "./ChildRun.ts"
import { closing, isBelow } from "./Finish.ts"
import type { ReadError } from "./Journal.ts"
import * as Outside from "./Outside.ts"
import { type EncodeFailed, type RunNotFound, RunNotTerminal } from "./RunError.ts"
import type { Draft } from "./RunEvent.ts"
import { isTerminal } from "./RunHead.ts"
import type { RunState } from "./RunState.ts"
import * as Stored from "./Stored.ts"
import * as SubAgent from "./SubAgent.ts"
import { completed } from "./ToolCalls.ts"

/** Who cancels, and why. */
export interface Why {
  readonly by: string
  readonly reason?: string
}

type Ended = Effect.Effect<void, ReadError | EncodeFailed | RunNotFound, CheckpointStore>

/** True if a Run has Runs below it that have not ended. */
export const has = ({ calls }: RunState): boolean => calls.some((call) => call.status !== "completed" && isBelow(call))

/** The events that end a cancelled Run; what its sub-agents came to is given. */
export const cancelled = (
  { calls }: RunState,
  why: Why,
  came: ReadonlyMap<string, Draft> = new Map()
): ReadonlyArray<Draft> => {
  const outcome = { _tag: "Cancelled", ...why } as const
  return [
    ...calls.flatMap((call) =>
      call.status === "completed" ? [] : [came.get(call.callId) ?? completed(call, closing(call, outcome))]
    ),
    { _tag: "RunFinished", outcome }
  ]
}

/** Ends a cancelled Run, those below it first. Somebody who drives it does so himself. */
export const end = (runId: string, why: Why, isRoot = true): Ended =>
  Effect.gen(function* () {
    const seen = yield* Outside.find(runId)
    // Nobody sweeps the Run of a sub-agent, so one that is running without an owner is ended here.
    const idle = (head: Outside.Seen["head"]) => !isTerminal(head) && (!isRoot || head.status === "waiting")
    if (seen === undefined || !idle(seen.head)) return
    yield* Outside.append(runId, ({ head }) =>
      Effect.succeed(isTerminal(head) || head.cancelled !== undefined ? [] : [{ _tag: "CancelRequested", ...why }])
    )
    if (seen.entry.live) return
    const came = new Map<string, Draft>()
    const { calls } = yield* Stored.load(runId, seen.entry.seq)
    for (const call of calls.filter((call) => call.status !== "completed" && isBelow(call))) {
      const child = yield* SubAgent.runIdOf(runId, call.callId)
      const ended = Effect.gen(function* () {
        // A fork's call has none of its own, and somebody else may have taken that id.
        if ((yield* Outside.find(child))?.head.parent?.runId !== runId) return
        yield* end(child, why, false)
        const left = yield* Outside.find(child)
        if (left === undefined) return
        const state = yield* Stored.load(child, left.entry.seq)
        came.set(call.callId, ChildRun.came(call, child, { state, used: {} }))
      })
      yield* Effect.catchTag(ended, "CheckpointCorrupt", (error) =>
        Effect.sync(() => void came.set(call.callId, ChildRun.lost(call, error)))
      )
    }
    yield* Outside.append(runId, ({ entry, head }) =>
      idle(head)
        ? Effect.map(Stored.load(runId, entry.seq), (state) => cancelled(state, why, came))
        : Effect.succeed([])
    )
  })

/**
 * Removes the Runs below a Run, the lowest first. Of a Run that ended they have ended too, but for one that could not be read, or
 * that somebody held: without `force` such a one stays, and those above it.
 */
export const remove = (
  store: CheckpointStore["Service"],
  parent: string,
  force: boolean
): Effect.Effect<void, StoreError | RunNotTerminal> =>
  Effect.gen(function* () {
    while (true) {
      const children = yield* store.list({ parent }, { limit: 100 })
      for (const child of children) {
        const { runId } = child
        if (!force) {
          const head = yield* Outside.headOf(child)
          if (!isTerminal(head)) return yield* new RunNotTerminal({ runId, status: head.status })
        }
        yield* remove(store, runId, force)
        const one = removeOne(store, runId)
        yield* force
          ? Effect.catchTag(one, "CheckpointCorrupt", () => Effect.asVoid(store.remove(runId, "damaged")))
          : one
      }
      if (children.length < 100) return
    }
  })

const removeOne = (store: CheckpointStore["Service"], runId: string): Effect.Effect<void, StoreError> =>
  Effect.gen(function* () {
    let entry: Entry | undefined
    while ((entry = yield* store.head(runId)) !== undefined) if (yield* store.remove(runId, entry.seq)) return
  })
