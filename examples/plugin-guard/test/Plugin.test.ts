import { expect, it } from "@effect/vitest"
import { RunEvent } from "../src/index.ts"

it("the plugin is built on the workspace's core", () => {
  expect(RunEvent.version).toBe(1)
})
