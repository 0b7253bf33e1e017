import { appendFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { describe, expect, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import { CheckpointStore } from "../src/CheckpointStore.ts"
import * as MemoryStore from "../src/MemoryStore.ts"
import { ModelInfo, ModelSettings } from "../src/ModelInfo.ts"
import * as ModelRetry from "../src/ModelRetry.ts"
import * as Run from "../src/Run.ts"
import type { RunEvent } from "../src/RunEvent.ts"
import * as Difference from "../src/testing/Difference.ts"
import * as RecordedModel from "../src/testing/RecordedModel.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"
import { agentOf, during, journal, Kit } from "./support/turns.ts"

const { call, delta, fail, reasoning, reply, stream, text, thought } = ScriptedModel
const input = { runId: "r", task: "go" }
const outside = ConfigProvider.layer(ConfigProvider.fromUnknown({}))

/** A folder of its own for every test. */
const folder = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "cassette-"))),
  (path) => Effect.promise(() => rm(path, { recursive: true }))
)
const Live = Layer.merge(NodeFileSystem.layer, outside)

/** The real model of these tests, with what its adapter knows of it. */
const real = (script: ScriptedModel.Script) =>
  Effect.map(ScriptedModel.make(script), (model) => ({
    ...model,
    layer: Layer.mergeAll(
      model.layer,
      Layer.succeed(ModelInfo, { provider: "acme", model: "m-1" }),
      Layer.succeed(ModelSettings, { temperature: 0.5 })
    )
  }))

/** No model may be built: there is no provider here. */
const none: Layer.Layer<LanguageModel.LanguageModel> = Layer.effectDiscard(
  Effect.die(new Error("the real model was built"))
) as never

const tools = Kit.toLayer({
  look: ({ at }) => Effect.succeed({ seen: at * 2 }),
  save: ({ text }) => Effect.succeed({ saved: text })
})
const quick = Layer.succeed(ModelRetry.ModelRetry, {
  ...ModelRetry.ModelRetry.defaultValue(),
  schedule: Schedule.recurs(2)
})

/** Runs the agent once over a store of its own; its journal. */
const ran = (model: Layer.Layer<LanguageModel.LanguageModel>, streaming = true, task = "go") =>
  Effect.gen(function* () {
    const store = yield* MemoryStore.make
    const layer = Layer.mergeAll(model, Layer.succeed(CheckpointStore, store), tools, quick)
    const agent = yield* agentOf({ stream: streaming })
    return yield* Effect.andThen(Effect.exit(Run.start(agent, { ...input, task })), journal("r")).pipe(
      Effect.provide(layer)
    )
  })

/** Everything of a journal but times and who owned the Run. */
const timeless = (events: ReadonlyArray<RunEvent>) =>
  JSON.parse(
    JSON.stringify(events, (key, value) =>
      ["at", "endedAt", "firstPartAt", "startedAt", "owner", "since", "wakeAt"].includes(key) ? undefined : value
    )
  )

const recorded = (file: string, script: ScriptedModel.Script, body = ran) =>
  Effect.scoped(
    Effect.gen(function* () {
      const model = yield* RecordedModel.make({ file, mode: "record", model: (yield* real(script)).layer })
      return yield* body(model.layer)
    })
  )

const replayed = (file: string, streaming?: boolean, task?: string) =>
  Effect.gen(function* () {
    const model = yield* RecordedModel.make({ file, mode: "replay", model: none })
    const events = yield* ran(model.layer, streaming, task)
    yield* model.assertConsumed
    return events
  })

const messageOf = (exit: Exit.Exit<unknown, unknown>): string =>
  Exit.isFailure(exit)
    ? exit.cause.reasons.map((reason) => String(Cause.squash(Cause.fromReasons([reason])))).join("\n")
    : ""

