import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import * as Script from "./servers/Script.ts"
import { serve } from "./servers/serve.ts"
import { spoken } from "./Spoken.ts"

const reader = join(import.meta.dirname, "fixtures/slow-reader.ts")
const bytes = 100_000_000

it.live.each(spoken)(
  "100 MB of $protocol pass through 64 MB of heap, and a consumer that does not read holds the server up",
  ({ protocol }) =>
    Effect.gen(function* () {
      let made = 0
      // The larger the pieces, the sooner it is over; the bytes are the same.
      const fault = Script.slow({ bytes, piece: 20_000, onWrite: (total) => (made = total) })
      const server = yield* serve({ protocol, script: () => fault })
      // Of 150 MB that are allowed: so that whoever keeps the text once, a byte a character, does not get through.
      const args = ["--max-old-space-size=64", "--conditions=@waystone/source", reader, protocol, server.url]
      const child = yield* Effect.acquireRelease(
        Effect.sync(() => spawn(process.execPath, args, { stdio: ["pipe", "pipe", "pipe"] })),
        (child) => Effect.sync(() => child.kill("SIGKILL"))
      )
      let out = ""
      let err = ""
      child.stdout.on("data", (chunk) => (out += String(chunk)))
      child.stderr.on("data", (chunk) => (err += String(chunk)))
      const closed = once(child, "close")
      yield* Effect.promise(() => Promise.race([once(child.stdout, "data"), closed]))
      expect({ out, err }).toEqual({ out: "begun\n", err: "" })
      let before = -1
      while (before !== made) {
        before = made
        yield* Effect.promise(() => setTimeout(200))
      }
      expect(made).toBeLessThan(bytes / 4)
      child.stdin.write("go on\n")
      yield* Effect.promise(() => closed)
      expect({ code: child.exitCode, err }).toEqual({ code: 0, err: "" })
      expect(Number(out.split("\n")[1])).toBeGreaterThan(bytes * 0.9)
    })
)
