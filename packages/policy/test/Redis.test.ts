import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { execFile } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import * as TestServer from "../../checkpoint-redis/test/support/server.ts"
import { fetching, type Seen } from "./support/redisChild.ts"

const child = join(import.meta.dirname, "support", "redisChild.ts")
const run = promisify(execFile)
if (!TestServer.canStart) console.log(TestServer.skipped("the quota and the circuits on Redis"))

/** A process of its own. */
const apart = (url: string, runId: string, calls: number) =>
  Effect.promise(async (): Promise<Seen> => {
    const args = ["--conditions=@waystone/source", child, url, "t", runId, String(calls)]
    const { stdout } = await run(process.execPath, args)
    return JSON.parse(stdout)
  })

it("README shows code for Redis that compiles", () => {
  const code = readFileSync(join(import.meta.dirname, "fixtures", "readme-redis.ts"), "utf8")
  expect(readFileSync(join(import.meta.dirname, "..", "README.md"), "utf8")).toContain(
    `\`\`\`ts\n${code.trim()}\n\`\`\``
  )
})

describe.skipIf(!TestServer.canStart)("on a Redis that processes share", () => {
  it.live("a quota counts the model calls of two processes together", () =>
    Effect.gen(function* () {
      const { url } = yield* TestServer.scoped()
      // Each alone would be within its five model calls.
      const both = yield* Effect.all([apart(url, "a", 3), apart(url, "b", 3)], { concurrency: 2 })
      expect(both.map(({ turns }) => turns).reduce((sum, turns) => sum + turns)).toBe(5)
      expect(both.map(({ outcome }) => outcome)).toContain("Stopped")
    }).pipe(Effect.scoped)
  )

  it.live("a tool that one process found away is not called by another one", () =>
    Effect.gen(function* () {
      const { url } = yield* TestServer.scoped()
      expect(yield* apart(url, "a", 3)).toEqual({
        outcome: "Completed",
        turns: 4,
        called: 3,
        errors: ["Down", "Down", "Down"]
      })
      expect(yield* apart(url, "b", 3)).toMatchObject({ called: 0, errors: ["CircuitOpen"] })
    }).pipe(Effect.scoped)
  )

  it.live("QU1 where it is away, the quota refuses at once if the client queues nothing", () =>
    Effect.gen(function* () {
      const server = yield* TestServer.scoped()
      const options = { url: server.url, disableOfflineQueue: true }
      expect(yield* fetching(options, "t", { runId: "a", calls: 1 })).toMatchObject({ outcome: "Completed" })
      const killing = Effect.promise(() => server.kill())
      expect(yield* fetching(options, "t", { runId: "b", calls: 1, before: killing })).toMatchObject({
        outcome: "Stopped",
        turns: 0
      })
    }).pipe(Effect.scoped)
  )
})