const unavailable = fail(
  AiError.reasonFromHttpStatus({
    status: 503,
    http: { response: { status: 503, headers: { "retry-after-ms": "3", "x-request-key": "header-value" } } }
  })
)
const story = [
  reply([reasoning("hm", { acme: { signature: "s1" } }), call("look", { at: 2 })]),
  unavailable,
  call("save", { text: "four" }),
  text("done", { usage: { input: 3, cacheRead: 4, output: 5 } })
]

describe("RecordedModel", () => {
  it.live.each([true, false])("the same cassette run twice gives equal journals (stream %s)", (streaming) =>
    Effect.gen(function* () {
      const file = join(yield* folder, "deep", "er", "story.jsonl")
      const first = yield* recorded(file, story, (model) => ran(model, streaming))
      expect(first.at(-1)).toMatchObject({ _tag: "RunFinished", outcome: { _tag: "Completed", output: "done" } })
      const second = yield* replayed(file, streaming)
      const third = yield* replayed(file, streaming)
      expect(timeless(third)).toEqual(timeless(second))
      expect(timeless(second)).toEqual(timeless(first))
      expect(second.find(({ _tag }) => _tag === "TurnStarted")).toMatchObject({
        provider: "acme",
        model: "m-1",
        settings: { temperature: 0.5 }
      })
    }).pipe(Effect.provide(Live))
  )

  it.live("keeps the chunks of a stream as they came, and no times", () =>
    Effect.gen(function* () {
      const file = join(yield* folder, "c.jsonl")
      yield* recorded(file, [stream([thought("a"), delta("b"), delta("c")])])
      const [, line = ""] = (yield* Effect.promise(() => readFile(file, "utf8"))).split("\n")
      const entry = JSON.parse(line)
      expect(entry.chunks.flat().map(({ type }: { readonly type: string }) => type)).toEqual([
        "reasoning-start",
        "reasoning-delta",
        "reasoning-end",
        "text-start",
        "text-delta",
        "text-delta",
        "text-end",
        "finish"
      ])
      expect(Object.keys(entry)).toEqual(["digest", "request", "chunks", "end"])
    }).pipe(Effect.provide(Live))
  )

  it.live("V1 writes no secret of requests, replies, errors, settings or headers", () =>
    Effect.gen(function* () {
      const file = join(yield* folder, "c.jsonl")
      const planted = {
        openai: "sk-proj-abcdefghij0123456789",
        google: "AIzaSyA1234567890abcdefghijklmnopqrstuv",
        aws: "AKIAIOSFODNN7EXAMPLE",
        bearer: "Bearer abcdefghijkl0123456789",
        own: "hunter-of-badgers",
        header: "header-value-1",
        body: "body-text-1",
        field: "plain"
      }
      const error = fail(
        AiError.reasonFromHttpStatus({
          status: 503,
          description: `${planted.openai} refused`,
          http: {
            body: planted.body,
            response: { status: 503, headers: { "x-key": planted.header, "x-red": Redacted.make(planted.header) } }
          }
        })
      )
      const http = { headers: { "set-cookie": planted.header, authorization: planted.header } }
      const about = reply([
        { type: "response-metadata", id: "r1", timestamp: "2026-01-01T00:00:00.000Z" },
        { type: "text", text: planted.google },
        {
          type: "finish",
          reason: "stop",
          usage: { inputTokens: {}, outputTokens: {} },
          response: { status: 200, ...http }
        }
      ])
      const script = [error, call("save", { text: `${planted.aws} ${planted.own}` }), about]
      const model = yield* real(script)
      const settings = Layer.succeed(ModelSettings, { extra: { authorization: planted.field } })
      yield* Effect.scoped(
        Effect.gen(function* () {
          const made = yield* RecordedModel.make({
            file,
            mode: "record",
            model: Layer.merge(model.layer, settings),
            redact: (text) => text.replaceAll(planted.own, "[mine]")
          })
          yield* ran(made.layer, true, `use ${planted.openai} and ${planted.bearer}`)
        })
      )
      const written = yield* Effect.promise(() => readFile(file, "utf8"))
      expect(written.split("\n").length).toBe(5)
      expect(written).not.toMatch(/timestamp|set-cookie/)
      for (const secret of Object.values(planted)) expect(written).not.toContain(secret)
      expect(written).toContain("[mine]")
    }).pipe(Effect.provide(Live))
  )

  it.live("V1 finds a secret that came in pieces, and one that only its field names", () =>
    Effect.gen(function* () {
      const file = join(yield* folder, "c.jsonl")
      const pieces = ["the key is sk-proj-abcd", "efghij01", "23456789 ok"].map((piece) => delta(piece))
      yield* recorded(file, [call("save", { text: "a", password: "badger" }), stream(pieces)])
      const written = yield* Effect.promise(() => readFile(file, "utf8"))
      for (const secret of ["badger", "abcd", "efghij01", "23456789"]) expect(written).not.toContain(secret)
      const last = JSON.parse(written.trim().split("\n")[2] ?? "")
      const deltas = last.chunks.flat().flatMap((part: object) => ("delta" in part ? [part.delta] : []))
      expect(deltas).toEqual(["the key is [redacted] ok", "", ""])
      expect((yield* replayed(file)).at(-1)).toMatchObject({ outcome: { output: "the key is [redacted] ok" } })
    }).pipe(Effect.provide(Live))
  )

  it.effect("records that a reply was given up, and gives it up again", () =>
    Effect.gen(function* () {
      const file = join(yield* folder, "c.jsonl")
      const limited = (model: Layer.Layer<LanguageModel.LanguageModel>) =>
        Effect.gen(function* () {
          const layer = Layer.mergeAll(model, MemoryStore.layer, tools, quick)
          const start = during(Run.start(yield* agentOf(), input), "1 minute")
          return yield* Effect.andThen(start, journal("r")).pipe(Effect.provide(layer))
        })
      const first = yield* recorded(file, [stream([delta("a"), ScriptedModel.wait("1 hour")]), text("done")], limited)
      const model = yield* RecordedModel.make({ file, mode: "replay", model: none })
      const second = yield* limited(model.layer)
      expect(timeless(second)).toEqual(timeless(first))
      expect(JSON.stringify(second)).toContain("ModelTimeout")
    }).pipe(Effect.provide(Live))
  )

  it.live("replays a request whose secret is another one today", () =>
    Effect.gen(function* () {
      const file = join(yield* folder, "c.jsonl")
      yield* recorded(file, [text("done")], (model) => ran(model, true, "use sk-proj-abcdefghij0123456789"))
      const events = yield* replayed(file, true, "use sk-proj-zyxwvutsrq9876543210")
      expect(events.at(-1)).toMatchObject({ outcome: { output: "done" } })
    }).pipe(Effect.provide(Live))
  )

  it.live("names the first difference of a request that is not the recorded one, and the layer dies with it", () =>
    Effect.gen(function* () {
      const file = join(yield* folder, "c.jsonl")
      yield* recorded(file, [text("done")])
      const model = yield* RecordedModel.make({ file, mode: "replay", model: none })
      const exit = yield* Effect.exit(ran(model.layer, true, "stop"))
      expect(messageOf(exit)).toContain("request 1 is not the one in line 2 of")
      const [problem] = yield* model.problems
      expect(problem).toContain("$.messages[1].content")
      expect(problem).toMatch(/recorded: .*"go"/)
      expect(problem).toMatch(/now: .*"stop"/)
      expect(Exit.isFailure(yield* Effect.exit(model.assertConsumed))).toBe(true)
    }).pipe(Effect.provide(Live))
  )

  it.live("reports recorded requests that were never made, and requests beyond the last", () =>
    Effect.gen(function* () {
      const file = join(yield* folder, "c.jsonl")
      yield* recorded(file, story)
      const model = yield* RecordedModel.make({ file, mode: "replay", model: none })
      expect(yield* model.remaining).toBe(4)
      expect(messageOf(yield* Effect.exit(model.assertConsumed))).toContain("4 of the 4 requests")
      yield* ran(model.layer)
      yield* model.assertConsumed
      const more = yield* Effect.exit(ran(model.layer))
      expect(messageOf(more)).toContain("request 5 (streamText) is unexpected")
    }).pipe(Effect.provide(Live))
  )

  it.live("V3 auto records where there is no file and replays where there is one, without a real model", () =>
    Effect.gen(function* () {
      const file = join(yield* folder, "c.jsonl")
      const { layer } = yield* real([text("done")])
      const first = yield* Effect.scoped(
        Effect.flatMap(RecordedModel.make({ file, model: layer }), (m) => ran(m.layer))
      )
      const again = yield* RecordedModel.make({ file, model: none })
      expect(again.recording).toBe(false)
      expect(timeless(yield* ran(again.layer))).toEqual(timeless(first))
    }).pipe(Effect.provide(Live))
  )

  it.live.each(["auto", "replay"] as const)("a missing file in CI is an error that says what to do (%s)", (mode) =>
    Effect.gen(function* () {
      const file = join(yield* folder, "c.jsonl")
      const error = yield* Effect.flip(RecordedModel.make({ file, mode, model: none }))
      expect(error).toMatchObject({ _tag: "CassetteMissing", file })
      expect(String(error)).toContain("Record it once")
    }).pipe(
      Effect.provide(
        Layer.merge(NodeFileSystem.layer, ConfigProvider.layer(ConfigProvider.fromUnknown({ CI: "true" })))
      )
    )
  )

  const damages: ReadonlyArray<readonly [string, (text: string) => string, number, string]> = [
    ["a cut line", (text) => text.slice(0, -20), 3, "$"],
    ["an empty file", () => "", 1, "$"],
    ["another format", (text) => text.replace('"cassette":1', '"cassette":2'), 1, "$.cassette"],
    ["a part of no kind", (text) => text.replace('"type":"text-delta"', '"type":"text-gamma"'), 3, "$.chunks[0][1]"],
    ["a request that was edited", (text) => text.replace('"go"', '"no"'), 2, "$.digest"]
  ]
  it.live.each(damages)("V2 reports %s with line and path in every mode, and leaves it", ([, damage, line, path]) =>
    Effect.gen(function* () {
      const file = join(yield* folder, "c.jsonl")
      yield* recorded(file, [call("look", { at: 1 }), text("done")])
      const sound = yield* Effect.promise(() => readFile(file, "utf8"))
      const damaged = damage(sound)
      yield* Effect.promise(() => writeFile(file, damaged))
      for (const mode of ["record", "replay", "auto"] as const) {
        const error = yield* Effect.flip(Effect.scoped(RecordedModel.make({ file, mode, model: none })))
        expect(error).toMatchObject({ _tag: "CassetteDamaged", file, line })
        expect("path" in error ? error.path : "").toContain(path)
      }
      expect(yield* Effect.promise(() => readFile(file, "utf8"))).toBe(damaged)
    }).pipe(Effect.provide(Live))
  )

  it.live("V2 recording again replaces the file at its end, and not if nothing was asked", () =>
    Effect.gen(function* () {
      const file = join(yield* folder, "c.jsonl")
      const read = Effect.promise(() => readFile(file, "utf8"))
      yield* recorded(file, [text("one")])
      const first = yield* read
      yield* Effect.scoped(RecordedModel.make({ file, mode: "record", model: (yield* real([])).layer }))
      expect(yield* read).toBe(first)
      yield* recorded(file, [text("two")], (model) =>
        Effect.tap(ran(model), () => Effect.map(read, (now) => expect(now).toBe(first)))
      )
      expect(yield* read).toContain("two")
      const fs = yield* FileSystem.FileSystem
      expect(yield* fs.exists(`${file}.part`)).toBe(false)
    }).pipe(Effect.provide(Live))
  )
})

