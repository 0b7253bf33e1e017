/**
 * Runs once before the test files; in watch mode again before each run.
 */
import type { TestProject } from "vitest/node"
import * as Bundle from "../src/Bundle.ts"

export const setup = async (project: TestProject): Promise<void> => {
  await Bundle.make()
  project.onTestsRerun(Bundle.make)
}
