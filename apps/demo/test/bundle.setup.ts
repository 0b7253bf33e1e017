/**
 * Runs once before the test files; in watch mode again before each run.
 */
import type { TestProject } from "vitest/node"
import * as Bundle from "../../crash/src/Bundle.ts"
import { bundle, main } from "./paths.ts"

export const setup = async (project: TestProject): Promise<void> => {
  const make = () => Bundle.make({ input: main, dir: bundle })
  await make()
  project.onTestsRerun(make)
}
