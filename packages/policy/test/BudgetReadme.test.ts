import { expect, it } from "@effect/vitest"
import { MemoryStore, ModelInfo, Run } from "@waystone/core"
import { ScriptedModel } from "@waystone/core/testing"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import * as Budget from "../src/Budget.ts"
import { agent, Policies } from "./fixtures/readme-budget.ts"

const read = (path: string) => readFileSync(join(import.meta.dirname, path), "utf8")
const section = read("../README.md").split("\n## Budget\n")[1]?.split("\n## ")[0] ?? ""

it("README.md shows the policies that are compiled here, and every option with its default", () => {
  expect(section).toContain(`\`\`\`ts\n${read("fixtures/readme-budget.ts")}\`\`\``)
  for (const [option, value] of Object.entries(Budget.defaults)) {
    expect(section).toContain(`| \`${option}\` | \`${JSON.stringify(value)}\` |`)
  }
})

it.effect("the policies of README.md work", () =>
  Effect.gen(function* () {
    const info = Layer.succeed(ModelInfo.ModelInfo, { provider: "my-server", model: "my-model" })
    const live = Layer.mergeAll(ScriptedModel.layer([ScriptedModel.text("done")]), info, MemoryStore.layer, Policies)
    const outcome = yield* Run.start(agent, { runId: "r", task: "go" }).pipe(Effect.provide(live))
    expect(outcome._tag).toBe("Completed")
  })
)
