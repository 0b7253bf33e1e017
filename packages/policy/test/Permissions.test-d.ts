import type { CheckpointStore } from "@waystone/core"
import { Agent, Run } from "@waystone/core"
import type * as Effect from "effect/Effect"
import type * as LanguageModel from "effect/ai/LanguageModel"
import { describe, expectTypeOf, it } from "vitest"
import { Permissions } from "@waystone/policy"

const strict = Agent.make("strict", { instructions: "", requires: [Permissions.Permissions] })
const started = Run.start(strict, { runId: "r", task: "go" })

describe("requires: [Permissions]", () => {
  it("a Run of that agent does not compile without the Layer", () => {
    expectTypeOf<Effect.Services<typeof started>>().toEqualTypeOf<
      Permissions.Permissions | LanguageModel.LanguageModel | CheckpointStore.CheckpointStore
    >()
  })
})
