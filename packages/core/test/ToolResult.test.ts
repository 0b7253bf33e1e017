import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Prompt from "effect/ai/Prompt"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Agent from "../src/Agent.ts"
import * as MemoryStore from "../src/MemoryStore.ts"
import * as Run from "../src/Run.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"
import { eventsOf, only, outcomeOf, paired, ran, Readonly, storeLayer } from "./support/tools.ts"

const { call, calls, text } = ScriptedModel

const raise = (error: unknown) => (): never => {
  throw error
}

const stacked = (): Error => {
  const error = new Error("cannot open /home/ann/secret/project/file.txt")
  error.message += `\n${error.stack}`
  return error
}

const unreadableMessage = Object.defineProperty(new Error("hidden"), "message", { get: raise(new Error("again")) })

const faults: ReadonlyArray<readonly [string, () => Effect.Effect<unknown, unknown>, RegExp]> = [
  ["throws an Error", raise(new Error("no disk")), /no disk/],
  ["throws a string", raise("a text"), /a text/],
  ["throws null", raise(null), /null/],
  ["throws an object", raise({ a: 1 }), /\\"a\\":1/],
  ["rejects with undefined", () => Effect.promise(() => Promise.reject(undefined)), /undefined/],
  ["dies", () => Effect.die(new TypeError("a defect")), /a defect/],
  ["throws an error with a message of 1 MB", raise(new Error('"x\n'.repeat(350_000))), /x/],
  ["throws an error whose message cannot be read", raise(unreadableMessage), /without a readable message/],
  // beyond the eight
  ["throws an error whose name is no text", raise(Object.assign(new Error("odd"), { name: 5 })), /odd/],
  ["throws an error whose tag is 1 MB", raise({ _tag: "T".repeat(1_000_000) }), /T/],
  ["fails with an error whose tag is 1 MB", () => Effect.fail({ _tag: "T".repeat(1_000_000) }), /T/],
  ["throws an error that names its stack and its folder", raise(stacked()), /cannot open file.txt/],
  ["fails with an error that its schema cannot encode", () => Effect.fail(stacked()), /cannot open file.txt/],
  ["interrupts itself", () => Effect.interrupt, /work was interrupted; outcome: unknown/]
]

const circle = () => {
  const self: { self?: unknown } = {}
  self.self = self
  return self
}

