import { NodeFileSystem } from "@effect/platform-node"
import { expect, it } from "@effect/vitest"
import { CheckpointStore, ProcessOwner, Run } from "@waystone/core"
import { AnswerLosingStore, CheckpointStoreSuite, ScriptedModel, YieldingStore } from "@waystone/core/testing"
import { FolderStore } from "@waystone/example-plugin-store"
import { Effect, Fiber, Layer, Logger, Schedule } from "effect"
import { execFileSync } from "node:child_process"
import {
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
  writeSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe } from "vitest"
import { idOf, nameOf } from "../src/Format.ts"
import { mailer, outbox } from "./agent.ts"
import { killed, peer, started } from "./processes.ts"

const temporary = mkdtempSync(join(tmpdir(), "folder-store-"))
afterAll(() => rmSync(temporary, { recursive: true, force: true }))
const newFolder = () => mkdtempSync(join(temporary, "runs-"))

const capabilities = (folder: string): CheckpointStoreSuite.Capabilities => ({
  reopen: FolderStore.make(folder),
  leftovers: (runId) =>
    Effect.sync(() => {
      const ofRun = readdirSync(join(folder, "runs")).filter((name) => name === nameOf(runId))
      const aside = readdirSync(join(folder, "unfinished")).filter((name) => name.startsWith(`${nameOf(runId)}.`))
      return ofRun.length + aside.length
    }),
  damage: (runId) =>
    Effect.sync(() => {
      const run = join(folder, "runs", nameOf(runId))
      truncateSync(lastFileOf(run), 20)
      return Effect.sync(() => `${lastFileOf(run)}: ${readFileSync(lastFileOf(run), "utf8")}`)
    }),
  peer: peer(folder)
})

const lastFileOf = (run: string): string => {
  const files = join(run, readdirSync(run)[0] ?? "")
  return join(files, readdirSync(files).toSorted().at(-1) ?? "")
}

describe("the rules of a store", () => {
  const folder = newFolder()
  CheckpointStoreSuite.register(it.live, { layer: FolderStore.layer(folder), capabilities: capabilities(folder) })
})

/** Twice as long as all others, so only where every test is asked for, as in `.ci/run`. */
const isFull = process.env["WAYSTONE_FULL"] === "1"
if (!isFull) console.log("Skipped: the rules of FolderStore with every second answer lost; WAYSTONE_FULL=1 runs them.")

describe.runIf(isFull)("the rules of a store, with every second answer lost", () => {
  const folder = newFolder()
  const forgetful = Effect.map(FolderStore.make(folder), (store) =>
    AnswerLosingStore.make(YieldingStore.make(store), AnswerLosingStore.every(2))
  )
  const layer = Layer.effect(CheckpointStore.CheckpointStore, forgetful)
  const { peer: _, ...here } = capabilities(folder)
  CheckpointStoreSuite.register(it.live, { layer, capabilities: here })
})

const head = (body: string): CheckpointStore.HeadRow => ({
  status: "running",
  agent: "a",
  waiting: [],
  updatedAt: 1,
  body
})

/** A Run of three appends: the files 1, 2 and 3. */
const threeAppends = Effect.fnUntraced(function* (folder: string, runId: string) {
  const store = yield* FolderStore.make(folder)
  for (const expectedSeq of [0, 1, 2]) {
    const text = JSON.stringify({ said: expectedSeq })
    yield* store.append({ runId, epoch: 0, expectedSeq, events: [text], head: head(text) })
  }
  const run = join(folder, "runs", nameOf(runId))
  const files = join(run, readdirSync(run)[0] ?? "")
  return { store, run, files }
})

it.live("names in the folder tell all run ids apart, on file systems without case too, and lead back", () =>
  Effect.sync(() => {
    const ids = ["a", "A", "a.", "a:", ".", "..", "aB", "Ab", "AB", "a-b", "a_b", "A".repeat(128), "a".repeat(128)]
    expect(new Set(ids.map((id) => nameOf(id).toLowerCase())).size).toBe(ids.length)
    expect(ids.map(nameOf).map(idOf)).toEqual(ids)
    expect([".DS_Store", "a~0", "a~F", "A", "", "~1"].map(idOf)).toEqual(Array.from({ length: 6 }, () => undefined))
    for (const id of ids) expect(nameOf(id).length).toBeLessThan(200)
  })
)

it.live("a person can read the files", () =>
  Effect.gen(function* () {
    const { files } = yield* threeAppends(newFolder(), "Question.1")
    expect(files).toContain("question,1~200")
    const second: unknown = JSON.parse(readFileSync(join(files, "000002.json"), "utf8"))
    expect(second).toMatchObject({ seq: 2, events: [{ seq: 2, ends: true, body: { json: { said: 1 } } }] })
  })
)

