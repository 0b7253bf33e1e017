/** The part of docs/write-a-store.md that registers tests. */
import { it } from "@effect/vitest"
import { Agent, CheckpointStore } from "@waystone/core"
import {
  AnswerLosingStore,
  CheckpointStoreSuite,
  CrashSuite,
  ScriptedModel,
  YieldingStore
} from "@waystone/core/testing"
import { Effect, Layer, Schema, type Scope } from "effect"
import { Tool, Toolkit } from "effect/ai"
import { TestClock } from "effect/testing"
import { readdirSync, readFileSync, truncateSync } from "node:fs"
import { join } from "node:path"
import { peer } from "./guide.ts"
import * as MyStore from "./guideStore.ts"

type Store = CheckpointStore.CheckpointStore["Service"]

/** One test per rule; a rule whose capability is not given is listed as skipped, with its reason in its name. */
export const prove = (
  store: Layer.Layer<CheckpointStore.CheckpointStore, unknown>,
  capabilities: CheckpointStoreSuite.Capabilities
) => {
  CheckpointStoreSuite.register(it.live, { layer: store, capabilities })
}

/** The same store, every second answer of which is lost: all rules still hold. */
export const forgetful = (store: Effect.Effect<Store>) =>
  Layer.effect(
    CheckpointStore.CheckpointStore,
    Effect.map(store, (one) => AnswerLosingStore.make(YieldingStore.make(one), AnswerLosingStore.every(2)))
  )

export const capabilities = (folder: string): CheckpointStoreSuite.Capabilities => ({
  advance: (millis) => TestClock.adjust(millis), // only with `it.effect`; leave it out if your clock is a real one
  reopen: MyStore.make(folder),
  leftovers: (runId) => Effect.sync(() => readdirSync(folder).filter((name) => name === `${runId}.json`).length),
  damage: (runId) =>
    Effect.sync(() => {
      const file = join(folder, `${runId}.json`)
      truncateSync(file, 20)
      return Effect.sync(() => readFileSync(file, "utf8"))
    }),
  peer: peer(new URL("guideChild.ts", import.meta.url), [folder]),
  watch: true
})

const Pay = Tool.make("pay", { parameters: Schema.Struct({ amount: Schema.Finite }), success: Schema.String })
const Till = Toolkit.make(Pay)
const payer = Agent.make("payer", { instructions: "Pay.", tools: [Till] })

/** Answers by what stands in the request, so that no crash derails it. */
const model = ScriptedModel.layer(({ messages }) =>
  messages.some(({ role }) => role === "tool") ? ScriptedModel.text("done") : ScriptedModel.call("pay", { amount: 3 })
)
const till = Till.toLayer({ pay: ({ amount }) => CrashSuite.happens(Effect.succeed(`paid ${amount}`)) })

export const crash = (store: Effect.Effect<Store, unknown, Scope.Scope>) => {
  CrashSuite.register(it.live, { agent: payer, services: Layer.merge(model, till), store })
}
