/**
 * Starts what the agent runs where it cannot reach the demo: on Linux with bubblewrap (`bwrap`), else as it is.
 *
 * Invariants
 *   B1  No command sees the store's folder (or its file, where the user named one), nor any process but its own: the demo's
 *       environment and arguments, which hold keys, are not in its /proc.
 *   B2  The project's tests, which run without a question, also change nothing outside of the project and of a private
 *       folder for temporary files, and reach no network.
 *   B3  A folder that is hidden is there for everybody else: nothing is made or changed outside of the sandbox.
 */
import { CommandRunner } from "@waystone/tools"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { existsSync, realpathSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, sep } from "node:path"
import type { Store } from "./Stores.ts"

export type Argv = readonly [string, ...ReadonlyArray<string>]

/**
 * `hidden`: for commands that a person may have seen; only the demo is kept from them. `confined`: for what nobody has
 * seen.
 */
export type Kind = "hidden" | "confined"

const words = (text: string): ReadonlyArray<string> => text.split(" ")
// A process of root keeps no power to take a mount away.
const apart = words("--die-with-parent --unshare-pid --unshare-ipc --cap-drop ALL")

/** Puts a command into the sandbox for a Run in `folder`. It is tried once; where there is none, it changes nothing. */
export const make = Effect.fnUntraced(function* (
  kind: Kind,
  store: Store,
  folder: string
): Effect.fn.Return<(argv: Argv) => Argv, never, CommandRunner.CommandRunner> {
  const { run } = yield* CommandRunner.CommandRunner
  const network = yield* Network
  const view = () => (kind === "hidden" ? words("--dev-bind / / --proc /proc") : confined(folder, network))
  const wrap = (argv: Argv): Argv => ["bwrap", ...apart, ...view(), ...hiding(store), "--", ...argv]
  if (process.platform !== "linux") return (argv) => argv
  const tried = run({ argv: wrap(["true"]), cwd: "/", timeout: "10 seconds" })
  const works = yield* Effect.orElseSucceed(
    Effect.map(tried, ({ exitCode }) => exitCode === 0),
    () => false
  )
  return works ? wrap : (argv) => argv
})

/** Whether the tests reach the network, too. Default false. */
export const Network: Context.Reference<boolean> = Context.Reference("demo/Sandbox/Network", {
  defaultValue: () => false
})

const confined = (folder: string, network: boolean): ReadonlyArray<string> => {
  const temporary = real(tmpdir())
  // Node itself may be installed there.
  const node = dirname(process.execPath)
  const kept = node.startsWith(temporary + sep) ? ["--ro-bind", node, node] : []
  return [
    ...(network ? [] : ["--unshare-net"]),
    ...words("--ro-bind / / --dev /dev --proc /proc --tmpfs"),
    temporary,
    ...kept,
    "--bind",
    folder,
    folder
  ]
}

const real = (path: string): string => (existsSync(path) ? realpathSync(path) : path)

/** Only what is there is hidden: bwrap would make it, for everybody. What lies in a hidden folder needs no more. */
const hiding = (store: Store): ReadonlyArray<string> => {
  if (store._tag !== "File") return []
  if (!store.named) {
    const folder = real(dirname(store.file))
    return existsSync(folder) ? ["--tmpfs", folder] : []
  }
  return ["", "-wal", "-shm", "-journal"]
    .map((end) => real(store.file) + end)
    .filter((file) => existsSync(file))
    .flatMap((file) => ["--ro-bind", "/dev/null", file])
}
