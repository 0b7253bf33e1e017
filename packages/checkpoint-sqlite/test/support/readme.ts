/** The code of README.md, compiled: Readme.test.ts compares both and runs it. */
import { Agent, Run } from "@waystone/core"
import { SqliteStore } from "@waystone/checkpoint-sqlite"
import { SqliteClient } from "@waystone/checkpoint-sqlite/client"
import * as Effect from "effect/Effect"
import type * as LanguageModel from "effect/ai/LanguageModel"
import * as SqlClient from "effect/sql/SqlClient"

const agent = Agent.make("greeter", { instructions: "Greet the user." })

const program = Run.start(agent, { runId: "greeting-1", task: "Say hello." }).pipe(
  Effect.provide(SqliteStore.layer({ file: "data/runs.db" }))
)

const waiting = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  return yield* sql`SELECT run_id, waiting FROM runs WHERE status = 'waiting'`
}).pipe(Effect.provide(SqliteClient.layer({ file: "data/runs.db" })))

/** What the two examples are, without the types that they infer. */
export const examples: {
  readonly program: Effect.Effect<unknown, unknown, LanguageModel.LanguageModel>
  readonly waiting: Effect.Effect<ReadonlyArray<unknown>, unknown>
} = { program, waiting }
