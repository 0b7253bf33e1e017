/** How cases look at Runs and answer them. */
import { expect, it } from "@effect/vitest"
import { CheckpointStore, Run, type RunEvent } from "@waystone/core"
import { PairingChecker } from "@waystone/core/testing"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Backend } from "./backends.ts"
import { clerk } from "./Desk.ts"
import * as Office from "./Office.ts"

/** Registers cases, each of which gets an office with an empty store. */
export const on =
  (backend: Backend) =>
  (title: string, test: (office: Office.Office) => Effect.Effect<unknown, unknown, Scope.Scope>) =>
    it.live(title, () => Effect.flatMap(Office.make(backend), test))

/** All that is committed. */
export const eventsOf = (runId = "r") =>
  Effect.map(Stream.runCollect(Run.events(runId, { follow: false })), (entries) => entries.map(({ event }) => event))

export const tagsOf = (runId = "r") => Effect.map(eventsOf(runId), (events) => events.map(({ _tag }) => _tag))

/** Those of one kind. */
export const only = <Tag extends RunEvent.RunEvent["_tag"]>(tag: Tag, runId = "r") =>
  Effect.map(eventsOf(runId), (events) =>
    events.filter((event): event is Extract<RunEvent.RunEvent, { readonly _tag: Tag }> => event._tag === tag)
  )

/** Every stored history is one that providers take. */
export const expectValid = (...runIds: ReadonlyArray<string>) =>
  Effect.forEach(runIds, (runId) =>
    Effect.map(PairingChecker.ofRun(runId), (violations) => expect(violations).toEqual([]))
  )

/** As the store has it. */
export const bodiesOf = (runId = "r") =>
  CheckpointStore.CheckpointStore.use((store) =>
    Effect.map(store.read(runId, { after: 0, limit: 10_000 }), (events) => events.map(({ body }) => body))
  )

export const digestOf = (callId = "t1.0", runId = "r") =>
  Effect.map(Run.get(runId), ({ waiting }) => {
    const wait = waiting.find(({ id }) => id === callId)
    if (wait?.digest === undefined) throw new Error(`${callId} does not wait`)
    return wait.digest
  })

export const answer = (answer: RunEvent.Answer, callId = "t1.0", runId = "r") =>
  Run.answer(clerk, { runId, callId, answer, by: "ann" })

export const approved = (digest: string): RunEvent.Answer => ({ _tag: "Approve", digest })

export const approve = (callId = "t1.0", runId = "r") =>
  Effect.flatMap(digestOf(callId, runId), (digest) => answer(approved(digest), callId, runId))

export const deny = (reason: string, callId = "t1.0", runId = "r") =>
  Effect.flatMap(digestOf(callId, runId), (digest) => answer({ _tag: "Deny", digest, reason }, callId, runId))

/** Ends the lease of whoever has it, as time would; nothing else is changed. */
export const expire = (runId = "r") =>
  CheckpointStore.CheckpointStore.use((store) =>
    Effect.gen(function* () {
      const { epoch = 0, owner = "" } = (yield* store.head(runId)) ?? {}
      yield* store.renew({ runId, epoch, owner, ttlMillis: 1 })
      yield* Effect.sleep("5 millis")
    })
  )

/** The class and reason of a failure, else what came out. */
export const told = <A, E extends { readonly _tag: string; readonly reason: { readonly _tag: string } }, R>(
  effect: Effect.Effect<A, E, R>
): Effect.Effect<string, never, R> =>
  Effect.map(Effect.exit(effect), (exit) => {
    if (Exit.isSuccess(exit)) return tagOf(exit.value)
    const failed = exit.cause.reasons.find(Cause.isFailReason)
    return failed === undefined ? Cause.pretty(exit.cause) : `${failed.error._tag} ${failed.error.reason._tag}`
  })

const tagOf = (value: unknown): string =>
  typeof value === "object" && value !== null && "_tag" in value ? String(value._tag) : String(value ?? "void")
