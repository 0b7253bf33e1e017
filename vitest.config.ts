import { existsSync, readdirSync } from "node:fs"
import { availableParallelism } from "node:os"
import { join } from "node:path"
import { defineConfig } from "vitest/config"
import { programs } from "./scripts/bundle.setup.ts"

const root = import.meta.dirname
/** The long tests are run, by a stage of scripts/test.mjs that has a report of its own. */
const isFull = process.env["WAYSTONE_FULL"] === "1"
const condition = "@waystone/source"
const nested = ["packages", "apps", "examples"].flatMap((folder) =>
  existsSync(join(root, folder)) ? readdirSync(join(root, folder)).map((name) => `${folder}/${name}`) : []
)
const tested = [...nested, "bench"].filter((folder) => existsSync(join(root, folder, "test")))

/**
 * Tests import the workspace's source, never dist. Without "module", which is for bundlers: what Node itself then loads need not
 * be there in a form that it can load.
 */
const source = { conditions: [condition, "node", "development|production"] }

// Each worker and each process that a test starts from sources loads effect: to compile it once saves a third of the CPU time
// of a start. Coverage needs functions that come from no cache.
if (!process.argv.some((word) => word.startsWith("--coverage")))
  process.env["NODE_COMPILE_CACHE"] ??= join(root, "node_modules/.cache/waystone/compiled")

export default defineConfig({
  resolve: source,
  ssr: { resolve: source },
  test: {
    // Processes that a test forks from process.execArgv see the source too.
    execArgv: [`--conditions=${condition}`],
    // More than there are cores: many tests wait for timers, disks and other processes.
    maxWorkers: availableParallelism() + 1,
    // Only what hangs takes that long, however busy the machine is: tests do not measure time.
    testTimeout: isFull ? 600_000 : 120_000,
    hookTimeout: 120_000,
    reporters: [
      "default",
      ["json", { outputFile: join(root, "node_modules/.cache/waystone", isFull ? "vitest-full.json" : "vitest.json") }]
    ],
    coverage: { provider: "v8", include: ["packages/*/src/**/*.ts"], reporter: ["text", "html", "json-summary"] },
    projects: tested.map((folder) => ({
      extends: true as const,
      root: join(root, folder),
      test: {
        name: folder.replace(/^packages\//, ""),
        // Files share a process: no module of ours has state that a test could leave behind, and to load effect anew for
        // each file takes half of the time. The demo's helpers register hooks, which they would do for the first file only.
        isolate: folder === "apps/demo",
        include: ["test/**/*.test.ts"],
        // Types (test/*.test-d.ts) are tested by `tsc -b`, which has them all: here each project of them took 10 s of a core.
        globalSetup: folder in programs ? [join(root, "scripts/bundle.setup.ts")] : []
      }
    }))
  }
})
