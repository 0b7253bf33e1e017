import { expect, it } from "@effect/vitest"
import { version } from "../src/index.ts"

it("the plugin is built on the workspace's core", () => {
  expect(version).toMatch(/^\d+\.\d+\.\d+$/)
})
