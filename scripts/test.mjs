/**
 * Everything that must hold before a commit lands: types, then all other checks of the code, then the tests. What fails ends it.
 *
 * The last line is `N passed, N failed`, read from vitest's own reports. With WAYSTONE_FULL=1 the long tests run after all others.
 */
import { spawn } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { delimiter, dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const cache = join(root, "node_modules", ".cache", "waystone")
const report = join(cache, "vitest.json")
const fullReport = join(cache, "vitest-full.json")
const counts = join(cache, "counts.txt")
// The long tests have a stage of their own: beside all the others they would wait for the machine, not for what they test.
const { WAYSTONE_FULL: isFull, ...inherited } = process.env
const env = {
  ...inherited,
  PATH: join(root, "node_modules", ".bin") + delimiter + process.env.PATH,
  TURBO_TELEMETRY_DISABLED: "1",
  DO_NOT_TRACK: "1"
}

const types = ["types", () => run("tsc -b")]
/** Beside each other: each of them leaves a core idle now and then. */
const checks = [
  ["effect", () => run("effect-tsgo diagnostics --strict --format text --project tsconfig.json")],
  ["lint", () => run("oxlint --deny-warnings")],
  ["format", () => run("oxfmt --check")],
  ["build and packages", packages]
]
const tests = [
  // What the long tests run whole is not run before as well.
  ["tests", () => run(["vitest run", ...(isFull === "1" ? longer().map(left) : [])].join(" "))],
  ...(isFull === "1"
    ? [
        ["packed packages in a project of their own", () => run("node scripts/packed.mjs")],
        ["the long tests", () => run(`WAYSTONE_FULL=1 vitest run ${longer().join(" ")}`)]
      ]
    : [])
]

mkdirSync(cache, { recursive: true })
for (const file of [report, fullReport, counts]) rmSync(file, { force: true })

const isSound = (await stage(types)) && (await Promise.all(checks.map(stage))).every((passed) => passed)
if (!isSound) console.error("\nThe tests did not run.")
for (const one of isSound ? tests : []) if (!(await stage(one))) break
closeWithCounts()

async function stage([name, work]) {
  const started = Date.now()
  const passed = await work()
  console.log(`== ${name}: ${passed ? "passed" : "FAILED"} in ${((Date.now() - started) / 1000).toFixed(1)} s\n`)
  if (!passed) process.exitCode = 1
  return passed
}

async function packages() {
  if (!(await run("turbo run build --output-logs=errors-only"))) return false
  for (const folder of publishable()) {
    if (!(await run("publint --strict", folder))) return false
    if (!(await run("attw --pack . --profile esm-only", folder))) return false
  }
  return true
}

/** Its output is shown as it comes: lines of commands that run beside each other may mix, and each says what it is about. */
function run(command, folder = ".") {
  console.log(`$ ${command}${folder === "." ? "" : `   (${folder})`}`)
  const child = spawn(command, { cwd: join(root, folder), stdio: "inherit", shell: true, env })
  return new Promise((resolve) => {
    child.once("error", (error) => {
      console.error(error.message)
      resolve(false)
    })
    child.once("close", (code) => resolve(code === 0))
  })
}

/** The test files that do more with WAYSTONE_FULL: they look at it, or a module that they import from their folder does. */
function longer() {
  const names = ["packages", "apps", "examples"]
    .flatMap(folders)
    .map((folder) => `${folder}/test`)
    .filter((folder) => existsSync(join(root, folder)))
    .flatMap((folder) => readdirSync(join(root, folder), { recursive: true }).map((name) => join(folder, name)))
  const texts = new Map(
    names.filter((name) => name.endsWith(".ts")).map((name) => [name, readFileSync(join(root, name), "utf8")])
  )
  // Who only hands it to others does not look at it.
  const looking = /WAYSTONE_FULL|\bisFull\b/
  const looks = (name) => looking.test(texts.get(name)?.replace(/^export const isFull = .*|^\/\*\*.*/gm, "") ?? "")
  const imported = (name) => [...texts.get(name).matchAll(/from "(\.[^"]*)"/g)].map(([, to]) => join(dirname(name), to))
  return [...texts.keys()].filter((name) => name.endsWith(".test.ts") && [name, ...imported(name)].some(looks))
}

/** A file that a run leaves out; each project would read a relative path as its own. */
function left(file) {
  return `--exclude '${join(root, file)}'`
}

/** The projects in one of the folders that hold them. */
function folders(holder) {
  return readdirSync(join(root, holder)).map((name) => `${holder}/${name}`)
}

function publishable() {
  return folders("packages")
    .filter((folder) => existsSync(join(root, folder, "package.json")))
    .filter((folder) => !JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8")).private)
}

function closeWithCounts() {
  const all = [report, fullReport].filter(existsSync).map(readCounts)
  const passed = all.reduce((sum, one) => sum + one.passed, 0)
  const failed = all.reduce((sum, one) => sum + one.failed, 0)
  if (passed + failed === 0) console.error("\nNo test ran.")
  if (passed === 0 || failed > 0) process.exitCode = 1
  const line = `${passed} passed, ${failed} failed`
  writeFileSync(counts, `${line}\n`)
  console.log(`\n${line}`)
}

/** A file that fails before its first test (a broken import) counts as one failure. */
function readCounts(file) {
  let results
  try {
    results = JSON.parse(readFileSync(file, "utf8"))
  } catch {
    return { passed: 0, failed: 0 }
  }
  const broken = results.testResults.filter(
    (file) => file.status === "failed" && file.assertionResults.every((test) => test.status !== "failed")
  )
  return { passed: results.numPassedTests, failed: results.numFailedTests + broken.length }
}
