/**
 * Who may answer in the demo: a person, never the agent or what it has started.
 */
import { type CheckpointStore, Run } from "@waystone/core"
import { Approvals, type OptionsInvalid } from "@waystone/policy"
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import { userInfo } from "node:os"
import { isInside } from "./Inside.ts"

/** Who sits at this terminal, as the system knows them. */
export const person = (): string => {
  try {
    return userInfo().username
  } catch {
    return "user" // a system without a name for it
  }
}

/** Everybody but the agent may answer; a person at the demo's own terminal, too. */
export const layer: Layer.Layer<
  Approvals.Approvals,
  OptionsInvalid.OptionsInvalid,
  CheckpointStore.CheckpointStore | FileSystem.FileSystem
> = Layer.unwrap(
  Effect.map(Effect.context<CheckpointStore.CheckpointStore | FileSystem.FileSystem>(), (context) =>
    Approvals.layer({
      mayAnswer: (_, { runId }) =>
        Run.get(runId).pipe(
          Effect.flatMap(({ owner }) => isInside(owner)),
          Effect.map((inside) => !inside),
          Effect.orElseSucceed(() => false), // who cannot be looked at is not let in
          Effect.provideContext(context)
        )
    })
  )
)
