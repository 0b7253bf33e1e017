/**
 * Packs every package that is published, installs the tarballs into an empty npm project outside of the workspace, and runs
 * the quick start of README.md there: what users get, and not what the workspace sees.
 *
 * Needs a build, and the registry that npm is set up with. Every entry of every package is loaded, so that a dependency
 * that only the workspace provides is missed; the quick start is checked by tsc and run by node, which strips its types.
 */
import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const bin = (name) => join(root, "node_modules", ".bin", process.platform === "win32" ? `${name}.CMD` : name)
const read = (file) => JSON.parse(readFileSync(file, "utf8"))

const packages = readdirSync(join(root, "packages"))
  .map((name) => join(root, "packages", name))
  .filter((folder) => existsSync(join(folder, "package.json")) && !read(join(folder, "package.json")).private)
const base = mkdtempSync(join(tmpdir(), "waystone-packed-"))
const project = join(base, "project")

try {
  const tarballs = packages.map(pack)
  install(tarballs)
  const entries = tarballs.flatMap(({ name, exports }) => Object.keys(exports).map((entry) => name + entry.slice(1)))
  write("entries.ts", entries.map((entry, i) => `export * as e${i} from ${JSON.stringify(entry)}\n`).join(""))
  write("quick-start.ts", quickStart())
  run(bin("tsc"), ["--project", "."])
  run(process.execPath, ["entries.ts"])
  const said = run(process.execPath, ["quick-start.ts"])
  if (!said.includes('"_tag":"Completed"') || !said.includes("4 degrees")) fail(`the quick start said ${said}`)
  console.log(`${tarballs.length} packages with ${entries.length} entries; the quick start said ${said.trim()}`)
} finally {
  rmSync(base, { recursive: true, force: true })
}

function pack(folder) {
  const to = join(base, "tarballs", folder.slice(folder.lastIndexOf("packages") + 9))
  mkdirSync(to, { recursive: true })
  run(bin("pnpm"), ["pack", "--pack-destination", to], folder)
  const [file] = readdirSync(to)
  const { name, exports } = read(join(folder, "package.json"))
  return { name, exports, file: join(to, file) }
}

/** The peers are what the workspace tests with; the rest is npm's choice, as for a user. */
function install(tarballs) {
  mkdirSync(project)
  const peers = [
    ...new Set(packages.flatMap((folder) => Object.keys(read(join(folder, "package.json")).peerDependencies ?? {})))
  ]
  const versions = peers.map((peer) => [peer, installed(peer)])
  const ours = tarballs.map(({ file, name }) => [name, `file:${file}`])
  const dependencies = Object.fromEntries([...versions, ...ours])
  write("package.json", JSON.stringify({ name: "user", private: true, type: "module", dependencies }))
  const compilerOptions = {
    target: "ES2023",
    lib: ["ES2023", "DOM"],
    module: "NodeNext",
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: true,
    noEmit: true,
    types: []
  }
  write("tsconfig.json", JSON.stringify({ compilerOptions, files: ["entries.ts", "quick-start.ts"] }))
  run("npm", ["install", "--prefer-offline", "--ignore-scripts", "--no-audit", "--no-fund"])
}

function installed(peer) {
  const folder = packages.find((folder) => existsSync(join(folder, "node_modules", peer, "package.json")))
  if (folder === undefined) fail(`${peer} is installed for no package`)
  return read(join(folder, "node_modules", peer, "package.json")).version
}

/** The first program of README.md with the model that its text names, and nothing else. */
function quickStart() {
  const [, code] =
    /## Your first durable agent\n+```ts\n([\s\S]*?)```/.exec(readFileSync(join(root, "README.md"), "utf8")) ?? []
  if (code === undefined) fail("README.md has no quick start")
  const model =
    'ScriptedModel.layer([ScriptedModel.call("weather", { city: "Oslo" }), ScriptedModel.text("4 degrees")])'
  return [
    'import { ScriptedModel } from "@waystone/core/testing"',
    `const Model = ${model}`,
    code,
    "console.log(JSON.stringify(outcome))",
    ""
  ].join("\n")
}

function write(name, text) {
  writeFileSync(join(project, name), text)
}

/** What it prints; its errors are shown, and end everything. */
function run(command, args, cwd = project) {
  // No variable of the workspace's own package manager leaks into the user's project.
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(npm_(package|lifecycle)|NODE_OPTIONS)/.test(name))
  )
  const { error, status, stderr, stdout } = spawnSync(command, args, {
    cwd,
    env,
    encoding: "utf8",
    shell: process.platform === "win32"
  })
  if (error !== undefined || status !== 0) fail(`${command} ${args.join(" ")}\n${error ?? ""}${stdout}${stderr}`)
  return stdout
}

function fail(message) {
  rmSync(base, { recursive: true, force: true })
  console.error(`packed: ${message}`)
  process.exit(1)
}
