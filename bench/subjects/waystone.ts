import { Agent, MemoryStore, Run, Window } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import { instructions, type Options, type Subject, task } from "../script.ts"
import { Add, layer } from "./model.ts"

/** Waystone as it comes: the memory store, default limits but for the length of these Runs. */
export const make = ({ script, stream, window }: Options): Subject => {
  const agent = Agent.make("bench", {
    instructions,
    tools: [Add],
    stream,
    limits: { maxTurns: 20_000, activeTime: "1 hour" },
    ...(window === undefined ? undefined : { window: Window.lastMessages(window) })
  })
  const runtime = ManagedRuntime.make(Layer.merge(layer(script), MemoryStore.layer))
  return {
    run: (runId) =>
      runtime.runPromise(
        Effect.map(Run.start(agent, { runId, task }), (outcome) =>
          outcome._tag === "Completed" ? outcome.output : outcome._tag
        )
      )
  }
}
