import { describe, expect, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { lstatSync, readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import * as AtomicWrite from "../src/AtomicWrite.ts"
import * as Confined from "../src/Confined.ts"
import * as Search from "../src/Search.ts"
import { around, holds, put } from "./support/folders.ts"
import { kill, started } from "./support/processes.ts"

/** What is enough to call it a race: each side won often. On a busy machine that can take longer than asked for. */
const isEnough = ({ read, refused, written }: { read: number; refused: number; written: number }) =>
  read > 20 && written > 5 && refused > 20

/** What was read, listed, written and refused while another process swapped folders for links. */
const attacked = Effect.fnUntraced(function* (folder: Confined.Confined, millis: number) {
  const until = (yield* Clock.currentTimeMillis) + millis
  const seen: Array<string> = []
  const counts = { read: 0, written: 0, refused: 0 }
  const counted = <A>(effect: Effect.Effect<A, unknown>, kind: "read" | "written", text: (value: A) => string) =>
    Effect.map(Effect.result(effect), (result) => {
      if (result._tag === "Failure") counts.refused++
      else {
        counts[kind]++
        seen.push(text(result.success))
      }
    })
  for (let round = 0; (yield* Clock.currentTimeMillis) < (isEnough(counts) ? until : until + 10_000); round++) {
    yield* Effect.all(
      [
        counted(folder.read("dir/f"), "read", String),
        counted(folder.read("g"), "read", String),
        counted(folder.read("dir/deep/f"), "read", String),
        counted(folder.create(`dir/new-${round}`, "ours"), "written", () => ""),
        counted(folder.create(`dir/made-${round}/deep`, "ours"), "written", () => ""),
        counted(
          folder.update("dir/f", (text) => Effect.succeed(`${text.slice(0, 6)} ${round}`)),
          "written",
          JSON.stringify
        ),
        counted(
          folder.update("g", (text) => Effect.succeed(`${text.slice(0, 6)} ${round}`)),
          "written",
          JSON.stringify
        ),
        ...(round % 8 === 0
          ? [
              counted(folder.list(), "read", ({ files }) => files.join("\n")),
              counted(Search.search(folder, { pattern: "OUTSIDE|inside" }), "read", JSON.stringify)
            ]
          : [])
      ],
      { concurrency: 4 }
    )
  }
  return { seen, counts }
})

describe("Folder beside others", () => {
  it.live.each(holds)(
    "F1 nothing outside is read, written or listed while another process swaps folders for links, held by %s",
    ([name, hold]) =>
      Effect.gen(function* () {
        const { base, outside, root } = yield* around
        put(root, { "dir/f": "inside", "dir/deep/f": "inside", g: "inside" })
        put(outside, { f: "OUTSIDE", "deep/f": "OUTSIDE", "only-outside": "OUTSIDE" })
        put(base, { "spare/.keep": "" })
        const folder = yield* Confined.make(root, hold)
        yield* started("swap", root, outside, join(base, "spare"))
        const { counts, seen } = yield* attacked(folder, 2000)
        expect([counts, isEnough(counts)]).toEqual([counts, true])
        expect(seen.filter((text) => /OUTSIDE|only-outside/.test(text.replace('pattern":"OUTSIDE', "")))).toEqual([])
        const left = readdirSync(outside).toSorted()
        const known = ["deep", "f", "only-outside"]
        // Held by paths, an empty file or folder can appear (README); by descriptors nothing can.
        const allowed = name === "paths" ? (entry: string) => isEmpty(join(outside, entry)) : () => false
        expect(left.filter((entry) => !known.includes(entry) && !allowed(entry))).toEqual([])
        expect(known.every((entry) => left.includes(entry))).toBe(true)
        for (const path of ["f", "deep/f", "only-outside"]) {
          expect(readFileSync(join(outside, path), "utf8")).toBe("OUTSIDE")
        }
        expect(readdirSync(join(outside, "deep"))).toEqual(["f"])
      })
  )

  it.live("F2 a process that is killed while it writes leaves one whole version", () =>
    Effect.gen(function* () {
      const { root } = yield* around
      const whole = (text: string) => text.length === 200_000 && text === (text[0] ?? "").repeat(200_000)
      put(root, { f: "z".repeat(200_000) })
      const inode = () => statSync(join(root, "f")).ino
      for (let round = 0; round < 6; round++) {
        const before = inode()
        const child = yield* started("write", root)
        // It is killed at work, not before.
        yield* Effect.repeat(Effect.sleep("1 millis"), { until: () => inode() !== before })
        yield* Effect.sleep(13 * round)
        yield* kill(child)
        const text = readFileSync(join(root, "f"), "utf8")
        expect(whole(text)).toBe(true)
        for (const name of readdirSync(root)) {
          if (name.startsWith("new-")) expect(statSync(join(root, name)).size).toBe(100_000)
          else expect(name === "f" || AtomicWrite.isTemporary(name)).toBe(true)
        }
      }
      // What a kill may leave is not shown.
      const folder = yield* Confined.make(root)
      expect((yield* folder.list()).files.every((name) => name === "f" || name.startsWith("new-"))).toBe(true)
    })
  )
})

const isEmpty = (path: string): boolean => {
  const info = lstatSync(path)
  return info.isDirectory() ? readdirSync(path).length === 0 : info.size === 0
}
