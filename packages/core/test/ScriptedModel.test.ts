import { describe, expect, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import { TestClock } from "effect/testing"
import * as Agent from "../src/Agent.ts"
import * as MemoryStore from "../src/MemoryStore.ts"
import * as Run from "../src/Run.ts"
import * as PairingChecker from "../src/testing/PairingChecker.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"

const { call, calls, delta, keepAlive, reasoning, reply, text } = ScriptedModel

const Look = Tool.make("look", {
  parameters: Schema.Struct({ at: Schema.Number }),
  success: Schema.Struct({ seen: Schema.Number })
}).annotate(Tool.Readonly, true)
const kit = Toolkit.make(Look)
const handlers = kit.toLayer({ look: ({ at }) => Effect.succeed({ seen: at * 2 }) })

const ask = (prompt: string) => LanguageModel.generateText({ prompt })
const streamed = (prompt: string) => Stream.runCollect(LanguageModel.streamText({ prompt }))
const partsOf = (parts: ReadonlyArray<{ readonly type: string }>) => parts.map((part) => part.type)

describe("ScriptedModel", () => {
  it.effect("serves a whole Run from one script, streaming or not, and records its requests", () =>
    Effect.forEach([true, false], (stream) =>
      Effect.gen(function* () {
        const agent = Agent.make("watcher", { instructions: "Look.", tools: [Look], stream })
        const model = yield* ScriptedModel.make([
          reply([reasoning("hm", { test: { signature: "s" } }), text("first"), call("look", { at: 1 })]),
          calls([["look", { at: 2 }], call("look", { at: 3 }, "mine")]),
          ({ results }) => text(`saw ${results.map(({ result }) => JSON.stringify(result)).join()}`)
        ])
        const outcome = yield* Run.start(agent, { runId: "r", task: "go" }).pipe(
          Effect.provide([model.layer, handlers, MemoryStore.layer])
        )
        expect(outcome).toMatchObject({ _tag: "Completed", output: 'saw {"seen":4},{"seen":6}' })
        yield* model.assertConsumed
        const requests = yield* model.requests
        expect(requests.map(({ method }) => method)).toEqual(Array(3).fill(stream ? "streamText" : "generateText"))
        expect(requests.map(({ tools }) => tools)).toEqual([["look"], ["look"], ["look"]])
        expect(requests[2]?.results.map(({ id }) => id)).toEqual(["c2", "mine"])
        const answer = requests[1]?.messages[2]
        expect(answer?.role === "assistant" && answer.content.map((part) => [part.type, part.options])).toEqual([
          ["reasoning", { test: { signature: "s" } }],
          ["text", {}],
          ["tool-call", {}]
        ])
        const digests = yield* Effect.forEach(requests, ({ digest }) => digest)
        expect(new Set(digests).size).toBe(3)
        return digests
      })
    ).pipe(Effect.map(([a, b]) => expect(a).toEqual(b)))
  )

  it.effect("plays a stream part by part, with waits and keep-alives, and joins it where nothing is streamed", () =>
    Effect.gen(function* () {
      const entry = ScriptedModel.stream([delta("a"), ScriptedModel.wait("2 seconds"), keepAlive, delta("b")])
      const model = yield* ScriptedModel.make([entry, entry])
      const program = Effect.gen(function* () {
        const fiber = yield* Effect.forkChild(streamed("x"))
        yield* TestClock.adjust("1 second")
        expect(fiber.pollUnsafe()).toBeUndefined()
        yield* TestClock.adjust("1 second")
        expect(partsOf(yield* Fiber.join(fiber))).toEqual([
          "text-start",
          "text-delta",
          "text-delta",
          "text-delta",
          "text-end",
          "finish"
        ])
        const whole = yield* Effect.forkChild(ask("x"))
        yield* TestClock.adjust("2 seconds")
        expect((yield* Fiber.join(whole)).text).toBe("ab")
      })
      yield* Effect.provide(program, model.layer)
    })
  )

  it.effect("cuts a stream without a finish part, and fails it with an error part", () =>
    Effect.gen(function* () {
      const cut = ScriptedModel.stream([delta("a")], { cut: true })
      const broken = ScriptedModel.stream([delta("a"), ScriptedModel.error({ type: "overloaded_error" })])
      const model = yield* ScriptedModel.make([cut, broken, cut, broken])
      const program = Effect.gen(function* () {
        expect(partsOf(yield* streamed("x"))).toEqual(["text-start", "text-delta"])
        expect(partsOf(yield* streamed("x"))).toEqual(["text-start", "text-delta", "error"])
        expect((yield* Effect.flip(ask("x"))).reason._tag).toBe("NetworkError")
        expect((yield* Effect.flip(ask("x"))).message).toContain("overloaded_error")
      })
      yield* Effect.provide(program, model.layer)
    })
  )

  it.effect("fails, dies, delays and hangs as the script says", () =>
    Effect.gen(function* () {
      const reason = new AiError.InternalProviderError({ description: "down" })
      const model = yield* ScriptedModel.make([
        ScriptedModel.fail(reason),
        ScriptedModel.die("bug"),
        ScriptedModel.after("1 minute", text("late")),
        ScriptedModel.hang
      ])
      const program = Effect.gen(function* () {
        expect((yield* Effect.flip(ask("x"))).reason).toBe(reason)
        expect(Exit.hasDies(yield* Effect.exit(ask("x")))).toBe(true)
        const late = yield* Effect.forkChild(ask("x"))
        yield* TestClock.adjust("1 minute")
        expect((yield* Fiber.join(late)).text).toBe("late")
        const never = yield* Effect.forkChild(ask("x"))
        yield* TestClock.adjust("1 day")
        expect(never.pollUnsafe()).toBeUndefined()
        yield* Fiber.interrupt(never)
      })
      yield* Effect.provide(program, model.layer)
    })
  )

  it.effect("dies with the request that the script has no entry for, even where a Run swallows the defect", () =>
    Effect.gen(function* () {
      const model = yield* ScriptedModel.make([])
      const exit = yield* Effect.exit(
        Run.start(Agent.make("a", { instructions: "i" }), { runId: "r", task: "the task" }).pipe(
          Effect.ignore,
          Effect.provide([model.layer, MemoryStore.layer])
        )
      )
      const message = Exit.isFailure(exit) ? String(Cause.squash(exit.cause)) : ""
      expect(message).toMatch(
        /request 1 \(streamText, 2 messages, .*the task.*\) is unexpected: the script has 0 entries/
      )
      expect(yield* model.problems).toHaveLength(1)
    })
  )

  it.effect("dies with a request that no provider would take", () =>
    Effect.gen(function* () {
      const exit = yield* Effect.exit(Effect.provide(ask("  "), ScriptedModel.layer([text("a")])))
      expect(Exit.isFailure(exit) && String(Cause.squash(exit.cause))).toContain("a text is empty")
    })
  )

  it.effect("asserts that all entries were asked for", () =>
    Effect.gen(function* () {
      const model = yield* ScriptedModel.make([text("a"), text("b")])
      yield* Effect.provide(ask("x"), model.layer)
      expect(yield* model.remaining).toBe(1)
      expect(String(Cause.squash(yield* Effect.flip(Effect.sandbox(model.assertConsumed))))).toContain("1 of 2 entries")
      const shared = yield* ScriptedModel.Requests.use(({ requests }) => requests).pipe(
        Effect.provide(Layer.fresh(model.layer))
      )
      expect(shared).toHaveLength(1)
    })
  )
})

describe("PairingChecker", () => {
  const user = Prompt.makeMessage("user", { content: [Prompt.makePart("text", { text: "hi" })] })
  const toolCall = (id: string, name = "look", providerExecuted = false) =>
    Prompt.makePart("tool-call", { id, name, params: {}, providerExecuted })
  const result = (id: string, name = "look", providerExecuted = false) =>
    Prompt.makePart("tool-result", { id, name, isFailure: false, result: 1, providerExecuted })
  const assistant = (...content: ReadonlyArray<Prompt.AssistantMessagePart>) =>
    Prompt.makeMessage("assistant", { content })
  const tool = (...content: ReadonlyArray<Prompt.ToolMessagePart>) => Prompt.makeMessage("tool", { content })
  const plain = (text: string) => Prompt.makePart("text", { text })
  const thought = Prompt.makePart("reasoning", { text: "hm" })
  const of = (...messages: ReadonlyArray<Prompt.Message>) => PairingChecker.violations(messages).join("; ")

  it("takes what providers take", () => {
    expect(of(user, assistant(thought, plain("a"), toolCall("1"), toolCall("2")), tool(result("1"), result("2")))).toBe(
      ""
    )
    expect(of(user, assistant(toolCall("s", "web.search", true), result("s", "web.search", true), plain("a")))).toBe("")
    expect(PairingChecker.violations([user, assistant(toolCall("1"))], { open: true })).toEqual([])
  })

  it("K1 wants exactly the results, in order, in the next message", () => {
    expect(of(user, assistant(toolCall("1")))).toContain('the calls ["1"] have no results')
    expect(of(user, assistant(toolCall("1")), user, tool(result("1")))).toContain("have no results in the next message")
    expect(of(assistant(toolCall("1"), toolCall("2")), tool(result("2"), result("1")))).toContain("are followed by")
    expect(of(assistant(toolCall("1"), toolCall("2")), tool(result("1")))).toContain("are followed by")
  })

  it("K2 wants a call for each result and unique ids", () => {
    expect(of(user, tool(result("1")))).toContain("the result 1 has no call")
    expect(of(assistant(toolCall("1")), tool(result("1"), result("x")))).toContain("the result x has no call")
    const round = [assistant(toolCall("1")), tool(result("1"))]
    expect(of(...round, ...round)).toContain("the id 1 is taken")
    expect(of(assistant(toolCall("")), tool(result("")))).toContain("has an empty id")
    expect(of(assistant(toolCall("1")), tool(result("1", "other")))).toContain("is named other")
    expect(of(assistant(result("s", "search", true)))).toContain("the result s has no call")
  })

  it("K3 wants text in every text", () => {
    expect(of(assistant(plain(" \n")))).toContain("a text is empty")
    expect(of(assistant())).toContain("it has no content")
    expect(of(Prompt.makeMessage("system", { content: "" }))).toContain("its text is empty")
  })

  it("K4 wants well-formed Unicode everywhere", () => {
    expect(of(assistant(plain("a\uD800")))).toContain("not well-formed")
    expect(
      of(
        user,
        assistant(
          Prompt.makePart("tool-call", { id: "1", name: "look", params: { a: ["\uDC00"] }, providerExecuted: false })
        ),
        tool(result("1"))
      )
    ).toContain("not well-formed")
  })

  it("K5 wants something after reasoning", () => {
    expect(of(assistant(plain("a"), thought))).toContain("ends with reasoning")
  })

  it("K6 wants valid names and no approval parts", () => {
    expect(of(assistant(toolCall("1", "a b")), tool(result("1", "a b")))).toContain("a b is no valid name")
    const approval = Prompt.makePart("tool-approval-request", { approvalId: "a", toolCallId: "1" })
    expect(of(assistant(plain("a"), approval))).toContain("an approval part is sent")
  })
})
