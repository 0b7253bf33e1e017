import { describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import { CheckpointStore } from "../src/CheckpointStore.ts"
import * as MemoryStore from "../src/MemoryStore.ts"
import * as AnswerLosingStore from "../src/testing/AnswerLosingStore.ts"
import * as CheckpointStoreSuite from "../src/testing/CheckpointStoreSuite.ts"
import * as YieldingStore from "../src/testing/YieldingStore.ts"

const wrapped = (wrap: (store: CheckpointStore["Service"]) => CheckpointStore["Service"]) =>
  Layer.effect(CheckpointStore, Effect.map(MemoryStore.make, wrap))

const capabilities: CheckpointStoreSuite.Capabilities = { advance: (millis) => TestClock.adjust(millis) }

describe("MemoryStore", () => {
  CheckpointStoreSuite.register(it.effect, { layer: MemoryStore.layer, capabilities })
})

describe("MemoryStore that yields", () => {
  CheckpointStoreSuite.register(it.effect, { layer: wrapped(YieldingStore.make), capabilities })
})

describe("MemoryStore that loses every second answer", () => {
  const layer = wrapped((store) => AnswerLosingStore.make(YieldingStore.make(store), AnswerLosingStore.every(2)))
  CheckpointStoreSuite.register(it.effect, { layer, capabilities })
})

describe("MemoryStore in real time", () => {
  CheckpointStoreSuite.register(it.live, { layer: MemoryStore.layer })
})
