import { Agent, CheckpointStore, MemoryStore, Owner, Reconcile, Run, ToolOptions } from "@waystone/core"
import { DyingStore, Mortal, PairingChecker, ScriptedModel } from "@waystone/core/testing"
import { describe, expect, it } from "@effect/vitest"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as Tool from "effect/ai/Tool"
import { existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as FileTools from "../src/FileTools.ts"
import * as Folder from "../src/Folder.ts"
import { around, put } from "./support/folders.ts"

const { call, calls, text } = ScriptedModel

/** A folder with these files, its tools, and calls of them by hand. */
const tools = Effect.fnUntraced(function* (files: Readonly<Record<string, string>> = {}) {
  const places = yield* around
  put(places.root, files)
  const context = yield* Layer.build(Layer.provideMerge(FileTools.layer, Folder.layer(places.root)))
  const kit = yield* Effect.provideContext(FileTools.toolkit, context)
  /** The result, or the failure as the model would see its fields. */
  const use = (name: keyof typeof FileTools.toolkit.tools, parameters: object) =>
    kit.handle(name, parameters as never).pipe(
      Stream.unwrap,
      Stream.runLast,
      Effect.map((last) => (last._tag === "Some" ? last.value.encodedResult : undefined)),
      Effect.catch((error) => Effect.succeed<unknown>({ failed: error }))
    )
  const reconcile = (name: string, parameters: unknown) =>
    Reconcile.find(context as Context.Context<never>, name)?.({ key: "r/t1.0", arguments: parameters }) ??
    Effect.die(new Error("no reconciler"))
  const read = (path: string) => readFileSync(join(places.root, path), "utf8")
  return { ...places, use, reconcile, read, layer: Layer.provide(FileTools.layer, Folder.layer(places.root)) }
})

const numbered = (count: number) => Array.from({ length: count }, (_, n) => `line ${n + 1}\n`).join("")

describe("FileTools", () => {
  it("annotations say what the tools do, and explicitly", () => {
    const flags = Object.values(FileTools.toolkit.tools).map(({ annotations, name }) => {
      const explicit = (key: Context.Key<never, boolean>) => annotations.mapUnsafe.get(key.key)
      const of = [Tool.Readonly, Tool.Destructive, Tool.Idempotent, Tool.OpenWorld, ToolOptions.Sequential]
      return [name, ...of.map(explicit)]
    })
    expect(flags).toEqual([
      ["list_files", true, false, undefined, false, undefined],
      ["read_files", true, false, undefined, false, undefined],
      ["search_files", true, false, undefined, false, undefined],
      ["write_file", undefined, false, false, false, true],
      ["edit_file", undefined, false, false, false, true]
    ])
    expect(Object.keys(FileTools.readonly.tools)).toEqual(["list_files", "read_files", "search_files"])
  })

  it.live("list_files names files, all or those of a glob, as many as fit", () =>
    Effect.gen(function* () {
      const { root, use } = yield* tools({ "src/a.ts": "", "b.md": "" })
      expect(yield* use("list_files", {})).toEqual({ files: ["b.md", "src/a.ts"], truncated: false })
      expect(yield* use("list_files", { glob: "*.ts" })).toEqual({ files: ["src/a.ts"], truncated: false })
      expect(yield* use("list_files", { glob: "" })).toMatchObject({ failed: { _tag: "BadPattern" } })
      put(root, Object.fromEntries(Array.from({ length: 600 }, (_, n) => [`many/${"x".repeat(30)}${n}`, ""])))
      const many = yield* use("list_files", {})
      expect(many).toMatchObject({ truncated: true })
      expect(JSON.stringify(many).length).toBeLessThan(13_000)
      expect(JSON.stringify(many).length).toBeGreaterThan(11_000)
    })
  )

  it.live("write_file keeps the line ends of a file that has CRLF everywhere, unless the text has some", () =>
    Effect.gen(function* () {
      const { read, reconcile, use } = yield* tools({ crlf: "a\r\nb\r\n", mixed: "a\r\nb\n", lf: "a\n", one: "a" })
      for (const [path, text, expected] of [
        ["crlf", "x\ny\n", "x\r\ny\r\n"],
        ["crlf", "x\ny\r\n", "x\ny\r\n"],
        ["mixed", "x\ny\n", "x\ny\n"],
        ["lf", "x\ny\n", "x\ny\n"],
        ["one", "x\ny\n", "x\ny\n"]
      ] as const) {
        expect(yield* use("write_file", { path, text, overwrite: true })).toMatchObject({ created: false })
        expect([path, read(path)]).toEqual([path, expected])
      }
      yield* use("write_file", { path: "new", text: "x\r\ny\r\n" })
      // The same text again is no change, and after a crash it is done.
      const again = { path: "new", text: "x\ny\n" }
      expect(yield* use("write_file", again)).toEqual({ path: "new", created: false, diff: "" })
      expect(yield* reconcile("write_file", again)).toMatchObject({ _tag: "Done", result: { created: false } })
      expect(yield* reconcile("write_file", { ...again, overwrite: true })).toMatchObject({ _tag: "Done" })
      expect(yield* reconcile("write_file", { ...again, text: "z\n", overwrite: true })).toEqual({
        _tag: "NeverStarted"
      })
    })
  )

  it.live("read_files gives several files and ranges; one that cannot be read does not lose the others", () =>
    Effect.gen(function* () {
      const { use } = yield* tools({ a: "1\n2\n3\n", b: "x", bin: "\0" })
      const files = [
        { path: "a", from_line: 2, to_line: 3 },
        { path: "none" },
        { path: "b" },
        { path: "bin" },
        { path: "../c" }
      ]
      expect(yield* use("read_files", { files })).toEqual({
        files: [
          { path: "a", text: "2\n3\n", from_line: 2, to_line: 3, total_lines: 3 },
          { path: "none", error: "there is no such file" },
          { path: "b", text: "x", from_line: 1, to_line: 1, total_lines: 1 },
          { path: "bin", error: "a binary file (it contains NUL bytes), or not UTF-8" },
          { path: "../c", error: "the path leads out of the folder with '..'" }
        ]
      })
      expect(yield* use("read_files", { files: [{ path: "none" }, { path: "a", from_line: 9 }] })).toMatchObject({
        failed: {
          _tag: "NothingRead",
          message: "none: there is no such file\na: from_line 9 is after the end: the file has 3 lines"
        }
      })
    })
  )

  it.live("read_files gives at most what a model is shown, whatever is asked for", () =>
    Effect.gen(function* () {
      const { use } = yield* tools({ big: numbered(5000), quotes: '"'.repeat(50_000), small: "s\n" })
      const files = Array.from({ length: 20 }, (_, n) => ({ path: ["big", "quotes", "small"][n % 3] }))
      const result = yield* use("read_files", { files })
      expect(JSON.stringify(result).length).toBeLessThan(16_000)
      expect(JSON.stringify(result)).toContain("go on with from_line")
      expect(yield* use("read_files", { files: [...files, { path: "small" }] })).toHaveProperty("failed")
      expect(yield* use("read_files", { files: [] })).toHaveProperty("failed")
      expect(yield* use("read_files", { files: [{ path: "small", from_line: 0 }] })).toHaveProperty("failed")
    })
  )

  it.live("search_files finds lines; a bad pattern says where", () =>
    Effect.gen(function* () {
      const { use } = yield* tools({ "a.ts": "one\nTwo\n", "b.md": "two" })
      expect(yield* use("search_files", { pattern: "two", ignore_case: true, glob: "*.ts" })).toEqual({
        matches: [{ path: "a.ts", line: 2, text: "Two" }],
        truncated: false
      })
      expect(yield* use("search_files", { pattern: "a[z-b]" })).toMatchObject({ failed: { _tag: "BadPattern" } })
    })
  )

  it.live("write_file creates, and does not replace another text without overwrite", () =>
    Effect.gen(function* () {
      const { read, root, use } = yield* tools()
      const diff = "--- /dev/null\n+++ b/a/b.txt\n@@ -0,0 +1,1 @@\n+1\n"
      expect(yield* use("write_file", { path: "a/b.txt", text: "1\n" })).toEqual({
        path: "a/b.txt",
        created: true,
        diff
      })
      expect(yield* use("write_file", { path: join(root, "a/b.txt"), text: "1\n" })).toEqual({
        path: "a/b.txt",
        created: false,
        diff: ""
      })
      const failed = { _tag: "AlreadyExists", message: expect.stringContaining("edit_file") }
      expect(yield* use("write_file", { path: "a/b.txt", text: "2\n" })).toMatchObject({ failed })
      expect(read("a/b.txt")).toBe("1\n")
      expect(yield* use("write_file", { path: "a/b.txt", text: "2\n", overwrite: true })).toEqual({
        path: "a/b.txt",
        created: false,
        diff: "--- a/a/b.txt\n+++ b/a/b.txt\n@@ -1,1 +1,1 @@\n-1\n+2\n"
      })
      expect(read("a/b.txt")).toBe("2\n")
    })
  )

  it.live("edit_file replaces one occurrence; each refusal helps and changes nothing", () =>
    Effect.gen(function* () {
      const { read, use } = yield* tools({ f: "a\r\nb\r\nb\r\n" })
      const edit = (old_text: string, new_text: string, path = "f") => use("edit_file", { path, old_text, new_text })
      expect(yield* edit("a\nb", "$&\nB")).toEqual({
        path: "f",
        line: 1,
        diff: "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n-a\r\n+$&\r\n+B\r\n b\r\n-b\r\n"
      })
      expect(read("f")).toBe("$&\r\nB\r\nb\r\n")
      expect(yield* edit("none", "x")).toMatchObject({ failed: { _tag: "EditRefused", reason: "absent" } })
      expect(yield* edit("\n", "x")).toMatchObject({ failed: { reason: "several" } })
      expect(yield* edit("b", "b")).toMatchObject({ failed: { reason: "same" } })
      expect(yield* edit("b", "x", "none")).toMatchObject({ failed: { _tag: "FileNotFound" } })
      expect(yield* edit("b", "\0")).toMatchObject({ failed: { _tag: "NotText" } })
      expect(read("f")).toBe("$&\r\nB\r\nb\r\n")
    })
  )

  it.live("RI-002 no tool reads or writes through a link that leads out", () =>
    Effect.gen(function* () {
      const { outside, root, use } = yield* tools({ f: "" })
      put(outside, { f: "MARKER" })
      symlinkSync(outside, join(root, "dir"))
      const results = yield* Effect.all([
        use("read_files", { files: [{ path: "dir/f" }, { path: "f" }] }),
        use("search_files", { pattern: "MARK" }),
        use("list_files", {}),
        use("write_file", { path: "dir/new", text: "evil" }),
        use("write_file", { path: "dir/f", text: "evil", overwrite: true }),
        use("edit_file", { path: "dir/f", old_text: "MARKER", new_text: "evil" })
      ])
      expect(JSON.stringify(results)).not.toContain("MARKER")
      expect(results.slice(3)).toMatchObject(Array.from({ length: 3 }, () => ({ failed: { _tag: "OutsideFolder" } })))
      expect(readdirSync(outside)).toEqual(["f"])
      expect(readFileSync(join(outside, "f"), "utf8")).toBe("MARKER")
    })
  )

  describe("reconcile", () => {
    it.live("C1 the file says whether an edit happened, with the same result", () =>
      Effect.gen(function* () {
        const { reconcile, root, use } = yield* tools({ f: "1\nold\n" })
        const edit = { path: "f", old_text: "old", new_text: "new" }
        expect(yield* reconcile("edit_file", edit)).toEqual({ _tag: "NeverStarted" })
        const result = yield* use("edit_file", edit)
        expect(yield* reconcile("edit_file", edit)).toEqual({ _tag: "Done", result })
        writeFileSync(join(root, "f"), "new new")
        const nowhere = { path: "f", line: 0, diff: expect.stringContaining("does not say") }
        expect(yield* reconcile("edit_file", edit)).toEqual({ _tag: "Done", result: nowhere })
        for (const other of ["something else", "\0"]) {
          writeFileSync(join(root, "f"), other)
          expect(yield* reconcile("edit_file", edit)).toEqual({ _tag: "Unknown" })
        }
        expect(yield* reconcile("edit_file", { ...edit, path: "none" })).toEqual({ _tag: "Unknown" })
        expect(yield* reconcile("edit_file", { ...edit, path: "../f" })).toEqual({ _tag: "Unknown" })
        expect(yield* reconcile("edit_file", { path: "f" })).toEqual({ _tag: "Unknown" })
      })
    )

    it.live("C1 the file says whether a write happened, with the same result", () =>
      Effect.gen(function* () {
        const { reconcile, root, use } = yield* tools()
        const write = { path: "f", text: "\uFEFFtext\n" }
        const over = { ...write, overwrite: true }
        expect(yield* reconcile("write_file", write)).toEqual({ _tag: "NeverStarted" })
        const result = yield* use("write_file", write)
        expect(yield* reconcile("write_file", write)).toEqual({ _tag: "Done", result })
        const unseen = { path: "f", created: false, diff: expect.stringContaining("not known") }
        expect(yield* reconcile("write_file", over)).toEqual({ _tag: "Done", result: unseen })
        writeFileSync(join(root, "f"), "another\n")
        expect(yield* reconcile("write_file", write)).toEqual({ _tag: "Unknown" })
        expect(yield* reconcile("write_file", over)).toEqual({ _tag: "NeverStarted" })
        writeFileSync(join(root, "f"), "\0")
        expect(yield* reconcile("write_file", over)).toEqual({ _tag: "Unknown" })
        expect(yield* reconcile("write_file", {})).toEqual({ _tag: "Unknown" })
      })
    )
  })

  describe("in a Run", () => {
    const agent = Agent.make("coder", { instructions: "Work in the folder.", tools: [FileTools.toolkit] })
    const edit = { path: "a.txt", old_text: "old", new_text: "new" }

    it.live("each tool is used", () =>
      Effect.gen(function* () {
        const { layer, read } = yield* tools({ "a.txt": "1\nold\n" })
        const model = yield* ScriptedModel.make([
          calls([call("list_files", {}), call("search_files", { pattern: "ol." })]),
          call("read_files", { files: [{ path: "a.txt" }] }),
          calls([call("edit_file", edit), call("write_file", { path: "b/c.txt", text: "c" })]),
          text("done")
        ])
        yield* Effect.gen(function* () {
          expect(yield* Run.start(agent, { runId: "r", task: "go" })).toMatchObject({
            _tag: "Completed",
            output: "done"
          })
          expect(yield* PairingChecker.ofRun("r")).toEqual([])
        }).pipe(Effect.provide([model.layer, layer, MemoryStore.layer]))
        const requests = yield* model.requests
        expect(requests.flatMap(({ results }) => results.map((result) => result.result))).toMatchObject([
          { files: ["a.txt"], truncated: false },
          { matches: [{ path: "a.txt", line: 2, text: "old" }], truncated: false },
          { files: [{ path: "a.txt", text: "1\nold\n" }] },
          { path: "a.txt", line: 2 },
          { path: "b/c.txt", created: true }
        ])
        expect([read("a.txt"), read("b/c.txt")]).toEqual(["1\nnew\n", "c"])
        yield* model.assertConsumed
      })
    )

    it.live("overwriting waits for a person, and happens when they agree", () =>
      Effect.gen(function* () {
        const { layer, read } = yield* tools({ "a.txt": "old" })
        const model = yield* ScriptedModel.make([
          call("write_file", { path: "a.txt", text: "new", overwrite: true }),
          text("done")
        ])
        yield* Effect.gen(function* () {
          const asked = yield* Run.start(agent, { runId: "r", task: "go" })
          expect(asked).toMatchObject({ _tag: "Suspended", waiting: [{ id: "t1.0", kind: "approval" }] })
          expect(read("a.txt")).toBe("old")
          const digest = (yield* Run.get("r")).waiting[0]?.digest ?? ""
          yield* Run.answer(agent, { runId: "r", callId: "t1.0", answer: { _tag: "Approve", digest }, by: "ann" })
          expect(yield* Run.resume(agent, { runId: "r" })).toMatchObject({ _tag: "Completed" })
          expect(read("a.txt")).toBe("new")
        }).pipe(Effect.provide([model.layer, layer, MemoryStore.layer]))
      })
    )

    const ended = (events: ReadonlyArray<{ readonly _tag: string; readonly ending?: string }>) =>
      events.flatMap((event) => (event._tag === "ToolCallCompleted" ? [event.ending] : []))

    it.live.each([
      ["after the edit, before its record: it is not made again", "ToolCallCompleted", "die-before", "reconciled"],
      ["after the start, before the edit: it is made", "ToolCallStarted", "die-after", "executed"]
    ] as const)("a process dies in edit_file %s", ([, event, fate, ending]) =>
      Effect.gen(function* () {
        const { layer, read } = yield* tools({ "a.txt": "1\nold\n" })
        const model = yield* ScriptedModel.make([call("edit_file", edit), text("done")])
        const store = yield* MemoryStore.make
        const process = <A, E>(
          name: string,
          run: Effect.Effect<A, E, Agent.Services<typeof agent>>,
          decide?: DyingStore.Decide
        ) =>
          Effect.gen(function* () {
            const self = yield* Mortal.make
            const owner = { name: Effect.succeed(name), isDead: (other: string) => Effect.succeed(other !== name) }
            const fiber = yield* Effect.forkDetach(
              Effect.provide(run, [
                Layer.succeed(CheckpointStore.CheckpointStore, DyingStore.make(store, self, decide)),
                Layer.succeed(Owner.Owner, owner),
                model.layer,
                layer
              ])
            )
            return yield* Effect.raceFirst(Fiber.join(fiber), Effect.as(self.died, "died" as const))
          })
        const dying: DyingStore.Decide = ({ events }) =>
          Effect.succeed(events.some((one) => JSON.stringify(one).includes(event)) ? fate : "live")
        expect(yield* process("one", Run.start(agent, { runId: "r", task: "go" }), dying)).toBe("died")
        expect(read("a.txt")).toBe(ending === "reconciled" ? "1\nnew\n" : "1\nold\n")
        expect(yield* process("two", Run.resume(agent, { runId: "r" }))).toMatchObject({ _tag: "Completed" })
        expect(read("a.txt")).toBe("1\nnew\n")
        const events = yield* Run.events("r", { follow: false }).pipe(
          Stream.map(({ event }) => event),
          Stream.runCollect,
          Effect.provideService(CheckpointStore.CheckpointStore, store)
        )
        expect(ended(events)).toEqual([ending])
        const [result] = (yield* model.requests).flatMap(({ results }) => results)
        expect(result?.result).toEqual({
          path: "a.txt",
          line: 2,
          diff: "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n 1\n-old\n+new\n"
        })
      })
    )

    it.live("a failure is told in words without real paths, and the Run goes on", () =>
      Effect.gen(function* () {
        const { layer, root } = yield* tools({ "a.txt": "" })
        const model = yield* ScriptedModel.make([
          calls([
            call("edit_file", { ...edit, path: "../x" }),
            call("edit_file", edit),
            call("read_files", { files: [{ path: "n" }] })
          ]),
          text("done")
        ])
        yield* Run.start(agent, { runId: "r", task: "go" }).pipe(
          Effect.provide([model.layer, layer, MemoryStore.layer])
        )
        const [, second] = yield* model.requests
        expect(second?.results.map(({ isFailure, result }) => [isFailure, result])).toMatchObject([
          [true, { _tag: "OutsideFolder", path: "../x", message: "the path leads out of the folder with '..'" }],
          [true, { _tag: "EditRefused", message: expect.stringContaining("does not occur") }],
          [true, { _tag: "NothingRead", message: "n: there is no such file" }]
        ])
        expect(JSON.stringify(second?.results)).not.toContain(root)
        expect(existsSync(join(root, "../x"))).toBe(false)
      })
    )
  })
})
