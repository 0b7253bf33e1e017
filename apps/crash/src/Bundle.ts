/**
 * Bundles the worker once before the tests: hundreds of them start, and a start from sources takes three times the CPU time.
 *
 * What is bundled is our own source (condition `@waystone/source`). What only one store needs is a chunk of its own.
 */
import { join } from "node:path"
import { rolldown } from "rolldown"
import * as Worker from "./Worker.ts"

export const make = async (): Promise<void> => {
  const bundle = await rolldown({
    input: join(import.meta.dirname, "main.ts"),
    platform: "node",
    resolve: { conditionNames: ["@waystone/source", "module", "node", "import"] }
  })
  try {
    // Names stay, so that a stack trace can be read.
    const minify = { compress: true, mangle: false, codegen: true }
    await bundle.write({ dir: Worker.folder, entryFileNames: "[name].mjs", minify })
  } finally {
    await bundle.close()
  }
}
