import * as NodeServices from "@effect/platform-node/NodeServices"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { vi } from "vitest"
import { isInside, mark } from "../src/approval/Inside.ts"

/** The owner that a process of this machine is, as ProcessOwner names it; a start time is a number. */
const ownerOf = (pid: number, later = 0) => {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
  const since = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19])
  return `boot space user ${pid} ${since + later} nonce`
}

const inside = (owner?: string) => Effect.provide(isInside(owner), NodeServices.layer)

/** What a process says that has not got the mark itself, below a shell whose environment is this. */
const saidBelow = (environment: Readonly<Record<string, string>>) => {
  const code = `
    import * as NodeServices from "@effect/platform-node/NodeServices"
    import * as Effect from "effect/Effect"
    import { isInside } from ${JSON.stringify(join(import.meta.dirname, "../src/approval/Inside.ts"))}
    console.log(await Effect.runPromise(Effect.provide(isInside(undefined), NodeServices.layer)))`
  // A shell that has something left to do does not become the last program.
  const shell = `env -u ${mark} "$0" --input-type=module -e "$1"; true`
  return execFileSync("sh", ["-c", shell, process.execPath, code], {
    cwd: join(import.meta.dirname, ".."),
    encoding: "utf8",
    env: { PATH: process.env["PATH"], ...environment }
  }).trim()
}

describe.skipIf(process.platform !== "linux")("RI-022 Inside", () => {
  it.live("the process that drives the Run is above this one: it is the agent that speaks", () =>
    Effect.gen(function* () {
      expect(yield* inside(ownerOf(process.ppid))).toBe(true)
    })
  )

  it.live("another process that has got the number of the driver since then is not taken for it", () =>
    Effect.gen(function* () {
      expect(yield* inside(ownerOf(process.ppid, 1))).toBe(false)
      expect(yield* inside()).toBe(false)
    })
  )

  it.live("the mark in its own environment is enough, whatever its value", () =>
    Effect.gen(function* () {
      vi.stubEnv(mark, "")
      expect(
        yield* Effect.ensuring(
          inside(),
          Effect.sync(() => vi.unstubAllEnvs())
        )
      ).toBe(true)
    })
  )

  it("the mark in the environment of a process above is enough, though the process itself has taken it away", () => {
    expect(saidBelow({ [mark]: "1" })).toBe("true")
    expect(saidBelow({ [`NOT_${mark}`]: "1" })).toBe("false")
  })
})
