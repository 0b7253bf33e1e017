/**
 * Decides who may answer: every plugin of the Run that has a say in it must be in the answering process, and agree.
 *
 * Invariants
 *   M1  A Run whose answering plugins are not all here takes no answer: who may answer is not decided by leaving a Layer out.
 *   M2  A plugin that breaks refuses.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import { boundedStore } from "./Bounded.ts"
import type { CheckpointStore } from "./CheckpointStore.ts"
import { defined } from "./Defined.ts"
import { type ReadError, readEvents } from "./Journal.ts"
import type { Seen } from "./Outside.ts"
import * as Plugin from "./Plugin.ts"
import { MayNotAnswer, PluginMissing } from "./RunError.ts"
import type { Answer, Wait } from "./RunEvent.ts"
import * as RunState from "./RunState.ts"

export type Refusal = MayNotAnswer | PluginMissing

/** Who answers what, and how. */
export interface Answering {
  readonly runId: string
  readonly callId: string
  readonly answer: Answer
  readonly by: string
}

/** Every plugin of the Run that says who may answer must be here, and agree. */
export const check = (
  { answer, by, callId, runId }: Answering,
  { entry, head }: Seen,
  kind: Wait["kind"]
): Effect.Effect<void, Refusal | ReadError, CheckpointStore> =>
  Effect.gen(function* () {
    const { answering } = Plugin.collect(yield* Effect.context<never>())
    const missing = (head.answering ?? []).filter((name) => !answering.has(name))
    if (missing.length > 0) return yield* new PluginMissing({ runId, missing })
    if (answering.size === 0) return
    const { asked, state } = yield* found(runId, callId, entry.seq)
    const request: Plugin.Request = {
      runId,
      callId,
      kind,
      agent: head.agent,
      name: asked.name,
      arguments: asked.arguments,
      answer,
      ...defined({ guard: asked.guard, reason: asked.reason, principal: state.principal, session: head.session })
    }
    for (const mayAnswer of answering.values()) {
      const may = Effect.suspend(() => mayAnswer(by, request))
      if ((yield* Effect.catchDefect(may, () => Effect.succeed(false))) !== true)
        return yield* new MayNotAnswer({ runId, callId, by })
    }
  })

interface Found {
  readonly name: string
  readonly arguments?: unknown
  readonly guard?: string
  readonly reason?: string
}

/** What was asked last under that id; of an earlier turn the state knows no calls any more. */
const found = (
  runId: string,
  callId: string,
  seq: number
): Effect.Effect<{ readonly asked: Found; readonly state: RunState.RunState }, ReadError, CheckpointStore> =>
  Effect.gen(function* () {
    let state = RunState.empty()
    let asked: Found = { name: "" }
    yield* readEvents(yield* boundedStore, runId, {
      after: 0,
      seq,
      each: ({ event }) => {
        state = RunState.evolve(state, event)
        const asks =
          event._tag === "ApprovalRequested" || event._tag === "ExternalRequested" || event._tag === "CallInDoubt"
        if (!asks || event.callId !== callId) return
        const why =
          event._tag === "ApprovalRequested" ? defined({ guard: event.guard, reason: event.reason }) : undefined
        asked = { name: event.name, arguments: RunState.callOf(state, callId)?.arguments, ...why }
      }
    })
    return { asked, state }
  })
