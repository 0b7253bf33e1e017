import { Agent, Run, Window } from "@waystone/core"
import * as Effect from "effect/Effect"
import { answer, instructions, type Script, task } from "../script.ts"
import { Add, layer } from "./model.ts"

const agent = Agent.make("bench", {
  instructions,
  tools: [Add],
  stream: false,
  window: Window.lastMessages(200),
  limits: { maxTurns: 20_000, activeTime: "1 hour" }
})

/** One Run on the store of the context, to its end; of one that a process left behind, the rest. */
export const durableRun = (script: Script, runId: string) =>
  Run.start(agent, { runId, task }).pipe(
    Effect.provide(layer(script)),
    Effect.flatMap((outcome) =>
      outcome._tag === "Completed" && outcome.output === answer ? Effect.void : Effect.die(outcome)
    )
  )