const revoked = () => {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

const unencodable: ReadonlyArray<readonly [string, () => unknown]> = [
  ["an object whose toJSON throws", () => ({ toJSON: raise(new Error("no")) })],
  ["a BigInt", () => ({ deep: [1n] })],
  ["a circle", circle],
  ["undefined", () => undefined],
  ["bytes", () => new Uint8Array([1, 2])],
  ["a Date", () => new Date(0)],
  ["a Map", () => new Map([["a", 1]])],
  ["a getter that throws", () => Object.defineProperty({}, "a", { enumerable: true, get: raise("no getter") })],
  ["a revoked proxy", revoked],
  ["not a number", () => ({ n: Number.NaN })]
]

const loneSurrogate = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/

/** Every text in there that is not well-formed. */
const illFormed = (value: unknown): ReadonlyArray<string> => {
  if (typeof value === "string") return loneSurrogate.test(value) ? [value] : []
  if (typeof value !== "object" || value === null) return []
  return Object.entries(value).flatMap(([key, inner]) => [...illFormed(key), ...illFormed(inner)])
}

describe("ToolResult", () => {
  it.effect.each(faults)("RI-012 a tool that %s gives an error result and the Run completes", ([, fault, says]) =>
    Effect.gen(function* () {
      const run = yield* ran({ handler: fault })
      expect(outcomeOf(run)).toMatchObject({ _tag: "Completed", output: "done" })
      const [result] = run.results
      expect(result?.isFailure).toBe(true)
      const shown = JSON.stringify(result?.result)
      expect(shown).toMatch(says)
      expect(shown.length).toBeLessThan(2048)
      expect(shown).not.toMatch(/\/home|\/work|node_modules|\bat .+:\d+:\d+/)
      expect(run.completed[0]?.error).toMatch(/^\S.{0,99}$/)
    })
  )

  const cuts: ReadonlyArray<readonly [string, Effect.Effect<unknown, unknown>]> = [
    ["a result that is half a character", Effect.succeed("\ud83d")],
    ["keys and values in a result", Effect.succeed({ "\ud83d": ["a\ud83d", "\ude00b"], "\\ud83d": 1 })],
    ["a result cut after its head", Effect.succeed(`${"a".repeat(11_999)}😀${"b".repeat(5000)}`)],
    ["a result cut before its tail", Effect.succeed(`${"a".repeat(12_001)}😀${"b".repeat(3999)}`)],
    ["a result of which not all is kept", Effect.succeed(`${"a".repeat(749_999)}😀${"b".repeat(300_000)}`)],
    ["a typed failure", Effect.fail("a\ud83d")],
    ["a typed failure that is cut", Effect.fail({ why: `${"a".repeat(1888)}${"😀".repeat(100)}` })],
    ["an error message", Effect.die(new Error("a\ud83d"))],
    ["an error message that is cut", Effect.die(new Error(`${"a".repeat(1897)}${"😀".repeat(100)}`))],
    ["the tag of an error", Effect.die({ _tag: `${"a".repeat(99)}😀` })]
  ]
  it.effect.each(cuts)("RI-041 %s stays well-formed, kept and shown", ([, output]) =>
    Effect.gen(function* () {
      const { completed, events, requests } = yield* ran({ handler: () => output })
      expect(completed).toHaveLength(1)
      expect(illFormed(events)).toEqual([])
      expect(illFormed(requests.map(({ messages }) => messages))).toEqual([])
    })
  )

  it.effect.each(unencodable)("RI-047 a tool that returns %s was executed, once, and is no failure", ([, make]) =>
    Effect.gen(function* () {
      let executions = 0
      const handler = () => Effect.sync(() => (executions++, make()))
      const run = yield* ran({ tool: Readonly, handler })
      expect(outcomeOf(run)._tag).toBe("Completed")
      expect(executions).toBe(1)
      expect(run.completed).toMatchObject([{ isFailure: false, ending: "executed" }])
      const result = expect.stringMatching(/^executed, output unavailable: ./)
      expect(run.results).toMatchObject([{ isFailure: false, result }])
    })
  )

  it.effect("RI-047 what a schema can encode is encoded: nothing, bytes, dates, maps and big numbers", () =>
    Effect.gen(function* () {
      const Fetch = Tool.make("fetch", {
        success: Schema.Struct({
          at: Schema.Date,
          bytes: Schema.Uint8Array,
          many: Schema.ReadonlyMap(Schema.String, Schema.BigInt)
        })
      })
      const Touch = Tool.make("touch", { success: Schema.Void })
      const kit = Toolkit.make(Fetch, Touch)
      const model = yield* ScriptedModel.make([calls([call("fetch", {}), call("touch", {})]), text("done")])
      const layer = kit.toLayer({
        fetch: () => Effect.succeed({ at: new Date(0), bytes: new Uint8Array([1, 2]), many: new Map([["a", 1n]]) }),
        touch: () => Effect.void
      })
      yield* Run.start(Agent.make("a", { instructions: "i", tools: [kit] }), { runId: "r", task: "go" }).pipe(
        Effect.provide([model.layer, layer, MemoryStore.layer])
      )
      expect((yield* model.requests)[1]?.results.map(({ result }) => result)).toEqual([
        { at: "1970-01-01T00:00:00.000Z", bytes: "AQI=", many: [["a", "1"]] },
        null
      ])
    })
  )

  it.effect("T3 a result over 16 KB is kept whole and shown cut, with head, tail and what is missing", () =>
    Effect.gen(function* () {
      const result = { head: "HEAD", middle: "m".repeat(50_000), tail: "TAIL" }
      const run = yield* ran({ handler: () => Effect.succeed(result) })
      expect(run.completed[0]?.result).toEqual(result)
      const shown = run.completed[0]?.shown ?? ""
      expect(run.results[0]?.result).toBe(shown)
      expect(shown).toMatch(/^\{"head":"HEAD".*\n\[… \d+ characters cut …\]\nm+","tail":"TAIL"\}$/)
      const cut = Number(/(\d+) characters cut/.exec(shown)?.[1])
      expect(cut).toBe(JSON.stringify(result).length - 16_000)
      expect(shown.length).toBeLessThan(16_060)
    })
  )

  it.effect("T3 a result of exactly 16 KB is shown as it is, and one over 1 MB is kept cut", () =>
    Effect.gen(function* () {
      const exact = yield* ran({ handler: () => Effect.succeed("x".repeat(16_000)) })
      expect(exact.completed[0]).not.toHaveProperty("shown")
      expect(exact.results[0]?.result).toBe("x".repeat(16_000))
      const huge = yield* ran({ handler: () => Effect.succeed([`<${"x".repeat(3_000_000)}>`]) })
      const { result, shown = "" } = huge.completed[0] ?? { result: "" }
      expect(result).toMatch(/^\["<x+\n\[… 2000006 characters cut …\]\nx+>"\]$/)
      expect(shown).toMatch(/^\["<x+\n\[… 2984006 characters cut …\]\nx+>"\]$/)
      expect(JSON.stringify(huge.requests[1]?.messages).length).toBeLessThan(18_000)
    })
  )

  it.effect("T4 a typed failure is encoded by its schema, and bounded to 2 KB however it is escaped", () =>
    Effect.gen(function* () {
      const Closed = Schema.TaggedStruct("Closed", { until: Schema.Date, why: Schema.String })
      const Open = Tool.make("open", { success: Schema.Void, failure: Closed })
      const whys = ["holiday", '"\n'.repeat(5000)]
      const model = yield* ScriptedModel.make([call("open", {}), call("open", {}), text("done")])
      const store = storeLayer(yield* MemoryStore.make)
      const layer = Toolkit.make(Open).toLayer({
        open: () => Effect.fail(Closed.make({ until: new Date(0), why: whys.shift() ?? "" }))
      })
      yield* Run.start(Agent.make("a", { instructions: "i", tools: [Open] }), { runId: "r", task: "go" }).pipe(
        Effect.provide([model.layer, layer, store])
      )
      const completed = only(yield* Effect.provide(eventsOf(), store), "ToolCallCompleted")
      yield* Effect.provide(paired(), store)
      expect(completed.map(({ error }) => error)).toEqual(["Closed", "Closed"])
      expect(completed[0]).toMatchObject({
        isFailure: true,
        result: { _tag: "Closed", until: "1970-01-01T00:00:00.000Z", why: "holiday" }
      })
      const long = JSON.stringify(completed[1]?.result)
      expect(long).toContain("Closed")
      expect(long.length).toBeGreaterThan(1500)
      expect(long.length).toBeLessThan(2048)
    })
  )

  it.effect("toModelOutput: the model sees the parts, bytes included, and the journal keeps the result too", () =>
    Effect.gen(function* () {
      const Shot = Tool.make("shot", {
        success: Schema.Struct({ png: Schema.Uint8Array, caption: Schema.String }),
        toModelOutput: ({ caption, png }) => [
          Prompt.makePart("text", { text: caption }),
          Prompt.makePart("file", { mediaType: "image/png", data: png })
        ]
      })
      const model = yield* ScriptedModel.make([call("shot", {}), call("shot", {}), text("done")])
      const store = storeLayer(yield* MemoryStore.make)
      const captions = [`\ud83d${"x".repeat(20_000)}`, " "]
      const layer = Toolkit.make(Shot).toLayer({
        shot: () => Effect.sync(() => ({ png: new Uint8Array([1, 2, 3]), caption: captions.shift() ?? "" }))
      })
      yield* Run.start(Agent.make("a", { instructions: "i", tools: [Shot] }), { runId: "r", task: "go" }).pipe(
        Effect.provide([model.layer, layer, store])
      )
      yield* Effect.provide(paired(), store)
      const requests = yield* model.requests
      const parts = requests.slice(1).map(({ results }) => results[0]?.modelOutput ?? [])
      const file = expect.objectContaining({ type: "file", mediaType: "image/png", data: new Uint8Array([1, 2, 3]) })
      const cut = expect.stringMatching(/^\ufffdx+\n\[… \d+ characters cut …\]\nx+$/)
      expect(parts).toEqual([[expect.objectContaining({ type: "text", text: cut }), file], [file]])
      const completed = only(yield* Effect.provide(eventsOf(), store), "ToolCallCompleted")
      expect(completed[1]?.result).toEqual({ png: "AQID", caption: " " })
    })
  )
})
