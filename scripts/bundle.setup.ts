/**
 * Bundles the programs that tests start many times, once before the tests of a project, in watch mode before each run: a
 * start from sources takes three times the CPU time.
 *
 * What is bundled is our own source (condition `@waystone/source`). What only some of its starts need is a chunk of its own.
 */
import { join } from "node:path"
import { type Plugin, rolldown } from "rolldown"
import type { TestProject } from "vitest/node"

interface Program {
  readonly input: string
  readonly dir: string
}

/** By the project's folder: where each program begins, and the folder of its `<name>.mjs` and of the chunks. */
export const programs: Readonly<Record<string, ReadonlyArray<Program>>> = {
  "apps/crash": [
    { input: "src/main.ts", dir: "node_modules/.cache/worker" },
    { input: "test/durable/worker.ts", dir: "node_modules/.cache/other" }
  ],
  // Beside `src`, since it looks for `../project`.
  "apps/demo": [{ input: "src/main.ts", dir: ".bundle" }],
  "packages/checkpoint-redis": [{ input: "test/support/child.ts", dir: "node_modules/.cache/child" }],
  "packages/checkpoint-sqlite": [{ input: "test/child.ts", dir: "node_modules/.cache/child" }]
}

export const setup = async (project: TestProject): Promise<void> => {
  const { root } = project.config
  const found = Object.entries(programs).find(([folder]) => root === join(import.meta.dirname, "..", folder))
  if (found === undefined) throw new Error(`bundle.setup.ts knows no program of ${root}`)
  const make = async () => {
    for (const { dir, input } of found[1]) await bundled(join(root, input), join(root, dir))
  }
  await make()
  project.onTestsRerun(make)
}

const bundled = async (input: string, dir: string): Promise<void> => {
  const bundle = await rolldown({
    input,
    platform: "node",
    plugins: [leanRedis],
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

/**
 * node-redis without its methods of single commands, which nobody calls here (effect sends commands by name): to attach 1,000 of
 * them, half of them for modules that no server here has, took a third of the CPU time of a start on Redis.
 */
const leanRedis: Plugin = {
  name: "lean-redis",
  async resolveId(source, importer) {
    if (source !== "redis") return null
    const whole = await this.resolve(source, importer, { skipSelf: true })
    return whole === null ? null : this.resolve("@redis/client", whole.id)
  },
  transform: {
    filter: { id: /@redis[\\/]client[\\/]dist[\\/]lib[\\/]commander\.js$/ },
    handler: (code) => {
      const attaching = "of Object.entries(commands)) {\n        Class.prototype[name]"
      if (!code.includes(attaching)) throw new Error("@redis/client attaches its commands in another way now")
      return code.replace(attaching, "of []) {\n        Class.prototype[name]")
    }
  }
}
