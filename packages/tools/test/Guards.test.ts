/** Guards that no other test would miss: each test here fails when one line is taken out. */
import { describe, expect, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import { TestClock } from "effect/testing"
import { mkdirSync, readdirSync, readFileSync, renameSync } from "node:fs"
import { join } from "node:path"
import * as AtomicWrite from "../src/AtomicWrite.ts"
import * as Confined from "../src/Confined.ts"
import { refused } from "../src/Fault.ts"
import type { Held, Hold } from "../src/Held.ts"
import * as HeldByDescriptor from "../src/HeldByDescriptor.ts"
import * as Listing from "../src/Listing.ts"
import { around, holds, put } from "./support/folders.ts"
import * as Turns from "./support/turns.ts"

describe("AtomicWrite", () => {
  it.live.each(holds)(
    "F1 a folder that is moved out while a text is written gets no file and keeps its old one, held by %s",
    ([, hold]) =>
      Effect.gen(function* () {
        const { base, root } = yield* around
        for (const [name, write] of [
          ["one", (held: Held) => AtomicWrite.create(held, "new", Buffer.from("ours"))],
          ["two", (held: Held) => AtomicWrite.replace(held, "f", { bytes: Buffer.from("ours"), mode: 0o644 })]
        ] as const) {
          put(root, { [`${name}/f`]: "old" })
          const held = yield* Effect.flatMap(hold(root), (top) => top.child(name))
          // The last look at the new file went well; then the folder goes, in front of the rename.
          const leaving: Held = {
            ...held,
            confirm: (file, temporary) =>
              Effect.tap(held.confirm(file, temporary), () =>
                Effect.sync(() => renameSync(join(root, name), join(base, name)))
              )
          }
          expect((yield* Effect.flip(write(leaving))).kind).toMatch(/^(outside|missing)$/)
          expect(readFileSync(join(base, name, "f"), "utf8")).toBe("old")
          expect(readdirSync(join(base, name)).filter((entry) => entry === "new")).toEqual([])
        }
      })
  )
})

describe("Listing", () => {
  it.live("L3 others run between two entries", () =>
    Effect.gen(function* () {
      const flat: Held = {
        names: () => Effect.succeed(Array.from({ length: 100 }, (_, n) => `f${n}`)),
        at: (name) => name,
        child: () => Effect.fail(refused("missing", "")),
        check: Effect.void,
        confirm: () => Effect.void,
        sync: Effect.void
      }
      const others = yield* Turns.watch
      // 5 ms of work for each, by a clock of the test's own: 25 ms after five of them.
      const clock = yield* Clock.Clock
      let now = 0
      const working: Clock.Clock = {
        ...clock,
        sleep: (duration) => clock.sleep(duration),
        currentTimeMillisUnsafe: () => now,
        currentTimeMillis: Effect.sync(() => now)
      }
      const before = others.taken()
      const matches = () => {
        now += 5
        return true
      }
      const listed = yield* Effect.provideService(Listing.list(flat, { limit: 100, matches }), Clock.Clock, working)
      expect(listed.files).toHaveLength(100)
      expect(others.taken() - before).toBeGreaterThan(5)
    }).pipe(Effect.scoped)
  )

  it.effect("L2 after 10 s it gives what it has found so far", () =>
    Effect.gen(function* () {
      const slow: Held = {
        names: () => Effect.as(Effect.sleep("4 seconds"), ["d/", "f"]),
        at: (name) => name,
        child: () => Effect.succeed(slow),
        check: Effect.void,
        confirm: () => Effect.void,
        sync: Effect.void
      }
      const fiber = yield* Effect.forkChild(Listing.list(slow, { limit: 100, matches: () => true }))
      yield* TestClock.adjust("1 hour")
      const { files, truncated } = yield* Fiber.join(fiber)
      expect(truncated).toBe(true)
      expect(files.length).toBeLessThan(4)
    })
  )
})

describe.skipIf(process.platform !== "linux")("Folder without /proc/self/fd", () => {
  const logged = Effect.fnUntraced(function* (hold: Hold) {
    const lines: Array<string> = []
    const logger = Logger.make(({ logLevel, message }) => lines.push(`${logLevel} ${String(message)}`))
    const { root } = yield* around
    put(root, { f: "text" })
    mkdirSync(join(root, "d"))
    const text = yield* Confined.make(root, Confined.best(hold)).pipe(
      Effect.flatMap((folder) => folder.read("f")),
      Effect.provide(Logger.layer([logger]))
    )
    return { text, lines }
  })

  it.live("is held by its path, and a warning says so once", () =>
    Effect.gen(function* () {
      const { lines, text } = yield* logged(() => Effect.fail(refused("missing", "no /proc")))
      expect(text).toBe("text")
      expect(lines).toHaveLength(1)
      expect(lines[0]).toMatch(/^Warn .*\/proc\/self\/fd cannot be used/)
      expect((yield* logged(HeldByDescriptor.hold)).lines).toEqual([])
    })
  )
})
