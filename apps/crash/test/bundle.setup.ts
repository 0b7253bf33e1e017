/**
 * Runs once before the test files; in watch mode again before each run.
 */
import { join } from "node:path"
import type { TestProject } from "vitest/node"
import * as Bundle from "../src/Bundle.ts"
import * as Worker from "../src/Worker.ts"

export const setup = async (project: TestProject): Promise<void> => {
  const make = () => Bundle.make({ input: join(import.meta.dirname, "../src/main.ts"), dir: Worker.folder })
  await make()
  project.onTestsRerun(make)
}
