import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, readFileSync } from "node:fs"
import { Owner } from "../src/Owner.ts"
import * as ProcessOwner from "../src/ProcessOwner.ts"

const live = ProcessOwner.layer.pipe(Layer.provide(NodeServices.layer))
const owner = Effect.provide(
  Effect.map(Owner, (owner) => owner),
  live
)

/** The name that another process of ours would have. */
const nameOf = (own: string, pid: number, start: string): string => {
  const parts = own.split(" ")
  return [...parts.slice(0, -3), pid, start, "nonce"].join(" ")
}
const startOf = (pid: number): string => {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? ""
}

/** One letter: Z is a zombie. */
const stateOf = (pid: number): string => {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[0] ?? ""
}
const until = (holds: () => boolean) =>
  Effect.repeat(Effect.andThen(Effect.sleep(10), Effect.sync(holds)), { until: (held) => held })

describe.skipIf(!existsSync("/proc/self/ns/pid"))("an owner named after its process", () => {
  it.live("no two names are equal, and ourselves are alive", () =>
    Effect.gen(function* () {
      const { isDead, name } = yield* owner
      const [one, two] = [yield* name, yield* name]
      expect(one).not.toBe(two)
      expect(yield* isDead(one)).toBe(false)
    })
  )

  it.live("W1 a process is alive until it has ended, and one of a reused pid is dead", () =>
    Effect.gen(function* () {
      const { isDead, name } = yield* owner
      const child = spawn("sleep", ["60"])
      const pid = child.pid ?? 0
      const its = nameOf(yield* name, pid, startOf(pid))
      expect(yield* isDead(its)).toBe(false)
      expect(yield* isDead(nameOf(yield* name, pid, "1"))).toBe(true)
      child.kill("SIGKILL")
      yield* Effect.promise(() => once(child, "exit"))
      expect(yield* isDead(its)).toBe(true)
    })
  )

  it.live("W1 a zombie is dead: it has ended, and its parent has not asked for its exit code", () =>
    Effect.gen(function* () {
      const { isDead, name } = yield* owner
      // The shell becomes a program that never waits for the child that the shell began.
      const parent = yield* Effect.acquireRelease(
        Effect.sync(() =>
          spawn("sh", ["-c", "sleep 60 & echo $!; exec sleep 60"], { stdio: ["ignore", "pipe", "ignore"] })
        ),
        (parent) => Effect.sync(() => parent.kill("SIGKILL"))
      )
      const [line] = yield* Effect.promise(() => once(parent.stdout, "data"))
      const pid = Number(line)
      const its = nameOf(yield* name, pid, startOf(pid))
      yield* Effect.addFinalizer(() => Effect.sync(() => process.kill(pid, "SIGKILL")))
      yield* until(() => readFileSync(`/proc/${parent.pid}/comm`, "utf8").trim() === "sleep")
      expect(yield* isDead(its)).toBe(false)
      process.kill(pid, "SIGKILL")
      yield* until(() => stateOf(pid) === "Z")
      expect(yield* isDead(its)).toBe(true)
      expect(stateOf(pid)).toBe("Z")
    })
  )

  it.live("W1 of another boot, pid namespace or user, and of other names, nothing is known", () =>
    Effect.gen(function* () {
      const { isDead, name } = yield* owner
      const dead = nameOf(yield* name, 4_000_000, "1")
      expect(yield* isDead(dead)).toBe(true)
      const parts = dead.split(" ")
      for (const index of [0, 1, 2]) {
        expect(yield* isDead(parts.map((part, i) => (i === index ? `${part}x` : part)).join(" "))).toBe(false)
      }
      for (const other of ["anonymous 1", "", "4000000", `${dead.slice(0, dead.indexOf("4000000"))}../self 1 x`]) {
        expect(yield* isDead(other)).toBe(false)
      }
    })
  )

  it.live("without /proc an owner is a random name of which nothing is known", () =>
    Effect.gen(function* () {
      const { isDead, name } = yield* Effect.map(Owner, (owner) => owner)
      expect(yield* name).toMatch(/^anonymous /)
      expect(yield* isDead(yield* name)).toBe(false)
    }).pipe(Effect.provide(ProcessOwner.layer.pipe(Layer.provide(FileSystem.layerNoop({})))))
  )
})
