import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import { TestClock } from "effect/testing"
import * as Agent from "../src/Agent.ts"
import { CheckpointStore } from "../src/CheckpointStore.ts"
import * as Guard from "../src/Guard.ts"
import * as MemoryStore from "../src/MemoryStore.ts"
import * as Run from "../src/Run.ts"
import type { RunEvent } from "../src/RunEvent.ts"
import { ToolContext } from "../src/ToolContext.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"
import * as YieldingStore from "../src/testing/YieldingStore.ts"
import { agentOf, during, guard, journal, scene, settled, status, steady, type WorldOptions } from "./support/turns.ts"

const { after, call, calls, reasoning, reply, text } = ScriptedModel
const input = { runId: "r", task: "go" }

describe("appends", () => {
  /** How many appends these turns cost, beyond those of a Run that answers at once. */
  const cost = (turns: ReadonlyArray<ScriptedModel.Entry>, options: WorldOptions = {}) =>
    Effect.gen(function* () {
      const counted = { appends: 0 }
      const wrap = (store: CheckpointStore["Service"]) => {
        const inner = options.wrap === undefined ? store : options.wrap(store)
        const append: typeof inner.append = (request) =>
          Effect.suspend(() => {
            counted.appends++
            return inner.append(request)
          })
        return { ...inner, append }
      }
      const body = () =>
        Effect.gen(function* () {
          const run = during(Run.start(yield* agentOf(), input), "1 minute")
          expect(yield* run).toMatchObject({ _tag: "Completed", output: "done" })
        })
      yield* scene([...turns, text("done")], body, { ...options, wrap })
      return counted.appends - 2 // TurnStarted of the answer, RunFinished
    })

  const look = call("look", { at: 1 })
  const save = call("save", { text: "a" })
  const saves = (n: number) => calls(Array.from({ length: n }, () => ["save", { text: "a" }] as const))
  const looks = (n: number) => calls(Array.from({ length: n }, () => ["look", { at: 1 }] as const))
  const asynchronous = guard(() => Effect.succeed(Guard.allow))
  const synchronous = guard(() => Guard.allow)

  it.effect.each([
    ["no turn but the answer", [], {}, 0],
    ["a readonly turn", [look], {}, 1],
    ["a readonly turn of 5 calls", [looks(5)], {}, 1],
    ["three readonly turns", [look, look, look], {}, 3],
    ["a turn with one effect", [save], {}, 2],
    ["a serial batch of 2 effects", [saves(2)], {}, 3],
    ["a serial batch of 5 effects", [saves(5)], {}, 6],
    [
      "an effect between readonly calls",
      [
        calls([
          ["look", { at: 1 }],
          ["save", { text: "a" }]
        ])
      ],
      {},
      2
    ],
    ["a synchronous guard", [save], { guards: [synchronous] }, 2],
    ["an asynchronous guard after an effect", [save], { guards: [asynchronous] }, 3],
    ["an asynchronous guard after 5 effects", [saves(5)], { guards: [asynchronous] }, 7],
    ["an asynchronous guard without effects", [look], { guards: [asynchronous] }, 1],
    [
      "a readonly call after an effect in one reply",
      [
        calls([
          ["save", { text: "a" }],
          ["look", { at: 1 }]
        ])
      ],
      {},
      3
    ],
    ["a store that yields", [saves(2)], { wrap: YieldingStore.make }, 3]
  ] as const)("SPEC 6: %s", ([, turns, options, expected]) =>
    Effect.map(cost(turns, options), (appends) => expect(appends).toBe(expected))
  )

  it.effect.each([0, 100])(
    "SPEC 6: an event waits at most 250 ms for its append while a slow readonly tool runs (from %i ms on)",
    (at) =>
      scene(
        [after(at, look), text("done")],
        ({ memory }) =>
          Effect.gen(function* () {
            const fiber = yield* Effect.forkChild(Run.start(yield* agentOf(), input))
            yield* settled
            yield* TestClock.adjust(at + 249)
            expect((yield* memory.head("r"))?.seq).toBe(4)
            yield* TestClock.adjust(1)
            expect((yield* memory.head("r"))?.seq).toBe(5)
            const stored = yield* memory.read("r", { after: 4, limit: 9 })
            expect(stored.map(({ body }) => JSON.parse(body)._tag)).toEqual(["TurnCompleted"])
            yield* TestClock.adjust("10 seconds")
            expect(fiber.pollUnsafe()).toBeDefined()
          }),
        { handlers: { look: () => Effect.delay(Effect.succeed({ seen: 1 }), "10 seconds") } }
      )
  )
})

