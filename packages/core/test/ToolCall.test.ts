import { describe, expect, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as AiError from "effect/ai/AiError"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Agent from "../src/Agent.ts"
import type { CheckpointStore } from "../src/CheckpointStore.ts"
import * as Guard from "../src/Guard.ts"
import * as MemoryStore from "../src/MemoryStore.ts"
import * as Run from "../src/Run.ts"
import * as RunState from "../src/RunState.ts"
import { StoreUnavailable } from "../src/RunError.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"
import * as WrappedStore from "../src/testing/WrappedStore.ts"
import { ToolContext } from "../src/ToolContext.ts"
import * as ToolError from "../src/ToolError.ts"
import * as ToolOptions from "../src/ToolOptions.ts"
import {
  agentOf,
  during,
  eventsOf,
  handled,
  type Handler,
  Idempotent,
  kinds,
  lived,
  only,
  outcomeOf,
  paired,
  plugged,
  ran,
  Readonly,
  settled,
  storeLayer,
  stores,
  Work
} from "./support/tools.ts"

const { call, calls, text } = ScriptedModel

const ok = () => Effect.succeed("ok")

/** Records when each execution began and ended, in virtual ms. */
const timed = () => {
  const spans: Array<{ readonly n: number; readonly from: number; to: number }> = []
  let now = 0
  let peak = 0
  const handler = (takes: (n: number) => Duration.Input) =>
    Effect.fnUntraced(function* ({ n = 0 }: { readonly n?: number }) {
      const span = { n, from: yield* Clock.currentTimeMillis, to: Number.NaN }
      spans.push(span)
      peak = Math.max(peak, ++now)
      yield* Effect.sleep(takes(n))
      now--
      span.to = yield* Clock.currentTimeMillis
      return n
    })
  return { handler, spans, peak: () => peak }
}

const eight = [calls(Array.from({ length: 8 }, (_, n) => call("work", { n }))), text("done")]

describe("ToolCall", () => {
  const Double = Tool.make("double", {
    parameters: Schema.Struct({ n: Schema.FiniteFromString }),
    success: Schema.Number
  }).annotate(Tool.Idempotent, true)

  it.effect.each(["live", "die-before", "die-after"] as const)(
    "RI-036 arguments are decoded exactly once when the append of the start does '%s'",
    (fate) =>
      Effect.gen(function* () {
        const seen: Array<unknown> = []
        const layer = Toolkit.make(Double).toLayer({ double: ({ n }) => Effect.sync(() => (seen.push(n), n * 2)) })
        const agent = Agent.make("a", { instructions: "i", tools: [Double] })
        const model = yield* ScriptedModel.make(({ results }) =>
          results.length > 0 ? text("done") : call("double", { n: "21" })
        )
        const store = yield* MemoryStore.make
        const process = () =>
          lived(
            store,
            () => Run.start(agent, { runId: "r", task: "go" }).pipe(Effect.provide([model.layer, layer])),
            ({ events }) =>
              Effect.sync(() => (events.some((line) => line.includes("ToolCallStarted")) && !died++ ? fate : "live"))
          )
        let died = 0
        const first = yield* process()
        expect(first === undefined).toBe(fate !== "live")
        const last = first ?? (yield* process())
        expect(last).toMatchObject({ _tag: "Success", value: { _tag: "Completed" } })
        expect(seen).toEqual([21])
        const events = yield* Effect.provide(eventsOf(), storeLayer(store))
        expect(only(events, "ToolCallCompleted")).toMatchObject([{ result: 42, ending: "executed" }])
        expect(JSON.stringify(only(events, "TurnCompleted")[0]?.reply)).toContain('{"n":"21"}')
        yield* Effect.provide(paired(), storeLayer(store))
      })
  )

  it.effect("RI-036 edited arguments are decoded once, and the journal keeps both, encoded", () =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      const layer = Toolkit.make(Double).toLayer({ double: ({ n }) => Effect.sync(() => (seen.push(n), n * 2)) })
      const agent = Agent.make("a", { instructions: "i", tools: [Double.setNeedsApproval(true)] })
      const model = yield* ScriptedModel.make([call("double", { n: "21" }), text("done")])
      const program = Effect.gen(function* () {
        yield* Run.start(agent, { runId: "r", task: "go" })
        const [wait] = (yield* Run.get("r")).waiting
        const answer = { _tag: "Approve", digest: wait?.digest ?? "", edited: { n: "5" } } as const
        yield* Run.answer(agent, { runId: "r", callId: "t1.0", answer, by: "ann" })
        yield* Run.resume(agent, { runId: "r" })
        expect(seen).toEqual([5])
        expect(only(yield* eventsOf(), "ToolCallStarted")).toMatchObject([{ arguments: { n: "5" } }])
      })
      yield* Effect.provide(program, [model.layer, layer, MemoryStore.layer])
    })
  )

  it.effect.each(stores)(
    "RI-144 eight calls with concurrency 2 on %s: at most two at once, results in call order",
    ([, make]) =>
      Effect.gen(function* () {
        const { handler, peak, spans } = timed()
        const store = yield* make
        // Later calls are faster, so they end out of order.
        const run = yield* ran({
          handler: handler((n) => `${10 - n} seconds`),
          script: eight,
          agent: { concurrency: 2 },
          store,
          time: "1 minute"
        })
        expect(outcomeOf(run)._tag).toBe("Completed")
        expect(peak()).toBe(2)
        expect(spans).toHaveLength(8)
        expect(run.completed.map(({ callId }) => callId)).not.toEqual([0, 1, 2, 3, 4, 5, 6, 7].map((n) => `t1.${n}`))
        expect(run.results.map(({ result }) => result)).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
      })
  )

  it.effect("RI-144 by default calls run one after the other, in call order", () =>
    Effect.gen(function* () {
      const { handler, peak, spans } = timed()
      const run = yield* ran({ handler: handler(() => "1 second"), script: eight, time: "10 seconds" })
      expect(outcomeOf(run)._tag).toBe("Completed")
      expect(peak()).toBe(1)
      expect(spans.map(({ from, n, to }) => [n, from, to])).toEqual(
        [0, 1, 2, 3, 4, 5, 6, 7].map((n) => [n, n * 1000, n * 1000 + 1000])
      )
    })
  )

  it.effect("RI-144 a call of a sequential tool never overlaps another one, whatever the concurrency", () =>
    Effect.gen(function* () {
      const { handler, peak, spans } = timed()
      const Alone = Tool.make("alone", { parameters: Work.parametersSchema, success: Schema.Unknown }).annotate(
        ToolOptions.Sequential,
        true
      )
      const one = handler(() => "1 second")
      const layer = Layer.merge(handled(one), Toolkit.make(Alone).toLayer({ alone: one }))
      const names = ["work", "work", "alone", "alone", "work", "work"]
      const model = yield* ScriptedModel.make([calls(names.map((name, n) => call(name, { n }))), text("done")])
      const agent = Agent.make("a", { instructions: "i", tools: [Work, Alone], concurrency: 4 })
      yield* agent.records
      yield* Run.start(agent, { runId: "r", task: "go" }).pipe(
        during("10 seconds"),
        Effect.provide([model.layer, layer, MemoryStore.layer])
      )
      expect(spans.map(({ from, n }) => [n, from])).toEqual([
        [0, 0],
        [1, 0],
        [2, 1000],
        [3, 2000],
        [4, 3000],
        [5, 3000]
      ])
      expect(peak()).toBe(2)
    })
  )

  it.effect.each([1, 2])(
    "RI-144 after a fatal third call the calls behind it are 'not-executed', concurrency %s",
    (concurrency) =>
      Effect.gen(function* () {
        const seen: Array<number> = []
        const handler = ({ n = 0 }: { readonly n?: number }) =>
          Effect.suspend(() => (seen.push(n), n === 2 ? ToolError.fatal("the disk is gone") : Effect.succeed(n)))
        const run = yield* ran({ handler, script: eight.slice(0, 1), agent: { concurrency } })
        const endings = run.completed.toSorted((a, b) => a.callId.localeCompare(b.callId)).map(({ ending }) => ending)
        expect(endings.slice(-4)).toEqual(Array(4).fill("not-executed"))
        if (concurrency === 1) expect(endings).toEqual([...Array(3).fill("executed"), ...Array(5).fill("not-executed")])
        expect(endings).toHaveLength(8)
        expect(seen).toHaveLength(endings.filter((ending) => ending === "executed").length)
        expect(kinds(run.events).at(-1)).toBe("RunFinished")
      })
  )

  describe("retries and time limits", () => {
    const flaky = (failures: number, error: Effect.Effect<never, unknown> = ToolError.retryable("not yet")) => {
      const tries: Array<{ readonly at: number; readonly try: number; readonly key: string }> = []
      const handler = () =>
        Effect.gen(function* () {
          const context = yield* ToolContext
          tries.push({ at: yield* Clock.currentTimeMillis, try: context.try, key: context.idempotencyKey })
          return tries.length <= failures ? yield* error : "ok"
        })
      return { handler, tries }
    }

    it.effect.each([
      ["readonly", Readonly],
      ["idempotent", Idempotent]
    ] as const)("RI-050 Retryable of a %s tool is retried after 1 s and 2 s, under one key", ([, tool]) =>
      Effect.gen(function* () {
        const { handler, tries } = flaky(2)
        const run = yield* ran({ tool, handler, time: "1 minute" })
        expect(tries.map(({ at }) => at)).toEqual([0, 1000, 3000])
        expect(tries.map((one) => one.try)).toEqual([1, 2, 3])
        expect(tries.map(({ key }) => key)).toEqual(Array(3).fill("r/t1.0"))
        expect(run.completed).toMatchObject([{ isFailure: false, ending: "executed", result: "ok", tries: 3 }])
      })
    )

    it.effect("a third failure in a row is the model's to know", () =>
      Effect.gen(function* () {
        const { handler, tries } = flaky(9)
        const run = yield* ran({ tool: Idempotent, handler, time: "1 minute" })
        expect(tries).toHaveLength(3)
        expect(run.completed).toMatchObject([
          { isFailure: true, ending: "executed", result: { error: "not yet" }, tries: 3 }
        ])
      })
    )

    it.effect("L3 Retryable of an unsafe tool is never retried", () =>
      Effect.gen(function* () {
        const { handler, tries } = flaky(1)
        const run = yield* ran({ handler, time: "1 minute" })
        expect(tries).toHaveLength(1)
        expect(run.completed).toMatchObject([{ isFailure: true, ending: "executed", result: { error: "not yet" } }])
        expect(outcomeOf(run)._tag).toBe("Completed")
      })
    )

    it.effect("an AiError of a handler is retried if it is retryable, and only then", () =>
      Effect.gen(function* () {
        const failing = (reason: AiError.AiErrorReason) =>
          flaky(1, Effect.fail(AiError.make({ module: "m", method: "f", reason })))
        const limited = failing(new AiError.RateLimitError({}))
        yield* ran({ tool: Readonly, handler: limited.handler, time: "1 minute" })
        expect(limited.tries.map(({ at }) => at)).toEqual([0, 1000])
        const rejected = failing(new AiError.InvalidRequestError({ description: "no" }))
        const run = yield* ran({ tool: Readonly, handler: rejected.handler, time: "1 minute" })
        expect(rejected.tries).toHaveLength(1)
        expect(run.completed).toMatchObject([{ isFailure: true, error: "InvalidRequestError" }])
      })
    )

    it.effect(
      "RI-050 an idempotent call killed after its effect runs again under its key; an equal call has its own",
      () =>
        Effect.gen(function* () {
          const paid: Array<string> = []
          const model = yield* ScriptedModel.make([call("work", { n: 1 }), call("work", { n: 1 }), text("done")])
          const store = yield* MemoryStore.make
          const process = (dies: boolean) =>
            lived(store, (self) => {
              const handler = () =>
                Effect.gen(function* () {
                  paid.push((yield* ToolContext).idempotencyKey)
                  return dies ? yield* self.die : "ok"
                })
              return Run.start(agentOf(Idempotent), { runId: "r", task: "go" }).pipe(
                Effect.provide([model.layer, handled(handler)])
              )
            })
          expect(yield* process(true)).toBeUndefined()
          expect(yield* process(false)).toMatchObject({ _tag: "Success", value: { _tag: "Completed" } })
          expect(paid).toEqual(["r/t1.0", "r/t1.0", "r/t2.0"])
          const started = only(yield* Effect.provide(eventsOf(), storeLayer(store)), "ToolCallStarted")
          expect(started.map(({ key }) => key)).toEqual(paid)
        })
    )

    const limited = (tool: Work) => tool.annotate(ToolOptions.Timeout, "5 seconds")
    const hanging = () => {
      const aborted: Array<boolean> = []
      const handler = () =>
        Effect.promise<never>(
          (signal) =>
            new Promise(() => {
              const index = aborted.push(false) - 1
              signal.addEventListener("abort", () => (aborted[index] = true))
            })
        )
      return { aborted, handler }
    }

    it.effect.each([
      ["an unsafe", limited(Work), "unknown", /did not finish within 5s; outcome: unknown/],
      ["an idempotent", limited(Idempotent), "executed", /did not finish within 5s"/],
      ["a readonly", limited(Readonly), "executed", /did not finish within 5s"/]
    ] as const)("a time limit interrupts the handler of %s tool, which is not tried again", ([, tool, ending, says]) =>
      Effect.gen(function* () {
        const { aborted, handler } = hanging()
        const run = yield* ran({ tool, handler, time: "6 seconds" })
        expect(aborted).toEqual([true])
        expect(outcomeOf(run)._tag).toBe("Completed")
        expect(run.completed).toMatchObject([{ isFailure: true, error: "Timeout", ending }])
        expect(JSON.stringify(run.results[0]?.result)).toMatch(says)
      })
    )

    it.effect("a time limit is retried where RetryTimeout says so, but never for an unsafe tool", () =>
      Effect.gen(function* () {
        const again = hanging()
        const tool = limited(Idempotent).annotate(ToolOptions.RetryTimeout, true)
        const run = yield* ran({ tool, handler: again.handler, time: "1 minute" })
        expect(again.aborted).toEqual([true, true, true])
        expect(run.completed).toMatchObject([{ isFailure: true, error: "Timeout", tries: 3 }])
        const once = hanging()
        const unsafe = limited(Work).annotate(ToolOptions.RetryTimeout, true)
        yield* ran({ tool: unsafe, handler: once.handler, time: "1 minute" })
        expect(once.aborted).toEqual([true])
      })
    )

    it.effect("without an annotation the time limit is 30 s", () =>
      Effect.gen(function* () {
        const run = yield* ran({ handler: () => Effect.sleep("29 seconds"), time: "1 minute" })
        expect(run.completed).toMatchObject([{ isFailure: false }])
        const late = yield* ran({ handler: () => Effect.sleep("31 seconds"), time: "1 minute" })
        expect(late.completed).toMatchObject([{ isFailure: true, error: "Timeout" }])
      })
    )

    it.effect("L2 interrupting the driving fiber interrupts the handler and says nothing about its outcome", () =>
      Effect.gen(function* () {
        const { aborted, handler } = hanging()
        const store = storeLayer(yield* MemoryStore.make)
        const model = yield* ScriptedModel.make([call("work", {})])
        const layer = Layer.mergeAll(model.layer, handled(handler), store)
        const agent = agentOf(Work)
        yield* agent.records
        const start = Run.start(agent, { runId: "r", task: "go" }).pipe(Effect.provide(layer))
        const fiber = yield* Effect.forkChild(start, { startImmediately: true })
        yield* settled
        expect(aborted).toEqual([false])
        yield* Fiber.interrupt(fiber)
        expect(Exit.hasInterrupts(yield* Fiber.await(fiber))).toBe(true)
        expect(aborted).toEqual([true])
        expect(kinds(yield* Effect.provide(eventsOf(), store)).at(-1)).toBe("ToolCallStarted")
        expect(yield* start).toMatchObject({ _tag: "Suspended", waiting: [{ kind: "in-doubt" }] })
      })
    )

    it.effect("L4 Fatal ends the Run with the tool's own data, and the same again fails the same", () =>
      Effect.gen(function* () {
        const store = yield* MemoryStore.make
        const handler = () => ToolError.fatal("the account is closed", { account: 7 })
        const run = yield* ran({ handler, script: [call("work", {})], store })
        const fatal = {
          _tag: "Fatal",
          reason: { _tag: "ToolFatal", tool: "work", detail: "the account is closed", data: { account: 7 } }
        }
        expect(Exit.isFailure(run.exit) && run.exit.cause.reasons).toMatchObject([{ _tag: "Fail", error: fatal }])
        expect(run.completed).toMatchObject([{ isFailure: true, ending: "executed", error: "Fatal" }])
        const again = yield* Effect.flip(
          Run.start(agentOf(Work), { runId: "r", task: "go" }).pipe(
            Effect.provide([ScriptedModel.layer([]), handled(handler), storeLayer(store)])
          )
        )
        expect(again).toMatchObject(fatal)
        expect(again.message).toBe("Tool work ended the Run: the account is closed")
      })
    )
  })

  describe("a store that fails", () => {
    /** A store that takes no append while `away` says so. */
    const leaving = (store: CheckpointStore["Service"], away: () => boolean): CheckpointStore["Service"] => ({
      ...store,
      append: (request) =>
        Effect.suspend(() => (away() ? Effect.fail(new StoreUnavailable({ detail: "away" })) : store.append(request)))
    })

    it.effect.each(stores)(
      "RI-134 a result that one append did not take is written by the next one, on %s",
      ([, make]) =>
        Effect.gen(function* () {
          let counter = 0
          let asked = 0
          const store = leaving(yield* make, () => counter === 1 && asked++ === 0)
          const run = yield* ran({ handler: () => Effect.sync(() => ++counter), store, time: "1 second" })
          expect(outcomeOf(run)._tag).toBe("Completed")
          expect(asked).toBeGreaterThan(1)
          expect(counter).toBe(1)
          expect(run.completed).toMatchObject([{ callId: "t1.0", result: 1 }])
          // The stored history is the one that the model saw.
          const stored = yield* Effect.provide(eventsOf(), storeLayer(store))
          const state = RunState.fromEvents(stored)
          expect(state.history.slice(0, 3)).toEqual(run.requests[1]?.messages.slice(1))
        })
    )

    it.effect(
      "RI-134 a store that stays away after the tool rests the Run; its result is written at the next chance of this process",
      () =>
        Effect.gen(function* () {
          let counter = 0
          let away = false
          const store = leaving(yield* MemoryStore.make, () => away)
          const handler = () =>
            Effect.sync(() => {
              away = true
              return ++counter
            })
          const first = yield* ran({ handler, store, script: [call("work", {})], time: "1 minute" })
          expect(Exit.isFailure(first.exit) && first.exit.cause.reasons).toMatchObject([
            { error: { _tag: "Retryable", reason: { _tag: "StoreUnavailable" } } }
          ])
          expect(kinds(first.events).at(-1)).toBe("ToolCallStarted")
          away = false
          const again = yield* ran({ handler, store, script: [text("done")], time: "1 minute" })
          expect(outcomeOf(again)).toMatchObject({ _tag: "Completed", output: "done" })
          expect(again.completed).toMatchObject([{ ending: "executed", result: 1 }])
          expect(counter).toBe(1)
        })
    )
  })

  describe("what a tool says about itself", () => {
    const known = { Readonly: Tool.Readonly, Idempotent: Tool.Idempotent, Destructive: Tool.Destructive }
    const set = (flags: ReadonlyArray<readonly [keyof typeof known, boolean]>) =>
      flags.reduce((tool, [flag, value]) => tool.annotate(known[flag], value), Work)

    it.effect.each([
      ["nothing", [], "unsafe", false],
      ["Readonly", [["Readonly", true]], "readonly", false],
      ["not Readonly", [["Readonly", false]], "unsafe", false],
      ["Idempotent", [["Idempotent", true]], "idempotent", false],
      [
        "Idempotent and Readonly",
        [
          ["Idempotent", true],
          ["Readonly", true]
        ],
        "readonly",
        false
      ],
      ["Destructive", [["Destructive", true]], "unsafe", true],
      ["not Destructive", [["Destructive", false]], "unsafe", false],
      [
        "Idempotent and Destructive",
        [
          ["Idempotent", true],
          ["Destructive", true]
        ],
        "idempotent",
        true
      ],
      [
        "Readonly and Destructive",
        [
          ["Destructive", true],
          ["Readonly", true]
        ],
        "readonly",
        false
      ]
    ] as const)("a tool that says %s: only explicit annotations count, and Readonly wins", ([, flags, effect, asks]) =>
      Effect.gen(function* () {
        const run = yield* ran({
          tool: set(flags),
          handler: ok,
          script: [call("work", {}), ...(asks ? [] : [text("done")])]
        })
        expect(only(run.events, "RunStarted")[0]?.tools["work"]?.effect).toBe(effect)
        expect(outcomeOf(run)._tag).toBe(asks ? "Suspended" : "Completed")
        const started = only(run.events, "ToolCallStarted").map((event) => event.effect)
        expect(started).toEqual(asks || effect === "readonly" ? [] : [effect])
      })
    )

    const guard = (stage: Guard.Stage) =>
      plugged({
        name: "extra",
        guards: [Guard.make({ name: "extra", stage, initial: 0, fold: (n) => n, check: () => Guard.allow })]
      })
    it.effect("an explicitly Destructive tool asks unless a permissions guard decides; another guard does not", () =>
      Effect.gen(function* () {
        const tool = set([["Destructive", true]])
        const other = yield* ran({ tool, handler: ok, script: [call("work", {})], layer: guard("budget") })
        expect(outcomeOf(other)).toMatchObject({
          _tag: "Suspended",
          waiting: [{ id: "t1.0", kind: "approval", guard: "core", reason: "work is destructive" }]
        })
        const decided = yield* ran({ tool, handler: ok, layer: guard("permissions") })
        expect(outcomeOf(decided)._tag).toBe("Completed")
      })
    )

    const rules: ReadonlyArray<readonly [string, Tool.NeedsApproval<Work["parametersSchema"]>, string | undefined]> = [
      ["true", true, "work needs approval"],
      ["false", false, undefined],
      ["a function that says yes", ({ n }) => n === 1, "work needs approval"],
      ["a function that says no", ({ n }) => n === 2, undefined],
      ["an Effect that says yes", () => Effect.succeed(true), "work needs approval"],
      ["an Effect that says no", () => Effect.succeed(false), undefined],
      ["a function of what was said", (_, { messages }) => messages.length === 2, "work needs approval"],
      ["a function of the call id", (_, { toolCallId }) => toolCallId === "t1.0", "work needs approval"],
      [
        "a function that throws",
        () => {
          throw new Error("no rule")
        },
        "the approval rule of work failed"
      ],
      ["an Effect that dies", () => Effect.die("no rule"), "the approval rule of work failed"]
    ]
    it.effect.each(rules)("needsApproval is %s", ([, needsApproval, reason]) =>
      Effect.gen(function* () {
        let executions = 0
        const asked = yield* ran({
          tool: Work.setNeedsApproval(needsApproval),
          handler: () => Effect.sync(() => ++executions),
          script: [call("work", { n: 1 }), ...(reason === undefined ? [text("done")] : [])]
        })
        const outcome = outcomeOf(asked)
        expect(outcome._tag === "Suspended" ? outcome.waiting.map((wait) => wait.reason) : []).toEqual(
          reason === undefined ? [] : [reason]
        )
        expect(executions).toBe(reason === undefined ? 1 : 0)
      })
    )

    const Ask = ToolOptions.external(
      Tool.make("ask", { success: Schema.Union([Schema.Boolean, Schema.Finite, Schema.String]) })
    )
    it.effect.each([false, 0, "", "yes"])(
      "RI-105 an external tool has no handler; the value %j from outside is its result",
      (value) =>
        Effect.gen(function* () {
          const agent = Agent.make("asker", { instructions: "i", tools: [Ask] })
          const model = yield* ScriptedModel.make([call("ask", {}), text("done")])
          const program = Effect.gen(function* () {
            const asked = yield* Run.start(agent, { runId: "r", task: "go" })
            expect(asked).toMatchObject({ _tag: "Suspended", waiting: [{ id: "t1.0", kind: "external", name: "ask" }] })
            const answer = (value: Schema.Json) =>
              Run.answer(agent, { runId: "r", callId: "t1.0", answer: { _tag: "Value", value }, by: "ann" })
            expect((yield* Effect.flip(answer({ no: 1 }))).reason._tag).toBe("AnswerInvalid")
            yield* answer(value)
            expect(yield* Run.resume(agent, { runId: "r" })).toMatchObject({ _tag: "Completed" })
            yield* paired()
            expect(only(yield* eventsOf(), "ToolCallCompleted")).toMatchObject([
              { ending: "answered", isFailure: false, result: value }
            ])
          })
          yield* Effect.provide(program, [model.layer, MemoryStore.layer])
        })
    )

    it.effect("an external tool that needs approval asks first and then waits for its value", () =>
      Effect.gen(function* () {
        const agent = Agent.make("asker", {
          instructions: "i",
          tools: [ToolOptions.external(Work.setNeedsApproval(true))]
        })
        const model = yield* ScriptedModel.make([call("work", {}), text("done")])
        const program = Effect.gen(function* () {
          yield* Run.start(agent, { runId: "r", task: "go" })
          const [wait] = (yield* Run.get("r")).waiting
          const answer = { _tag: "Approve", digest: wait?.digest ?? "" } as const
          yield* Run.answer(agent, { runId: "r", callId: "t1.0", answer, by: "ann" })
          expect(yield* Run.resume(agent, { runId: "r" })).toMatchObject({
            _tag: "Suspended",
            waiting: [{ id: "t1.0", kind: "external" }]
          })
          yield* Run.answer(agent, { runId: "r", callId: "t1.0", answer: { _tag: "Value", value: 1 }, by: "ann" })
          expect(yield* Run.resume(agent, { runId: "r" })).toMatchObject({ _tag: "Completed" })
          expect(only(yield* eventsOf(), "ToolCallCompleted")).toMatchObject([{ ending: "answered", result: 1 }])
        })
        yield* Effect.provide(program, [model.layer, MemoryStore.layer])
      })
    )
  })

  describe("what a handler gets", () => {
    it.effect("ToolContext says which call it serves, without being declared", () =>
      Effect.gen(function* () {
        const seen: Array<unknown> = []
        const handler = () => Effect.flatMap(ToolContext, (context) => Effect.sync(() => seen.push(context)))
        const model = yield* ScriptedModel.make([
          calls([call("work", {}), call("work", {})]),
          call("work", {}),
          text("done")
        ])
        const principal = { id: "ann", roles: ["admin"] }
        yield* Run.start(agentOf(Work), { runId: "r", task: "go", principal, session: "s" }).pipe(
          Effect.provide([model.layer, handled(handler), MemoryStore.layer])
        )
        const of = (callId: string, turn: number) => ({
          runId: "r",
          callId,
          idempotencyKey: `r/${callId}`,
          turn,
          try: 1,
          principal,
          session: "s"
        })
        expect(seen).toEqual([of("t1.0", 1), of("t1.1", 1), of("t2.0", 2)])
        expect(yield* ToolContext).toEqual({ runId: "", callId: "", idempotencyKey: "", turn: 0, try: 0 })
      })
    )

    it.effect("preliminary results reach the stream as ToolProgress, before the end of the call, and no journal", () =>
      Effect.gen(function* () {
        const handler: Handler = (_, { preliminary }) =>
          preliminary({ percent: 50 }).pipe(Effect.andThen(preliminary("nearly")), Effect.as("all"))
        const store = storeLayer(yield* MemoryStore.make)
        const model = yield* ScriptedModel.make([call("work", {}), text("done")])
        const updates = yield* Run.stream(agentOf(Work), { runId: "r", task: "go" }).pipe(
          Stream.runCollect,
          Effect.provide([model.layer, handled(handler), store])
        )
        const progress = updates.filter((update) => update._tag === "ToolProgress")
        expect(progress).toEqual([
          { _tag: "ToolProgress", callId: "t1.0", value: { percent: 50 } },
          { _tag: "ToolProgress", callId: "t1.0", value: "nearly" }
        ])
        const tags = updates.map((update) => (update._tag === "Committed" ? update.event._tag : update._tag))
        expect(tags.indexOf("ToolProgress")).toBeGreaterThan(tags.indexOf("ToolCallStarted"))
        expect(tags.lastIndexOf("ToolProgress")).toBeLessThan(tags.indexOf("ToolCallCompleted"))
        expect(JSON.stringify(yield* Effect.provide(eventsOf(), store))).not.toContain("percent")
      })
    )
  })

  describe("an agent that cannot run", () => {
    /** As JavaScript, or a cast, would do it. */
    const untyped = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
      effect as Effect.Effect<A, E, Exclude<R, Tool.Handler<"work">>>

    it.effect("a missing handler is Fatal(ToolkitInvalid) that says what to provide", () =>
      Effect.gen(function* () {
        const error = yield* untyped(Run.start(agentOf(Work), { runId: "r", task: "go" })).pipe(
          Effect.provide([ScriptedModel.layer([]), MemoryStore.layer]),
          Effect.flip
        )
        const detail = "work has no handler: provide its toolkit's layer"
        expect(error).toMatchObject({ _tag: "Fatal", reason: { _tag: "ToolkitInvalid", agent: "worker", detail } })
      })
    )

    it.effect.each([
      [{ limits: { activeTime: "soon" as "1 second" } }, "limits.activeTime must be a duration"],
      [{ timeouts: { idle: "0 seconds" } }, "timeouts.idle must be a duration longer than 0"],
      [{ concurrency: 0 }, "concurrency is 0"],
      [{ concurrency: 1.5 }, "concurrency is 1.5"],
      [{ concurrency: Number.NaN }, "concurrency is NaN"],
      [{ limits: { maxTurns: 0 } }, "limits.maxTurns is 0"],
      [{ limits: { maxTurns: -1 } }, "limits.maxTurns is -1"],
      [{ limits: { maxConsecutiveFailures: 0.5 } }, "limits.maxConsecutiveFailures is 0.5"],
      [{ limits: { maxCallsPerReply: Number.POSITIVE_INFINITY } }, "limits.maxCallsPerReply is Infinity"],
      [{ limits: { maxRecoveries: -1 } }, "limits.maxRecoveries is -1"],
      [{ limits: { activeTime: 0 } }, "limits.activeTime"],
      [{ limits: { activeTime: "-1 seconds" } }, "limits.activeTime"]
    ] as const)("%j is Fatal(ToolkitInvalid) that names the field", ([options, detail]) =>
      Effect.gen(function* () {
        const error = yield* Run.start(agentOf(Work, options), { runId: "r", task: "go" }).pipe(
          Effect.provide([ScriptedModel.layer([]), handled(ok), MemoryStore.layer]),
          Effect.flip
        )
        expect(error).toMatchObject({ _tag: "Fatal", reason: { _tag: "ToolkitInvalid" } })
        expect(error.message).toContain(detail)
      })
    )
  })

  describe("an event loop that is blocked", () => {
    /** A clock that a handler can move while no other fiber runs, as one that computes for seconds does. */
    const leaping = Effect.clockWith((clock) =>
      Effect.sync(() => {
        let leap = 0
        const now = () => clock.currentTimeMillisUnsafe() + leap
        const shifted: Clock.Clock = {
          ...clock,
          currentTimeMillisUnsafe: now,
          currentTimeMillis: Effect.sync(now),
          monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe() + BigInt(leap) * 1_000_000n,
          sleep: (duration) => clock.sleep(duration)
        }
        return { clock: Layer.succeed(Clock.Clock, shifted), block: (millis: number) => void (leap += millis) }
      })
    )

    it.effect("a lease that is nearly over is renewed before an unsafe handler starts", () =>
      Effect.gen(function* () {
        const { block, clock } = yield* leaping
        const log: Array<string> = []
        const memory = yield* Effect.provide(MemoryStore.make, clock)
        const store = WrappedStore.make(memory, (operation, name) =>
          name === "renew" || name === "append"
            ? Effect.tap(operation, () => Effect.sync(() => log.push(name)))
            : operation
        )
        const Look = Tool.make("look", { success: Schema.Number }).annotate(Tool.Readonly, true)
        const layer = Layer.merge(
          handled(() => Effect.sync(() => log.push("handler"))),
          Toolkit.make(Look).toLayer({ look: () => Effect.sync(() => (block(7000), log.push("blocked"))) })
        )
        const model = yield* ScriptedModel.make([
          calls([call("work", {}), call("look", {}), call("work", {})]),
          text("done")
        ])
        const agent = Agent.make("a", { instructions: "i", tools: [Work, Look] })
        yield* Run.start(agent, { runId: "r", task: "go" }).pipe(
          Effect.provide([model.layer, layer, storeLayer(store), clock])
        )
        const from = log.indexOf("handler")
        expect(log.slice(from - 1, from + 6)).toEqual([
          "append",
          "handler",
          "append", // the effect is committed before the next tool
          "blocked",
          "renew",
          "append",
          "handler"
        ])
      })
    )

    it.effect.each([
      ["waits on afterwards", Effect.sleep("1 second")],
      ["ends afterwards", Effect.void]
    ] as const)("a handler that blocks it for more than half a lease and %s is named in a warning", ([, then]) =>
      Effect.gen(function* () {
        const { block, clock } = yield* leaping
        const warnings: Array<string> = []
        const logger = Logger.make(({ logLevel, message }) => {
          if (logLevel === "Warn") warnings.push(String(message))
        })
        const handler = () =>
          Effect.andThen(
            Effect.sync(() => block(6000)),
            then
          )
        const model = yield* ScriptedModel.make([
          ScriptedModel.after("1 second", call("work", {})),
          ScriptedModel.after("1 second", text("done"))
        ])
        const agent = agentOf(Readonly)
        yield* agent.records
        yield* Run.start(agent, { runId: "r", task: "go" }).pipe(
          Effect.provide([model.layer, handled(handler), MemoryStore.layer, clock, Logger.layer([logger])]),
          during("10 seconds")
        )
        expect(warnings).toEqual([
          expect.stringMatching(/^Run r: the event loop was blocked for \d+ ms while work ran\. /)
        ])
      })
    )
  })
})
