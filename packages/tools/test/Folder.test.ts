import { describe, expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { execFileSync } from "node:child_process"
import {
  appendFileSync,
  chmodSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import * as FileText from "../src/FileText.ts"
import * as Folder from "../src/Folder.ts"
import { around, confined, holds, put } from "./support/folders.ts"

const tag = <A, E extends { readonly _tag: string }>(effect: Effect.Effect<A, E>) =>
  Effect.map(Effect.result(effect), (result) => (result._tag === "Failure" ? result.failure._tag : "Success"))

const same = (text: string) => Effect.succeed(text)

describe("Folder", () => {
  it.live("a folder that is not there, or is a file, is a typed error that names it", () =>
    Effect.gen(function* () {
      const { root } = yield* around
      put(root, { file: "" })
      for (const path of [join(root, "none"), join(root, "file")]) {
        const error = yield* Effect.flip(Effect.provide(Folder.Folder, Folder.layer(path)))
        expect(error).toMatchObject({ _tag: "FolderUnavailable", path })
        expect(error.message).toContain(path)
      }
    })
  )

  it.live("the layer confines to the real path of a folder that is named by a link, and takes both names", () =>
    Effect.gen(function* () {
      const { base, root } = yield* around
      put(root, { a: "1" })
      symlinkSync(root, join(base, "link"))
      yield* Effect.gen(function* () {
        const folder = yield* Folder.Folder
        expect(folder.root).toBe(root)
        expect(yield* folder.read(join(root, "a"))).toBe("1")
        expect(yield* folder.read(join(base, "link", "a"))).toBe("1")
      }).pipe(Effect.provide(Folder.layer(join(base, "link"))))
    })
  )

  describe.each(holds)("with folders held by %s", (_, hold) => {
    it.live("RI-002 links, '..', prefixes and dangling links do not lead out; a normal file is allowed", () =>
      Effect.gen(function* () {
        const { base, folder, outside, root } = yield* confined({ "normal.txt": "normal", "a/b.txt": "b" }, hold)
        put(outside, { f: "marker", "deep/f": "marker" })
        put(base, { "root-evil/f": "marker" })
        symlinkSync(outside, join(root, "dir"))
        symlinkSync(join(outside, "f"), join(root, "file"))
        symlinkSync("../../outside", join(root, "a", "up"))
        symlinkSync(join(outside, "none"), join(root, "dangling"))
        symlinkSync("nowhere", join(root, "lost"))
        symlinkSync("loop", join(root, "loop"))
        const linked = [
          "dir/f",
          "dir",
          "dir/none",
          "dir/none/f",
          "dir/deep/f",
          "file",
          "file/f",
          "a/up/f",
          "a/../dir/f"
        ]
        const lost = ["dangling", "dangling/f", "lost", "loop", "loop/f"]
        const up = ["../outside/f", "a/../../outside/f", "..", "a/../..", "..\\outside\\f", "a\\..\\..\\outside\\f"]
        const absolute = [
          join(outside, "f"),
          join(base, "root-evil", "f"),
          `${root}/../outside/f`,
          "/etc/passwd",
          "/",
          "\\"
        ]
        const odd = [
          "",
          "  ",
          "a\0b",
          "normal.txt\0",
          "C:\\Windows\\win.ini",
          "C:/f",
          "\\\\server\\share\\f",
          "//server/share/f"
        ]
        const refused = [linked, lost, up, absolute, odd].flat()
        // R1: no answer tells whether something lies where a link leads.
        symlinkSync("/root/no-such-file", join(root, "far"))
        symlinkSync("/etc/passwd", join(root, "near"))
        const messages = new Set<string>()
        for (const path of [...linked, ...lost, "far", "near", "far/x", "near/x"]) {
          for (const asked of [
            folder.read(path),
            folder.create(path, "evil"),
            folder.update(path, () => same("evil"))
          ]) {
            messages.add((yield* Effect.flip<unknown, { readonly message: string }, never>(asked)).message)
          }
        }
        expect([...messages]).toHaveLength(1)
        for (const path of refused) {
          expect([path, yield* tag(folder.read(path))]).toEqual([path, "OutsideFolder"])
          expect([path, yield* tag(folder.create(path, "evil"))]).toEqual([path, "OutsideFolder"])
          expect([path, yield* tag(folder.update(path, () => same("evil")))]).toEqual([path, "OutsideFolder"])
        }
        expect(yield* tag(folder.create("dir/new", "evil"))).toBe("OutsideFolder")
        expect(yield* tag(folder.create("dir/new/deep", "evil"))).toBe("OutsideFolder")
        expect(yield* folder.read("normal.txt")).toBe("normal")
        expect((yield* folder.list()).files).toEqual(["a/b.txt", "normal.txt"])
        expect(readFileSync(join(outside, "f"), "utf8")).toBe("marker")
        expect(readdirSync(outside).toSorted()).toEqual(["deep", "f"])
        expect(readFileSync(join(base, "root-evil/f"), "utf8")).toBe("marker")
        expect(readdirSync(base).toSorted()).toEqual(["outside", "root", "root-evil"])
      })
    )

    it.live("links that stay inside, both separators and absolute paths inside are fine", () =>
      Effect.gen(function* () {
        const { folder, root } = yield* confined({ "a/b.txt": "b" }, hold)
        symlinkSync("a", join(root, "in"))
        symlinkSync("a/b.txt", join(root, "b"))
        for (const path of [
          "a/b.txt",
          "./a//b.txt",
          "a\\b.txt",
          "in/b.txt",
          "b",
          "a/../a/b.txt",
          join(root, "a/b.txt")
        ]) {
          expect(yield* folder.read(path)).toBe("b")
        }
        expect(yield* folder.locate(`${root}/in\\x/../b.txt`)).toBe("in/b.txt")
        yield* folder.create("in/new/c.txt", "c")
        yield* folder.update("b", () => same("B"))
        expect(readFileSync(join(root, "a/new/c.txt"), "utf8")).toBe("c")
        expect(readFileSync(join(root, "a/b.txt"), "utf8")).toBe("B")
        expect(lstatSync(join(root, "b")).isSymbolicLink()).toBe(true)
      })
    )

    it.live("S1 a FIFO, a socket, a device and a folder are refused, and nothing hangs", () =>
      Effect.gen(function* () {
        const { folder, root } = yield* confined({ "dir/f": "" }, hold)
        execFileSync("mkfifo", [join(root, "fifo")])
        symlinkSync("/dev/zero", join(root, "zero"))
        const server = createServer().listen(join(root, "socket"))
        yield* Effect.promise(() => new Promise((resolve) => server.once("listening", resolve)))
        yield* Effect.addFinalizer(() => Effect.sync(() => server.close()))
        for (const [path, expected] of [
          ["fifo", "FileUnavailable"],
          ["socket", "FileUnavailable"],
          ["dir", "FileUnavailable"],
          [".", "FileUnavailable"],
          ["dir/f/g", "FileUnavailable"],
          ["zero", "OutsideFolder"],
          ["/dev/zero", "OutsideFolder"],
          ["none", "FileNotFound"]
        ] as const) {
          expect([path, yield* tag(folder.read(path))]).toEqual([path, expected])
          expect([path, yield* tag(folder.update(path, same))]).toEqual([path, expected])
        }
        expect(yield* tag(folder.create("fifo", ""))).toBe("AlreadyExists")
        expect(yield* tag(folder.create("dir", ""))).toBe("AlreadyExists")
        expect(yield* tag(folder.create("dir/f/g", ""))).toBe("FileUnavailable")
        expect((yield* folder.list()).files).toEqual(["dir/f"])
      })
    )

    it.live("S1 a FIFO that takes a file's place after it was looked at is refused without waiting for a writer", () =>
      Effect.gen(function* () {
        const { root } = yield* around
        put(root, { f: "" })
        const held = yield* hold(root)
        execFileSync("mkfifo", [join(root, "fifo")])
        // The look goes to the file, the open to the FIFO.
        const paths = [join(root, "f"), join(root, "fifo")]
        const swapped = { ...held, at: () => paths.shift() ?? "", confirm: () => Effect.void }
        const Snapshot = yield* Effect.promise(() => import("../src/Snapshot.ts"))
        const error = yield* Effect.flip(Snapshot.take(swapped, "f", "read"))
        expect(error).toMatchObject({ kind: "unavailable", message: "it is no regular file" })
      })
    )

    it.live("S2 a link that takes a file's or a folder's place after the check is refused at the open", () =>
      Effect.gen(function* () {
        const { base, outside, root } = yield* around
        put(root, { f: "in", "dir/f": "in" })
        put(outside, { f: "marker", "dir/f": "marker" })
        const held = yield* hold(root)
        const dir = yield* held.child("dir")
        const Snapshot = yield* Effect.promise(() => import("../src/Snapshot.ts"))
        const AtomicWrite = yield* Effect.promise(() => import("../src/AtomicWrite.ts"))
        const paths = [join(root, "f"), join(outside, "f")]
        expect(
          (yield* Effect.flip(Snapshot.take({ ...held, at: () => paths.shift() ?? join(root, "f") }, "f", "read"))).kind
        ).toBe("outside")
        rmSync(join(root, "f"))
        symlinkSync(join(outside, "f"), join(root, "f"))
        expect((yield* Effect.flip(Snapshot.take(held, "f", "read"))).kind).toBe("outside")
        // What is held stays what it was, or is refused; it is never what a link now leads to.
        renameSync(join(root, "dir"), join(root, "aside"))
        symlinkSync(join(outside, "dir"), join(root, "dir"))
        const read = yield* Effect.result(Snapshot.take(dir, "f", "read"))
        expect(read._tag === "Success" ? String(read.success.bytes) : read.failure.kind).toMatch(/^(in|outside)$/)
        yield* Effect.result(AtomicWrite.create(dir, "new", new Uint8Array(3)))
        expect(yield* tag(Effect.scoped(held.child("dir")))).toBe("Fault")
        // Even a folder that is moved out while it is held is not used any more.
        renameSync(join(root, "aside"), join(base, "aside"))
        expect((yield* Effect.flip(Snapshot.take(dir, "f", "read"))).kind).toBe("outside")
        expect((yield* Effect.flip(AtomicWrite.create(dir, "more", new Uint8Array(3)))).kind).toBe("outside")
        expect(readdirSync(join(base, "aside")).filter((name) => name === "more" || name.endsWith(".tmp"))).toEqual([])
        expect(readdirSync(join(outside, "dir"))).toEqual(["f"])
        expect(readFileSync(join(outside, "dir/f"), "utf8")).toBe("marker")
      })
    )

    it.live("H1 a link is not held as a folder, also one that stays inside", () =>
      Effect.gen(function* () {
        const { root } = yield* around
        put(root, { "a/f": "" })
        symlinkSync("a", join(root, "in"))
        const held = yield* hold(root)
        expect(yield* tag(Effect.scoped(held.child("a")))).toBe("Success")
        expect(yield* tag(Effect.scoped(held.child("in")))).toBe("Fault")
      })
    )

    it.live("H1 below a held folder that was swapped for a link lies what was there, or nothing", () =>
      Effect.gen(function* () {
        const { outside, root } = yield* around
        put(root, { "dir/deep/f": "in" })
        put(outside, { "deep/f": "MARKER" })
        const dir = yield* Effect.flatMap(hold(root), (held) => held.child("dir"))
        renameSync(join(root, "dir"), join(root, "aside"))
        symlinkSync(outside, join(root, "dir"))
        const Snapshot = yield* Effect.promise(() => import("../src/Snapshot.ts"))
        const read = yield* Effect.result(Effect.flatMap(dir.child("deep"), (deep) => Snapshot.take(deep, "f", "read")))
        expect(read._tag === "Success" ? String(read.success.bytes) : read.failure.kind).toMatch(/^(in|outside)$/)
      })
    )

    it.live("H1 a held folder that was swapped for a link lists what was there, or nothing", () =>
      Effect.gen(function* () {
        const { outside, root } = yield* around
        put(root, { "dir/inside": "" })
        put(outside, { "only-outside": "" })
        const dir = yield* Effect.flatMap(hold(root), (held) => held.child("dir"))
        expect(yield* dir.names(10)).toEqual(["inside"])
        renameSync(join(root, "dir"), join(root, "aside"))
        symlinkSync(outside, join(root, "dir"))
        const names = yield* Effect.result(dir.names(10))
        expect(names._tag === "Success" ? names.success.join() : names.failure.kind).toMatch(/^(inside|outside)$/)
      })
    )

    it.live("H1 a new file that came to lie outside gets no text, and goes away", () =>
      Effect.gen(function* () {
        const { outside, root } = yield* around
        const AtomicWrite = yield* Effect.promise(() => import("../src/AtomicWrite.ts"))
        const held = yield* hold(root)
        // The folder leads outside in the moment of the open, and is itself again when it is looked at.
        const swapped = { ...held, at: (name: string) => join(outside, name) }
        expect(yield* tag(AtomicWrite.create(swapped, "f", Buffer.from("ours")))).toBe("Fault")
        expect(readdirSync(outside)).toEqual([])
      })
    )

    it.live("F2 a file that is hard-linked outside is never written through", () =>
      Effect.gen(function* () {
        const { folder, outside, root } = yield* confined({}, hold)
        put(outside, { f: "marker" })
        linkSync(join(outside, "f"), join(root, "f"))
        expect(yield* folder.update("f", () => same("changed"))).toEqual({ before: "marker", after: "changed" })
        expect(readFileSync(join(root, "f"), "utf8")).toBe("changed")
        expect(readFileSync(join(outside, "f"), "utf8")).toBe("marker")
      })
    )

    it.live("A3 create makes folders, never replaces a file, and leaves nothing beside it", () =>
      Effect.gen(function* () {
        const { folder, root } = yield* confined({}, hold)
        yield* folder.create("x/y/z.txt", "one")
        const error = yield* Effect.flip(folder.create("x/y/z.txt", "two"))
        expect(error).toMatchObject({ _tag: "AlreadyExists", path: "x/y/z.txt" })
        expect(readFileSync(join(root, "x/y/z.txt"), "utf8")).toBe("one")
        expect(readdirSync(join(root, "x/y"))).toEqual(["z.txt"])
        expect(statSync(join(root, "x/y/z.txt")).nlink).toBe(1)
        const AtomicWrite = yield* Effect.promise(() => import("../src/AtomicWrite.ts"))
        const late = yield* Effect.flip(AtomicWrite.create(yield* hold(root), "x", new Uint8Array()))
        expect(late.kind).toBe("exists")
        expect(readdirSync(root)).toEqual(["x"])
      })
    )

    it.live("A2 a creation that fails leaves none of the folders that it made, and all others", () =>
      Effect.gen(function* () {
        const { folder, root } = yield* confined({ "there/f": "" }, hold)
        mkdirSync(join(root, "empty"))
        for (const path of ["new/deep", "there/new", "empty", "empty/new"]) {
          expect(yield* tag(folder.create(`${path}/${"n".repeat(300)}`, "x"))).toBe("FileUnavailable")
          expect(yield* tag(folder.create(`${path}/${"n".repeat(300)}/f`, "x"))).toBe("FileUnavailable")
        }
        // One that somebody else made in the moment before stays too.
        const AtomicWrite = yield* Effect.promise(() => import("../src/AtomicWrite.ts"))
        const made = Effect.flatMap(hold(root), (held) => AtomicWrite.folder(held, "empty"))
        yield* made.pipe(Effect.andThen(Effect.fail("no")), Effect.scoped, Effect.flip)
        expect(readdirSync(root).toSorted()).toEqual(["empty", "there"])
        expect([readdirSync(join(root, "there")), readdirSync(join(root, "empty"))]).toEqual([["f"], []])
        yield* folder.create("new/deep/f", "x")
        expect(readFileSync(join(root, "new/deep/f"), "utf8")).toBe("x")
      })
    )

    it.live("names of unfinished writes cannot be written, and only they are not listed", () =>
      Effect.gen(function* () {
        const own = ".waystone-00000000-0000-4000-8000-000000000000.tmp"
        const { folder, root } = yield* confined({ [own]: "", ".waystone-mine.tmp": "", ".waystone-.tmp.ts": "" }, hold)
        expect((yield* folder.list()).files).toEqual([".waystone-.tmp.ts", ".waystone-mine.tmp"])
        for (const path of [".waystone-other.tmp", "d/.waystone-other.tmp", ".waystone-d.tmp/f"]) {
          expect([path, yield* tag(folder.create(path, "x"))]).toEqual([path, "FileUnavailable"])
        }
        symlinkSync(own, join(root, "link"))
        for (const path of [own, ".waystone-mine.tmp", "link"]) {
          expect([path, yield* tag(folder.update(path, () => same("x")))]).toEqual([path, "FileUnavailable"])
        }
        expect(readdirSync(root)).toHaveLength(4)
      })
    )

    it.live("setuid, setgid and sticky bits are not given to a new content", () =>
      Effect.gen(function* () {
        const { folder, root } = yield* confined({ run: "#!/bin/sh\n" }, hold)
        chmodSync(join(root, "run"), 0o7755)
        yield* folder.update("run", (text) => same(`${text}exit\n`))
        expect(statSync(join(root, "run")).mode & 0o7777).toBe(0o755)
      })
    )

    it.live("update keeps the permission bits, and does not write an equal text", () =>
      Effect.gen(function* () {
        const { folder, root } = yield* confined({ run: "#!/bin/sh\n" }, hold)
        chmodSync(join(root, "run"), 0o751)
        const { ino } = statSync(join(root, "run"))
        yield* folder.update("run", same)
        expect(statSync(join(root, "run")).ino).toBe(ino)
        yield* folder.update("run", (text) => same(`${text}exit\n`))
        expect(statSync(join(root, "run")).ino).not.toBe(ino)
        expect(statSync(join(root, "run")).mode & 0o777).toBe(0o751)
        expect(readdirSync(root)).toEqual(["run"])
      })
    )

    it.live.each([
      ["written to", (path: string) => writeFileSync(path, "two")],
      ["appended to", (path: string) => appendFileSync(path, "!")],
      ["replaced by an equal one", (path: string) => (renameSync(path, `${path}.old`), writeFileSync(path, "one"))],
      ["removed", (path: string) => rmSync(path)],
      ["replaced by a folder", (path: string) => (rmSync(path), mkdirSync(path))]
    ] as const)("F2 a file that is %s while its change is made is ChangedMeanwhile", ([, change]) =>
      Effect.gen(function* () {
        const { folder, root } = yield* confined({ f: "one" }, hold)
        const error = yield* Effect.flip(folder.update("f", () => Effect.sync(() => (change(join(root, "f")), "ours"))))
        expect(error).toMatchObject({ _tag: "ChangedMeanwhile", path: "f" })
        expect(readdirSync(root).filter((name) => name.endsWith(".tmp"))).toEqual([])
        const left = statSync(join(root, "f"), { throwIfNoEntry: false })
        if (left?.isFile()) expect(readFileSync(join(root, "f"), "utf8")).not.toBe("ours")
      })
    )
  })

  it.live("F3 changes wait for each other, so none is lost", () =>
    Effect.gen(function* () {
      const { folder, root } = yield* confined({ n: "0" })
      const add = (text: string) => Effect.as(Effect.sleep("1 millis"), String(Number(text) + 1))
      yield* Effect.all(
        Array.from({ length: 20 }, () => folder.update("n", add)),
        { concurrency: "unbounded" }
      )
      expect(readFileSync(join(root, "n"), "utf8")).toBe("20")
    })
  )

  it.live("a failure of the change is the failure of update, and changes nothing", () =>
    Effect.gen(function* () {
      const { folder, root } = yield* confined({ f: "one" })
      expect(yield* Effect.flip(folder.update("f", () => Effect.fail("no" as const)))).toBe("no")
      expect(readFileSync(join(root, "f"), "utf8")).toBe("one")
      expect(yield* tag(folder.update("f", () => same("ok")))).toBe("Success")
    })
  )

  it.live("A2 an interruption at any moment leaves one whole version and nothing beside it", () =>
    Effect.gen(function* () {
      const { folder, root } = yield* confined({ f: "a".repeat(100_000) })
      let replaced = 0
      // Where the disk is slow it is let go on for longer and longer, until it is seen to be replaced.
      for (let round = 0; round < 60 || replaced === 0; round++) {
        const before = readFileSync(join(root, "f"), "utf8")
        const after = String(round % 10).repeat(100_000)
        const asked = yield* Deferred.make<void>()
        const fiber = yield* Effect.forkChild(
          folder.update("f", () => Effect.as(Deferred.succeed(asked, undefined), after))
        )
        yield* Deferred.await(asked)
        yield* Effect.sleep((round % 6) * (1 + Math.floor(round / 60)))
        yield* Fiber.interrupt(fiber)
        const now = readFileSync(join(root, "f"), "utf8")
        expect(now === before || now === after).toBe(true)
        if (now === after) replaced++
        expect(readdirSync(root)).toEqual(["f"])
      }
    })
  )

  it.live("A2 a write that fails leaves nothing beside the file", () =>
    Effect.gen(function* () {
      const { root } = yield* confined({ "taken/f": "" })
      const AtomicWrite = yield* Effect.promise(() => import("../src/AtomicWrite.ts"))
      const held = yield* Effect.orDie((holds[0]?.[1] ?? (() => Effect.die("no hold")))(root))
      // A file cannot take a folder's place.
      expect(yield* tag(AtomicWrite.replace(held, "taken", { bytes: new Uint8Array(9), mode: 0o644 }))).toBe("Fault")
      expect(readdirSync(root)).toEqual(["taken"])
    })
  )

  it.live("T3 1 MB is read and written, one byte more is refused", () =>
    Effect.gen(function* () {
      const most = "x".repeat(FileText.maxBytes)
      const { folder } = yield* confined({ most, more: `${most}x` })
      expect(yield* folder.read("most")).toBe(most)
      const error = yield* Effect.flip(folder.read("more"))
      expect(error).toMatchObject({ _tag: "NotText", message: "larger than 1000000 bytes" })
      yield* folder.create("new", most)
      expect(yield* tag(folder.create("newer", `${most}x`))).toBe("NotText")
      expect(yield* tag(folder.create("umlauts", "ü".repeat(FileText.maxBytes / 2 + 1)))).toBe("NotText")
      expect(yield* tag(folder.update("new", (text) => same(`${text}x`)))).toBe("NotText")
      expect(yield* folder.read("new")).toBe(most)
      expect((yield* folder.list()).files).toEqual(["more", "most", "new"])
    })
  )

  it.live("T1 what is not UTF-8 text is refused, and stays as it is", () =>
    Effect.gen(function* () {
      const latin = Uint8Array.from(Buffer.from("größer", "latin1"))
      const files = { latin, nul: "a\0b", utf16: Uint8Array.from(Buffer.from("\uFEFFab", "utf16le")) }
      const { folder, root } = yield* confined(files)
      for (const [name, content] of Object.entries(files)) {
        expect(yield* tag(folder.read(name))).toBe("NotText")
        expect(yield* tag(folder.update(name, () => same("text")))).toBe("NotText")
        expect(Uint8Array.from(readFileSync(join(root, name)))).toEqual(Uint8Array.from(Buffer.from(content)))
      }
      expect(yield* tag(folder.create("half", "a\uD83D"))).toBe("NotText")
      expect(yield* tag(folder.create("zero", "a\0"))).toBe("NotText")
      yield* folder.create("whole", "a😀\uFFFD")
      expect(yield* folder.read("whole")).toBe("a😀\uFFFD")
    })
  )

  it.live("T2 a byte order mark is kept and is no part of the text; CRLF is kept", () =>
    Effect.gen(function* () {
      const { folder, root } = yield* confined({ f: "\uFEFFa\r\nb\r\n" })
      expect(yield* folder.read("f")).toBe("a\r\nb\r\n")
      yield* folder.update("f", (text) => same(text.replace("a", "A")))
      expect(readFileSync(join(root, "f"), "utf8")).toBe("\uFEFFA\r\nb\r\n")
      yield* folder.update("f", () => same("\uFEFFnew"))
      expect(readFileSync(join(root, "f"), "utf8")).toBe("\uFEFFnew")
    })
  )

  it.live("errors speak of the path that was asked for, never of the real one", () =>
    Effect.gen(function* () {
      const { base, folder, outside, root } = yield* confined({ "dir/f": "", bin: "\0" })
      symlinkSync(outside, join(root, "out"))
      for (const path of ["none", "dir", "bin", "out/f", "dir/f/g", "n".repeat(300), "../x", "d/".repeat(100)]) {
        const error = yield* Effect.flip(folder.read(path))
        expect(error.path).toBe(path)
        expect(error.message).not.toBe("")
        expect(JSON.stringify(error)).not.toContain(base)
      }
    })
  )

  it.live.skipIf(process.getuid?.() === 0)("a file that may not be written is not replaced", () =>
    Effect.gen(function* () {
      const { folder, root } = yield* confined({ f: "one" })
      chmodSync(join(root, "f"), 0o444)
      expect(yield* tag(folder.update("f", () => same("two")))).toBe("FileUnavailable")
      expect(yield* folder.read("f")).toBe("one")
    })
  )

  it.live("the layer lets go of its handle", () =>
    Effect.gen(function* () {
      const { root } = yield* around
      const holders = () =>
        process.platform === "linux"
          ? readdirSync("/proc/self/fd").filter((fd) => {
              try {
                return execFileSync("readlink", [`/proc/${process.pid}/fd/${fd}`], { encoding: "utf8" }).trim() === root
              } catch {
                return false
              }
            }).length
          : 0
      const during = yield* Effect.provide(
        Effect.flatMap(Folder.Folder, (folder) => Effect.andThen(folder.list(), Effect.sync(holders))),
        Layer.fresh(Folder.layer(root))
      )
      expect(during).toBe(process.platform === "linux" ? 1 : 0)
      expect(holders()).toBe(0)
    })
  )
})