describe("many Runs in one runtime", () => {
  const Echo = Tool.make("echo", {
    parameters: Schema.Struct({ text: Schema.String }),
    success: Schema.Struct({ text: Schema.String })
  })
  const Fetch = Echo.annotate(Tool.Readonly, true)
  const Kit = Toolkit.make(
    Echo,
    Tool.make("fetch", { parameters: Fetch.parametersSchema, success: Fetch.successSchema }).annotate(
      Tool.Readonly,
      true
    )
  )
  const count = 200
  const canary = (i: number) => `canary-${String(i).padStart(3, "0")}`
  const canaries = (value: unknown) => [...new Set(JSON.stringify(value).match(/canary-\d{3}/g))]

  it.effect(
    "200 interleaved Runs see nothing of each other in requests, arguments, results, contexts, events or streams",
    () =>
      Effect.gen(function* () {
        const order: Array<string> = []
        const wrong: Array<unknown> = []
        const only = (what: unknown) => {
          const found = canaries(what)
          if (found.length !== 1) wrong.push(what)
          return found[0] ?? "none"
        }
        const script: ScriptedModel.Script = ({ messages }) => {
          const mine = only(messages)
          order.push(mine)
          const turn = messages.filter(({ role }) => role === "assistant").length
          if (turn === 3) return text(`done ${mine}`)
          return reply([
            reasoning(`thinking of ${mine}`),
            calls([
              ["echo", { text: `${mine} ${turn}` }, `call-${turn}`],
              ["fetch", { text: mine }]
            ])
          ])
        }
        const handle = ({ text }: { readonly text: string }) =>
          Effect.gen(function* () {
            const context = yield* ToolContext
            for (let i = 0; i < (context.turn * 7 + text.length) % 5; i++) yield* Effect.yieldNow
            only([context, text])
            return { text: `${text} ${context.principal?.id} ${context.session} ${context.idempotencyKey}` }
          })
        const model = yield* ScriptedModel.make(script)
        const store = YieldingStore.make(yield* MemoryStore.make)
        const agent = Agent.make("echoing", { instructions: "Echo.", tools: [Kit], concurrency: 2 })
        const Live = Layer.mergeAll(
          model.layer,
          Layer.succeed(CheckpointStore, store),
          Kit.toLayer({ echo: handle, fetch: handle })
        )
        const one = (i: number) =>
          Effect.gen(function* () {
            const mine = canary(i)
            const started = { runId: mine, task: mine, session: mine, principal: { id: mine } }
            const updates = yield* Stream.runCollect(Run.stream(agent, started))
            expect(canaries(updates)).toEqual([mine])
            expect(updates.at(-1)).toMatchObject({
              _tag: "Ended",
              outcome: { _tag: "Completed", output: `done ${mine}` }
            })
            const events = yield* journal(mine)
            expect(canaries(events)).toEqual([mine])
            const results = events.flatMap((event) => (event._tag === "ToolCallCompleted" ? [event] : []))
            expect(results.map(({ callId }) => callId).toSorted()).toEqual([
              "t1.0",
              "t1.1",
              "t2.0",
              "t2.1",
              "t3.0",
              "t3.1"
            ])
            for (const { callId, result } of results) {
              expect(JSON.stringify(result)).toContain(`${mine} ${mine} ${mine}/${callId}`)
            }
          })
        const all = Effect.forEach(
          Array.from({ length: count }, (_, i) => i),
          one,
          { concurrency: "unbounded", discard: true }
        )
        yield* Effect.provide(all, Live)
        expect(wrong).toEqual([])
        expect(order).toHaveLength(count * 4)
        const switches = order.filter((mine, i) => i > 0 && mine !== order[i - 1]).length
        expect(switches).toBeGreaterThan(count * 2)
      }),
    120_000
  )
})

describe("determinism", () => {
  const metadata = { test: { signature: "s" } }
  const script: ReadonlyArray<ScriptedModel.Entry> = [
    reply([
      { type: "response-metadata", id: "id", modelId: "answering" },
      reasoning("hm", metadata),
      text("first"),
      calls([
        ["look", { at: 1 }],
        ["save", { text: "a" }],
        ["lock", {}]
      ])
    ]),
    status(503),
    after("3 seconds", reply([{ type: "text", text: "blank?", metadata }, call("look", { at: 2 }, "")])),
    reply([]),
    text("cut", { finish: "length" }),
    after("2 seconds", text("done"))
  ]

  /** Everything that may differ between two equal Runs. */
  const volatile = new Set(["at", "endedAt", "firstPartAt", "startedAt", "owner"])
  const stable = (events: ReadonlyArray<RunEvent>, ...more: ReadonlyArray<string>) =>
    events.map((event) =>
      JSON.parse(JSON.stringify(event), (key, value: unknown) =>
        volatile.has(key) || more.includes(key) ? undefined : value
      )
    )

  const run = (options: { readonly stream?: boolean } = {}, world: WorldOptions = {}) =>
    scene(
      script,
      () =>
        Effect.gen(function* () {
          const agent = yield* agentOf(options)
          const outcome = yield* during(Run.start(agent, input), "10 seconds")
          return { outcome, events: yield* journal("r") }
        }).pipe(Effect.provide(steady)),
      world
    )

  it.effect("the same script twice gives equal journals but for times and owner", () =>
    Effect.gen(function* () {
      const first = yield* run()
      yield* TestClock.adjust("1 day")
      const second = yield* run({}, { wrap: YieldingStore.make })
      expect(first.events).not.toEqual(second.events)
      expect(stable(second.events)).toEqual(stable(first.events))
      expect(second.outcome).toEqual(first.outcome)
      expect(first.events.length).toBeGreaterThan(15)
    })
  )

  it.effect("streaming and not streaming give the same journal but for times and the stream flag", () =>
    Effect.gen(function* () {
      const streamed = yield* run()
      const whole = yield* run({ stream: false })
      expect(stable(whole.events)).not.toEqual(stable(streamed.events))
      expect(stable(whole.events, "stream")).toEqual(stable(streamed.events, "stream"))
      expect(whole.outcome).toEqual(streamed.outcome)
    })
  )
})