describe("damage is told, and left as it is", () => {
  const corrupt = (path: string, seq = 0) => ({ _tag: "CheckpointCorrupt", runId: "r", seq, path })
  const everything = { after: 0, limit: 9 }

  it.live("a torn file", () =>
    Effect.gen(function* () {
      const { files, store } = yield* threeAppends(newFolder(), "r")
      const file = join(files, "000003.json")
      truncateSync(file, 20)
      const refused: ReadonlyArray<Effect.Effect<unknown, CheckpointStore.StoreError>> = [
        store.head("r"),
        store.read("r", everything),
        store.claim({ runId: "r", owner: "o", ttlMillis: 1 }),
        store.append({ runId: "r", epoch: 0, expectedSeq: 3, events: ["e"], head: head("h") }),
        store.remove("r", 3)
      ]
      for (const error of yield* Effect.forEach(refused, Effect.flip))
        expect(error).toMatchObject(corrupt("000003.json"))
      yield* store.append({ runId: "sound", epoch: 0, expectedSeq: 0, events: ["e"], head: head("h") })
      const said: Array<string> = []
      const logger = Logger.make(({ message }) => void said.push(String(message)))
      const listed = yield* Effect.provide(store.list({}, { limit: 1 }), Logger.layer([logger]))
      expect(listed.map(({ runId }) => runId)).toEqual(["sound"])
      expect(said).toEqual([expect.stringContaining("Run r is damaged at 000003.json")])
      expect(readFileSync(file, "utf8")).toHaveLength(20)
    })
  )

  it.live("a file that is missing, or is another's", () =>
    Effect.gen(function* () {
      const { files, store } = yield* threeAppends(newFolder(), "r")
      const other = yield* threeAppends(newFolder(), "other")
      rmSync(join(files, "000002.json"))
      expect(yield* Effect.flip(store.read("r", everything))).toMatchObject(corrupt("000002.json is missing"))
      writeFileSync(join(files, "000002.json"), readFileSync(join(files, "000001.json")))
      expect(yield* Effect.flip(store.read("r", everything))).toMatchObject(corrupt("not where it should be", 2))
      writeFileSync(join(files, "000003.json"), readFileSync(join(other.files, "000003.json")))
      expect(yield* Effect.flip(store.head("r"))).toMatchObject(corrupt("000003.json: runId"))
    })
  )

  it.live("a folder without files is no unknown Run, a folder that went away is no empty store", () =>
    Effect.gen(function* () {
      const folder = newFolder()
      const { files, run, store } = yield* threeAppends(folder, "r")
      for (const file of readdirSync(files)) rmSync(join(files, file))
      expect(yield* Effect.flip(store.head("r"))).toMatchObject(corrupt("a folder without files"))
      rmSync(files, { recursive: true })
      writeFileSync(join(run, ".DS_Store"), "")
      expect(yield* Effect.flip(store.head("r"))).toMatchObject(corrupt("a folder with nothing of a Run"))
      rmSync(join(folder, "runs"), { recursive: true })
      expect(yield* Effect.flip(store.head("r"))).toMatchObject({ _tag: "StoreUnavailable" })
      expect(yield* Effect.flip(store.list({}, { limit: 1 }))).toMatchObject({ _tag: "StoreUnavailable" })
    })
  )
})

describe("removing what is damaged", () => {
  it.live("takes away whatever lies in the Run's folder", () =>
    Effect.gen(function* () {
      const folder = newFolder()
      const { run, store } = yield* threeAppends(folder, "r")
      mkdirSync(join(run, "second"))
      writeFileSync(join(run, ".DS_Store"), "")
      expect(yield* Effect.flip(store.head("r"))).toMatchObject({ path: "more than one folder" })
      expect(yield* store.remove("r", "damaged")).toBe(true)
      expect(yield* store.remove("r", "damaged")).toBe(false)
      for (const name of ["runs", "unfinished"]) expect(readdirSync(join(folder, name))).toEqual([])
    })
  )

  it.live("leaves alone the Run that began in its place while the damage was read", () =>
    Effect.gen(function* () {
      const { files, run, store } = yield* threeAppends(newFolder(), "r")
      // Who reads a pipe waits until somebody has written to it.
      const pipe = join(files, "000004.json")
      execFileSync("mkfifo", [pipe])
      const removing = yield* Effect.forkChild(store.remove("r", "damaged"))
      const opened = Effect.try({ try: () => openSync(pipe, constants.O_WRONLY | constants.O_NONBLOCK), catch: String })
      const reads = yield* Effect.retry(opened, { schedule: Schedule.spaced("5 millis") })
      rmSync(run, { recursive: true })
      yield* store.append({ runId: "r", epoch: 0, expectedSeq: 0, events: ["new"], head: head("new") })
      writeSync(reads, "{")
      closeSync(reads)
      expect(yield* Fiber.join(removing)).toBe(false)
      expect(yield* store.head("r")).toMatchObject({ seq: 1, body: "new" })
    })
  )
})

