/** An agent that calls one unsafe tool once, for processes that compete for its Runs. */
import { Agent, Run } from "@waystone/core"
import { ScriptedModel } from "@waystone/core/testing"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Schema from "effect/Schema"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as SqliteStore from "../../src/SqliteStore.ts"

const Count = Tool.make("count", { parameters: Schema.Struct({}), success: Schema.Finite })
const counter = Agent.make("counter", { instructions: "Count.", tools: [Count] })

/** Starts a Run so many times at once; each call of its tool is said to `did`. */
export const starts = (options: SqliteStore.Options, did: (what: string) => void) => {
  const runtime = ManagedRuntime.make(SqliteStore.layer(options))
  const model = ScriptedModel.layer(({ messages }) =>
    messages.some(({ role }) => role === "tool") ? ScriptedModel.text("done") : ScriptedModel.call("count", {})
  )
  return (runId: string, times: number): Promise<ReadonlyArray<string>> => {
    const handlers = Toolkit.make(Count).toLayer({
      count: () =>
        Effect.sync(() => {
          did(`tool ${runId}`)
          return 1
        })
    })
    const start = Run.start(counter, { runId, task: "go" }).pipe(
      Effect.provide(Layer.merge(model, handlers)),
      Effect.match({ onFailure: (error): string => error.reason._tag, onSuccess: (outcome): string => outcome._tag })
    )
    const all = Array.from({ length: times }, () => start)
    return runtime.runPromise(Effect.all(all, { concurrency: "unbounded" }))
  }
}
