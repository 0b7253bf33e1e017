/**
 * Runs commands in a sandbox of Linux namespaces, made by the program bubblewrap (`bwrap`).
 *
 * A command sees the system read-only (/usr, /bin, /lib…, /etc, /opt, /nix), the folders that it may write, a /tmp of its
 * own, its own processes and no network. Nothing of the home folder is there, and HOME is /tmp. All of its processes die
 * with it. It runs under the same user, and without capabilities. Not confined: CPU, memory, disk space in the writable
 * folders, and what /etc shows to that user. With `network` it can reach everything that this machine can, localhost too.
 *
 * Invariants
 *   W1  Nothing outside of `writable` and the private /tmp and /dev can be written, settings of the kernel included: the
 *       root of the sandbox is root of this machine where this process is, so all of /proc is read-only.
 *   W2  Without `network` there is no network, loopback alone.
 *   W3  A command that cannot be started in the sandbox is `CommandUnavailable`, as one is outside of it.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import { existsSync, realpathSync } from "node:fs"
import { isAbsolute, normalize } from "node:path"
import { type Command, CommandOptionsInvalid } from "./Command.ts"
import type * as CommandOptions from "./CommandOptions.ts"
import * as CommandRun from "./CommandRun.ts"
import { CommandRunner } from "./CommandRunner.ts"
import * as Program from "./Program.ts"

export interface Options extends Pick<CommandOptions.Options, "env" | "grace"> {
  /** Absolute paths of folders that commands may change. */
  readonly writable: ReadonlyArray<string>
  /** Absolute paths of folders and files that commands may read beyond the system. Default none. */
  readonly readable?: ReadonlyArray<string>
  /** Default false. */
  readonly network?: boolean
}

/** There is no sandbox here; `message` says what to install or to allow. */
export class BubblewrapUnavailable extends Schema.TaggedError<BubblewrapUnavailable>()("BubblewrapUnavailable", {
  message: Schema.String
}) {}

/** Commands run in the sandbox. Fails if it cannot be made here: `true` is run in it when the layer is built. */
export const layer = (
  options: Options
): Layer.Layer<CommandRunner, CommandOptionsInvalid | BubblewrapUnavailable, ChildProcessSpawner> =>
  Layer.effect(
    CommandRunner,
    Effect.gen(function* () {
      yield* check(options)
      const { env, grace } = options
      const wrap =
        (...more: ReadonlyArray<string>) =>
        ({ argv, cwd }: Command): Command["argv"] => [...sandbox(options), ...more, "--chdir", cwd, "--", ...argv]
      const given = { ...(env === undefined ? {} : { env }), ...(grace === undefined ? {} : { grace }) }
      // What bwrap itself prints is for the application; a model is only told that it failed.
      yield* Effect.flatMap(CommandRun.make({ ...given, wrap: wrap() }), probe)
      const run = yield* CommandRun.make({ ...given, wrap: wrap("--json-status-fd", "3"), isUnstarted })
      return CommandRunner.of({ run })
    })
  )

/** bwrap reports the exit code of a command, and only of one that it started. */
const isUnstarted = (report: string): boolean => !report.includes('"exit-code"')

const check = Effect.fnUntraced(function* (options: Options) {
  for (const field of ["writable", "readable"] as const) {
    for (const path of options[field] ?? []) {
      const refused = refusal(path)
      if (refused !== undefined) return yield* new CommandOptionsInvalid({ field, message: refused })
    }
  }
})

const refusal = (path: string): string | undefined => {
  if (!isAbsolute(path)) return "each path must be absolute"
  if (!existsSync(path)) return "one of the paths does not exist"
  return [normalize(path), realpathSync(path)].some((name) => /^\/(?:proc|dev|sys|tmp)?\/?$/.test(name))
    ? "/, /proc, /dev, /sys and /tmp cannot be shared"
    : undefined
}

/** Whether it works here, and what to do if not. */
const probe = Effect.fnUntraced(function* (run: CommandRun.Run) {
  const unavailable = (message: string) => new BubblewrapUnavailable({ message })
  const missing = yield* Program.refusal({ argv: ["bwrap"], cwd: "/", env: { PATH: process.env["PATH"] ?? "" } })
  if (missing !== undefined) return yield* unavailable("bwrap is not installed: install the package bubblewrap (Linux)")
  const { exitCode, output } = yield* run({ argv: ["true"], cwd: "/", timeout: "10 seconds" }).pipe(
    Effect.mapError(({ message }) => unavailable(`the sandbox could not be tried: ${message}`))
  )
  if (exitCode === 0) return
  return yield* unavailable(
    `bwrap may not make a sandbox here; user namespaces must be allowed. It says: ${output.trim().slice(0, 300)}`
  )
})

/** What is read-only and exists on most systems; a link such as /bin is bound as the folder that it names. */
const system = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix"]
/** Where /etc/resolv.conf may lead. */
const resolver = ["/run/systemd/resolve", "/run/resolvconf"]

const sandbox = ({ network = false, readable = [], writable }: Options): Command["argv"] => [
  "bwrap",
  ...words("--die-with-parent --unshare-all --new-session --cap-drop ALL"),
  ...(network ? ["--share-net"] : []),
  ...[...system, ...(network ? resolver : [])].flatMap((path) => ["--ro-bind-try", path, path]),
  ...words("--dev /dev --proc /proc --tmpfs /tmp"),
  ...readable.flatMap((path) => ["--ro-bind", path, path]),
  ...writable.flatMap((path) => ["--bind", path, path]),
  // The kernel's settings (/proc/sys, /proc/sysrq-trigger…) belong to root, whom no lost capability keeps from writing
  // them. Not each of them by itself: the next kernel has another one. So a sandbox cannot make one in itself.
  // The folders that lead to what is bound are in memory; nobody shall believe that what is written there lasts.
  ...words("--remount-ro /proc --remount-ro / --setenv HOME /tmp --setenv TMPDIR /tmp")
]

const words = (text: string): ReadonlyArray<string> => text.split(" ")