it.live("a removal that was killed in the middle is completed by whoever meets it", () =>
  Effect.gen(function* () {
    const folder = newFolder()
    const { files, run, store } = yield* threeAppends(folder, "r")
    mkdirSync(join(folder, "runs", "almost-gone"))
    writeFileSync(join(folder, "runs", "notes.txt"), "not a Run")
    writeFileSync(join(files, "000004.json"), JSON.stringify({ _tag: "Removed", runId: "r" }))
    expect(yield* store.list({}, { limit: 9 })).toEqual([])
    expect(existsSync(run)).toBe(false)
    expect(readdirSync(join(folder, "runs"))).toEqual(["notes.txt"])
    const begun = { runId: "r", epoch: 0 as const, expectedSeq: 0, events: ["new"], head: head("h") }
    expect(yield* store.append(begun)).toEqual({ _tag: "Committed" })
    expect(yield* store.head("r")).toMatchObject({ seq: 1, epoch: 0 })
  })
)

it.live("of an append and a removal at once exactly one wins, and a new life has nothing of the old one", () =>
  Effect.gen(function* () {
    const store = yield* FolderStore.make(newFolder())
    const append = (expectedSeq: number, ...events: ReadonlyArray<string>) =>
      store.append({ runId: "r", epoch: 0, expectedSeq, events, head: head("h") })
    for (let round = 0; round < 50; round++) {
      yield* append(0, "old", "old")
      const both = [store.remove("r", 2), append(2, "late"), append(0, "new"), store.list({}, { limit: 9 })] as const
      const [removed, late] = yield* Effect.all(both, { concurrency: "unbounded" })
      expect(removed).toBe(late._tag === "Conflict")
      const bodies = (yield* store.read("r", { after: 0, limit: 9 })).map(({ body }) => body)
      expect(removed ? [[], ["new"]] : [["old", "old", "late"]]).toContainEqual(bodies)
      yield* store.remove("r", bodies.length)
      expect(yield* store.head("r")).toBeUndefined()
    }
  })
)

it.live("opening sweeps what was left unfinished an hour ago, and nothing else", () =>
  Effect.gen(function* () {
    const folder = newFolder()
    yield* FolderStore.make(folder)
    const [old, young, foreign] = [`r.${crypto.randomUUID()}`, `r.${crypto.randomUUID()}`, "notes.txt"]
    for (const name of [old, young, foreign]) writeFileSync(join(folder, "unfinished", name), "{")
    for (const name of [old, foreign]) utimesSync(join(folder, "unfinished", name), 1, 1)
    yield* FolderStore.make(folder)
    expect(readdirSync(join(folder, "unfinished")).toSorted()).toEqual([foreign, young].toSorted())
  })
)

it.live("a folder that cannot hold Runs is a typed error that says so", () =>
  Effect.gen(function* () {
    const file = join(newFolder(), "file")
    writeFileSync(file, "")
    const error = yield* Effect.flip(FolderStore.make(file))
    expect(error).toMatchObject({ _tag: "FolderUnusable", folder: file })
    expect(error.message).toContain("hard links")
  })
)

it.live("a Run that was killed with its process goes on in another, and sends its mail once", () =>
  Effect.gen(function* () {
    const folder = newFolder()
    const file = join(folder, "outbox.txt")
    const store = yield* FolderStore.make(folder)
    const worker = yield* started("worker.ts", [folder, file])
    const sent = store.read("killed", { after: 0, limit: 99 }).pipe(
      Effect.map((events) => events.some(({ body }) => body.includes("ToolCallCompleted"))),
      Effect.delay("50 millis"),
      Effect.repeat({ until: (there) => there })
    )
    yield* sent
    yield* killed(worker)

    const model = yield* ScriptedModel.make([ScriptedModel.text("done")])
    const owner = Layer.provide(ProcessOwner.layer, NodeFileSystem.layer)
    const live = Layer.mergeAll(model.layer, outbox(file), FolderStore.layer(folder), owner)
    const outcome = yield* Run.resume(mailer, { runId: "killed" }).pipe(Effect.provide(live))
    expect(outcome).toMatchObject({ _tag: "Completed", output: "done" })
    expect(readFileSync(file, "utf8")).toBe("ann\n")
    yield* model.assertConsumed
  })
)