describe("V2 a recording that is not whole", () => {
  const rejected = fail(AiError.reasonFromHttpStatus({ status: 401 }))
  const failing = (model: Layer.Layer<LanguageModel.LanguageModel>) =>
    Effect.andThen(ran(model), Effect.die(new Error("the test fails")))
  const hanging = (model: Layer.Layer<LanguageModel.LanguageModel>) =>
    during(Effect.timeout(ran(model), "2 seconds"), "2 seconds").pipe(Effect.orDie)
  const abandoned = (model: Layer.Layer<LanguageModel.LanguageModel>) =>
    Effect.gen(function* () {
      const context = yield* Layer.build(model)
      const { generateText } = Context.get(context, LanguageModel.LanguageModel)
      yield* generateText({ prompt: "go" })
      yield* Effect.forkDetach(generateText({ prompt: "hang" }), { startImmediately: true })
      return yield* Effect.as(generateText({ prompt: "go" }), [])
    }).pipe(Effect.scoped)
  it.effect.each<readonly [string, ScriptedModel.Script, typeof ran]>([
    ["whose key was refused", [rejected], ran],
    ["whose second request was refused", [call("look", { at: 1 }), rejected], ran],
    ["whose test failed", [text("two")], failing],
    ["that was given up in its second request", [call("look", { at: 1 }), ScriptedModel.hang], hanging],
    ["with a request that nobody waited for", [text("one"), ScriptedModel.hang, text("two")], abandoned]
  ])("%s is dropped: no cassette is made of it, and a good one stays", ([, script, body]) =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const path = yield* folder
      yield* Effect.exit(recorded(join(path, "new.jsonl"), script, body))
      const file = join(path, "old.jsonl")
      yield* recorded(file, [call("look", { at: 1 }), text("one")])
      const good = yield* fs.readFileString(file)
      yield* Effect.exit(recorded(file, script, body))
      expect(yield* fs.readFileString(file)).toBe(good)
      expect(yield* fs.readDirectory(path)).toEqual(["old.jsonl"])
    }).pipe(Effect.provide(Live))
  )
})

