/**
 * Bundles a program once before tests that start it many times: a start from sources takes three times the CPU time.
 *
 * What is bundled is our own source (condition `@waystone/source`). What only one store needs is a chunk of its own.
 */
import { rolldown } from "rolldown"

export interface Program {
  readonly input: string
  /** Where `<name of the input>.mjs` and its chunks go. */
  readonly dir: string
}

export const make = async ({ dir, input }: Program): Promise<void> => {
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
