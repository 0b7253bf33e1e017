/**
 * Installs the toolchain in a fresh clone: needs Node 18 and npm, nothing else.
 *
 * Does nothing when the last install was of the present lock file. Node 24 itself comes from npm
 * (optionalDependencies node-*), so everything that npm, pnpm or turbo runs afterwards runs under it.
 */
import { execFileSync, spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const windows = process.platform === "win32"
const minimum = [22, 19]
const stamp = join(root, "node_modules", ".cache", "waystone", "installed")

const { packageManager } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))

if (!existsSync(stamp) || readFileSync(stamp, "utf8") !== lockDigest()) install()
checkNode()

function install() {
  const started = Date.now()
  const args = ["-y", packageManager, "install", "--frozen-lockfile"]
  console.log(`bootstrap: npx ${args.join(" ")} (the first time this takes about 30 seconds)`)
  const env = { ...process.env, npm_config_update_notifier: "false" }
  const { status, error } = spawnSync("npx", args, { cwd: root, stdio: "inherit", shell: windows, env })
  if (error || status !== 0) fail(`the install failed${error ? `: ${error.message}` : ` with exit code ${status}`}`)
  mkdirSync(dirname(stamp), { recursive: true })
  writeFileSync(stamp, lockDigest())
  console.log(`bootstrap: installed in ${((Date.now() - started) / 1000).toFixed(1)} s`)
}

/** A digest, not a time: a checkout of another branch or a copy of the tree changes times at will. */
function lockDigest() {
  const hash = createHash("sha256")
  for (const name of ["pnpm-lock.yaml", "pnpm-workspace.yaml", "package.json"]) {
    hash.update(readFileSync(join(root, name)))
  }
  return hash.digest("hex")
}

/** The Node that the scripts will run on: the linked one, or the system's where npm has no package for it (macOS). */
function checkNode() {
  const linked = join(root, "node_modules", ".bin", windows ? "node.CMD" : "node")
  const node = existsSync(linked) ? linked : "node"
  const version = execFileSync(node, ["--version"], { encoding: "utf8", shell: windows }).trim()
  const [major, minor] = version.slice(1).split(".").map(Number)
  if (major < minimum[0] || (major === minimum[0] && minor < minimum[1])) {
    fail(
      `Node ${version} (${node}) is too old: ${minimum.join(".")} or later is needed, and npm has none for this system`
    )
  }
}

function fail(message) {
  console.error(`bootstrap: ${message}`)
  process.exit(1)
}