it.live("V1 a recorded image is replayed unchanged, whatever its bytes look like", () =>
  Effect.gen(function* () {
    const file = join(yield* folder, "c.jsonl")
    const data = `AAA/AKIA${"A1".repeat(8)}/AAA`
    const image = { type: "file", mediaType: "image/png", data } as const
    const written = (events: ReadonlyArray<RunEvent>) =>
      JSON.stringify(events.filter(({ _tag }) => _tag === "TurnCompleted"))
    const script = [reply([image, call("look", { at: 1 })]), text("done")]
    expect(written(yield* recorded(file, script))).toContain(data)
    expect(written(yield* replayed(file))).toContain(data)
  }).pipe(Effect.provide(Live))
)

it.live("a blank line at the end of a cassette damages nothing", () =>
  Effect.gen(function* () {
    const file = join(yield* folder, "c.jsonl")
    yield* recorded(file, [text("done")])
    yield* Effect.promise(() => appendFile(file, "\n\r\n"))
    expect((yield* replayed(file)).at(-1)).toMatchObject({ outcome: { output: "done" } })
  }).pipe(Effect.provide(Live))
)

describe("a difference", () => {
  it("is bounded and shows where two long texts part", () => {
    const long = "x".repeat(5000)
    const found = Difference.first({ a: [{ b: `${long}1${long}` }] }, { a: [{ b: `${long}2${long}` }] })
    expect(found?.path).toBe("$.a[0].b")
    expect(found?.expected.length).toBeLessThanOrEqual(202)
    expect([found?.expected, found?.actual].map((text) => text?.includes("x1x") === true)).toEqual([true, false])
    expect(Difference.first({ a: 1, b: [] }, { b: [], a: 1 })).toBe(undefined)
    expect(Difference.first({ a: 1 }, { a: 1, "b c": 2 })).toEqual({
      path: '$["b c"]',
      expected: "nothing",
      actual: "2"
    })
  })
})
