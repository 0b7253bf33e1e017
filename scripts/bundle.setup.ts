/**
 * Bundles the programs that tests start many times, once before the tests of a project, in watch mode before each run: a
 * start from sources takes three times the CPU time.
 *
 * What is bundled is our own source (condition `@waystone/source`). What only some of its starts need is a chunk of its own.
 */
import { join } from "node:path"
import { rolldown } from "rolldown"
import type { TestProject } from "vitest/node"

/** By the project's folder: where the program begins, and the folder of its `<name>.mjs` and of the chunks. */
export const programs: Readonly<Record<string, { readonly input: string; readonly dir: string }>> = {
  "apps/crash": { input: "src/main.ts", dir: "node_modules/.cache/worker" },
  // Beside `src`, since it looks for `../project`.
  "apps/demo": { input: "src/main.ts", dir: ".bundle" },
  "packages/checkpoint-redis": { input: "test/support/child.ts", dir: "node_modules/.cache/child" },
  "packages/checkpoint-sqlite": { input: "test/child.ts", dir: "node_modules/.cache/child" }
}

export const setup = async (project: TestProject): Promise<void> => {
  const { root } = project.config
  const found = Object.entries(programs).find(([folder]) => root === join(import.meta.dirname, "..", folder))
  if (found === undefined) throw new Error(`bundle.setup.ts knows no program of ${root}`)
  const [, { dir, input }] = found
  const make = () => bundled(join(root, input), join(root, dir))
  await make()
  project.onTestsRerun(make)
}

const bundled = async (input: string, dir: string): Promise<void> => {
  const bundle = await rolldown({
    input,
    platform: "node",
    resolve: { conditionNames: ["@waystone/source", "module", "node", "import"] }
  })
  try {
    // Names stay, so that a stack trace can be read.
    const minify = { compress: true, mangle: false, codegen: true }
    await bundle.write({ dir, entryFileNames: "[name].mjs", chunkFileNames: "[name].mjs", minify })
  } finally {
    await bundle.close()
  }
}
