import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as AiError from "effect/ai/AiError"
import * as Prompt from "effect/ai/Prompt"
import { TestClock } from "effect/testing"
import * as Guard from "../src/Guard.ts"
import * as Run from "../src/Run.ts"
import * as RunState from "../src/RunState.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"
import * as YieldingStore from "../src/testing/YieldingStore.ts"
import { agentOf, during, failure, journal, ofKind, scene, status, steady, type World, world } from "./support/turns.ts"

const { call, calls, delta, reasoning, reply, stream, text, thought } = ScriptedModel
const input = { runId: "r", task: "go" }
const reopened = { runId: "r", reopen: true }

const wireIds = (messages: ReadonlyArray<Prompt.Message>) =>
  messages.flatMap((message) =>
    message.role === "assistant"
      ? message.content.flatMap((part) => (part.type === "tool-call" ? [`call ${part.id}`] : []))
      : message.role === "tool"
        ? message.content.flatMap((part) =>
            part.type === "tool-result" ? [`result ${part.id} ${JSON.stringify(part.result)}`] : []
          )
        : []
  )
const texts = (messages: ReadonlyArray<Prompt.Message>) => JSON.stringify(messages.map(({ content }) => content))

describe("call ids", () => {
  const odd = ["call_x|fc_y", "a:b", "with some spaces", "i".repeat(300), "ключ-钥匙-🔑", "../../etc", '"quoted"\n']

  it.effect.each([true, false])("RI-067 ids are opaque: results go back under them unchanged (stream %s)", (stream) =>
    scene([calls(odd.map((id, at) => ["look", { at }, id])), text("done")], ({ model }) =>
      Effect.gen(function* () {
        const agent = yield* agentOf({ stream })
        expect(yield* Run.start(agent, input)).toMatchObject({ _tag: "Completed", output: "done" })
        const [, second] = yield* model.requests
        const expected = odd.map((id, at) => [id, { seen: at * 2 }])
        expect(second?.results.map(({ id, result }) => [id, result])).toEqual(expected)
        expect(wireIds(second?.messages ?? []).slice(0, odd.length)).toEqual(odd.map((id) => `call ${id}`))
        expect(ofKind(yield* journal("r"), "ToolCallCompleted").map(({ callId }) => callId)).toEqual(
          odd.map((_, i) => `t1.${i}`)
        )
      })
    )
  )

  it.effect("RI-067 an id that is not well-formed text is replaced, since no provider could be sent it", () =>
    scene([call("look", { at: 1 }, "a\uD800"), text("done")], ({ model }) =>
      Effect.gen(function* () {
        yield* Run.start(yield* agentOf(), input)
        expect((yield* model.requests)[1]?.results.map(({ id }) => id)).toEqual(["call_1_0"])
        yield* journal("r")
      })
    )
  )

  it.effect("RI-084 missing and duplicate ids, across turns too, become unique, and every call runs once", () => {
    const ran: Array<number> = []
    const script = [
      calls([
        ["look", { at: 1 }, ""],
        ["look", { at: 2 }, ""]
      ]),
      calls([
        ["look", { at: 3 }, "x"],
        ["look", { at: 4 }, "x"]
      ]),
      call("look", { at: 5 }, "x"),
      text("done")
    ]
    const look = ({ at }: { readonly at: number }) => Effect.sync(() => ({ seen: ran.push(at) }))
    const body = ({ model }: World) =>
      Effect.gen(function* () {
        yield* Run.start(yield* agentOf(), input)
        expect(ran).toEqual([1, 2, 3, 4, 5])
        const last = (yield* model.requests)[3]
        expect(wireIds(last?.messages ?? [])).toEqual([
          "call call_1_0",
          "call call_1_1",
          'result call_1_0 {"seen":1}',
          'result call_1_1 {"seen":2}',
          "call x",
          "call call_2_1",
          'result x {"seen":3}',
          'result call_2_1 {"seen":4}',
          "call call_3_0",
          'result call_3_0 {"seen":5}'
        ])
        const events = yield* journal("r")
        const before = events.slice(0, events.findLastIndex(({ _tag }) => _tag === "TurnStarted") + 1)
        const replayed = RunState.fromEvents(before).history.slice()
        expect(JSON.stringify(replayed)).toBe(JSON.stringify(last?.messages.slice(1)))
      })
    return scene(script, body, { handlers: { look } })
  })

  it.effect("RI-084 a provider's id that looks like one of ours is not given twice", () =>
    scene(
      [
        call("look", { at: 1 }, "call_2_0"),
        calls([
          ["look", { at: 2 }, ""],
          ["look", { at: 3 }, "call_2_0_"]
        ]),
        text("done")
      ],
      ({ model }) =>
        Effect.gen(function* () {
          yield* Run.start(yield* agentOf(), input)
          const ids = (yield* model.requests)[2]?.results.map(({ id }) => id) ?? []
          expect(new Set(["call_2_0", ...ids]).size).toBe(3)
          yield* journal("r")
        })
    )
  )
})

describe("replies that say nothing", () => {
  it.effect("RI-129 an empty reply and a blank one are asked for again, are paid for, and are never sent back", () =>
    scene([reply([]), text("  \n"), text("ok")], ({ model }) =>
      Effect.gen(function* () {
        const outcome = yield* Run.start(yield* agentOf(), input)
        expect(outcome).toMatchObject({ _tag: "Completed", output: "ok", turns: 3, usage: { input: 30, output: 15 } })
        const events = yield* journal("r")
        expect(ofKind(events, "TurnCompleted").map(({ rejected }) => rejected?.kind)).toEqual([
          "empty",
          "empty",
          undefined
        ])
        const last = (yield* model.requests)[2]
        expect(last?.messages.map(({ role }) => role)).toEqual(["system", "user", "user"])
        expect(RunState.fromEvents(events).history.length).toBe(2)
      })
    )
  )

  it.effect("RI-129 three empty replies in a row are Fatal(EmptyResponse)", () =>
    scene([reply([]), text(" "), reply([reasoning("hm")])], () =>
      Effect.gen(function* () {
        const error = yield* failure(Run.start(yield* agentOf(), input))
        expect(error).toMatchObject({ _tag: "Fatal", reason: { _tag: "EmptyResponse", runId: "r" } })
        yield* journal("r")
      })
    )
  )

  it.effect("RI-129 a call in between starts the count of empty replies again", () =>
    scene([reply([]), reply([]), call("look", { at: 1 }), reply([]), reply([]), text("ok")], () =>
      Effect.gen(function* () {
        expect(yield* Run.start(yield* agentOf(), input)).toMatchObject({ _tag: "Completed", output: "ok" })
        yield* journal("r")
      })
    )
  )

  it.effect.each([true, false])(
    "RI-120 a reply of reasoning only is asked for again and kept out (stream %s)",
    (stream) =>
      scene([reply([reasoning("deep thoughts")]), text("ok")], ({ model }) =>
        Effect.gen(function* () {
          expect(yield* Run.start(yield* agentOf({ stream }), input)).toMatchObject({ _tag: "Completed", output: "ok" })
          const [, second] = yield* model.requests
          expect(second?.messages.at(-1)?.role).toBe("user")
          expect(texts(second?.messages ?? [])).not.toContain("deep thoughts")
          const [first] = ofKind(yield* journal("r"), "TurnCompleted")
          expect(first).toMatchObject({
            rejected: { kind: "empty" },
            reply: [{ type: "reasoning", text: "deep thoughts" }]
          })
        })
      )
  )

  it.effect("RI-011 reasoning that was cut off by an interrupt is in no later request", () =>
    scene([stream([thought("half a thought"), ScriptedModel.wait("1 hour"), delta("x")]), text("ok")], ({ model }) =>
      Effect.gen(function* () {
        const agent = yield* agentOf()
        const fiber = yield* Effect.forkChild(Run.start(agent, input))
        yield* TestClock.adjust("1 second")
        yield* Fiber.interrupt(fiber)
        expect(yield* Run.resume(agent, input)).toMatchObject({ _tag: "Completed", output: "ok" })
        const [, second] = yield* model.requests
        expect(second?.messages.map(({ role }) => role)).toEqual(["system", "user"])
        expect(texts(second?.messages ?? [])).not.toContain("thought")
        yield* journal("r")
      })
    )
  )
})

describe("finish reasons", () => {
  const saves: Array<string> = []
  const save = ({ text }: { readonly text: string }) => Effect.sync(() => ({ saved: String(saves.push(text)) }))
  const half = () => call("save", { text: "half" })

  it.effect.each([true, false])(
    "RI-138 no call of a reply that was cut off runs, and three of them stop the Run (stream %s)",
    (stream) => {
      saves.length = 0
      const entry = { ...half(), finish: "length" } as const
      const body = ({ model }: World) =>
        Effect.gen(function* () {
          const agent = yield* agentOf({ stream })
          const outcome = yield* Run.start(agent, input)
          expect(outcome).toMatchObject({ _tag: "Stopped", reason: { _tag: "OutputTruncated" }, turns: 3 })
          expect(saves).toEqual([])
          const events = yield* journal("r")
          expect(ofKind(events, "ToolCallCompleted").map(({ ending, isFailure }) => [ending, isFailure])).toEqual(
            Array(3).fill(["not-executed", true])
          )
          expect(ofKind(events, "TurnCompleted").map(({ finish }) => finish)).toEqual(Array(3).fill("length"))
          const [, second] = yield* model.requests
          expect(second?.messages.map(({ role }) => role)).toEqual(["system", "user", "assistant", "tool", "user"])
          expect(JSON.stringify(second?.messages.at(-2))).toContain("cut off")
          expect(yield* Run.resume(agent, reopened)).toMatchObject({ _tag: "Completed", output: "ok" })
        })
      return scene([entry, entry, entry, text("ok")], body, { handlers: { save } })
    }
  )

  it.effect("RI-138 a text that was cut off is not sent back; after three of them the Run stops", () => {
    const entry = text("half a text", { finish: "length" })
    return scene([entry, entry, entry], ({ model }) =>
      Effect.gen(function* () {
        const outcome = yield* Run.start(yield* agentOf(), input)
        expect(outcome).toMatchObject({ _tag: "Stopped", reason: { _tag: "OutputTruncated" }, turns: 3 })
        const [, , third] = yield* model.requests
        expect(third?.messages.map(({ role }) => role)).toEqual(["system", "user", "user"])
        expect(texts(third?.messages ?? [])).not.toContain("half a text")
        yield* journal("r")
      })
    )
  })

  it.effect("RI-138 a whole reply between two that were cut off starts the count again", () => {
    const cut = text("half", { finish: "length" })
    return scene([cut, cut, call("look", { at: 1 }), cut, cut, text("ok")], () =>
      Effect.gen(function* () {
        expect(yield* Run.start(yield* agentOf(), input)).toMatchObject({ _tag: "Completed", output: "ok" })
      })
    )
  })

  it.effect.each([true, false])(
    "RI-071 a content filter stops the Run with the partial text, and no call runs (stream %s)",
    (stream) => {
      saves.length = 0
      const script = [reply([text("Hel"), half()], { finish: "content-filter" }), text("ok")]
      const body = () =>
        Effect.gen(function* () {
          const agent = yield* agentOf({ stream })
          const outcome = yield* Run.start(agent, input)
          expect(outcome).toMatchObject({ _tag: "Stopped", reason: { _tag: "ContentFiltered" }, answer: "Hel" })
          expect(saves).toEqual([])
          const events = yield* journal("r")
          expect(ofKind(events, "TurnCompleted")[0]?.finish).toBe("content-filter")
          expect(ofKind(events, "ToolCallCompleted")[0]?.ending).toBe("not-executed")
          expect(yield* Run.resume(agent, reopened)).toMatchObject({ _tag: "Completed", output: "ok" })
        })
      return scene(script, body, { handlers: { save } })
    }
  )

  it.effect("RI-071 a content filter with an empty text is no success either", () =>
    scene([reply([], { finish: "content-filter" })], () =>
      Effect.gen(function* () {
        const outcome = yield* Run.start(yield* agentOf(), input)
        expect(outcome).toMatchObject({ _tag: "Stopped", reason: { _tag: "ContentFiltered" } })
        expect(outcome).not.toMatchObject({ answer: expect.stringMatching(/./) })
      })
    )
  )

  it.effect("a refusal is Fatal(ModelRefusal) and is not tried again", () =>
    scene([ScriptedModel.fail(new AiError.ContentPolicyError({ description: "I will not" }))], () =>
      Effect.gen(function* () {
        const error = yield* failure(Run.start(yield* agentOf(), input))
        expect(error).toMatchObject({ _tag: "Fatal", reason: { _tag: "ModelRefusal", runId: "r" } })
        expect(error.message).toContain("I will not")
        expect(yield* failure(Run.resume(yield* agentOf(), { runId: "r" }))).toEqual(error)
      })
    )
  )

  it.effect.each([true, false])(
    "a defect in the model layer is Fatal(ModelRejected), not a crash (stream %s)",
    (stream) =>
      scene([ScriptedModel.die(new Error("cannot read properties of undefined"))], () =>
        Effect.gen(function* () {
          const error = yield* failure(Run.start(yield* agentOf({ stream }), input))
          expect(error).toMatchObject({ _tag: "Fatal", reason: { _tag: "ModelRejected" } })
          expect(error.message).toContain("cannot read properties")
          expect((yield* Run.get("r")).status).toBe("failed")
        })
      )
  )

  it.effect("a stream without any part is cut off: it is tried again", () =>
    scene([stream([], { cut: true }), text("ok")], () =>
      Effect.gen(function* () {
        const outcome = yield* during(Run.start(yield* agentOf(), input), "1 second")
        expect(outcome).toMatchObject({ _tag: "Completed", output: "ok", turns: 1 })
        const [turn] = ofKind(yield* journal("r"), "TurnCompleted")
        expect(turn?.tries?.map((one) => one.failure?.tag)).toEqual(["ModelUnavailable", undefined])
      }).pipe(Effect.provide(steady))
    )
  )

  it.effect("a stream that closes without a finish part is not taken for a reply", () =>
    scene([stream([delta("Hel")], { cut: true }), text("Hello")], () =>
      Effect.gen(function* () {
        const outcome = yield* during(Run.start(yield* agentOf(), input), "1 second")
        expect(outcome).toMatchObject({ _tag: "Completed", output: "Hello" })
      }).pipe(Effect.provide(steady))
    )
  )

  const long = "x".repeat(600_000)
  it.effect.each([
    ["streamed in one piece", text(long + long), true],
    [
      "streamed in pieces",
      stream([delta(long), ScriptedModel.wait("1 second"), delta(long), ScriptedModel.wait("1 second"), delta("end")]),
      true
    ],
    ["not streamed", text(long + long), false]
  ] as const)("a reply over 1 MB counts as cut off: %s", ([, entry, stream]) =>
    scene([entry, text("short")], ({ model }) =>
      Effect.gen(function* () {
        const outcome = yield* during(Run.start(yield* agentOf({ stream }), input), "10 seconds")
        expect(outcome).toMatchObject({ _tag: "Completed", output: "short", turns: 2 })
        const [first] = ofKind(yield* journal("r"), "TurnCompleted")
        expect(first).toMatchObject({ finish: "length", rejected: { kind: "truncated" } })
        expect(texts((yield* model.requests)[1]?.messages ?? []).length).toBeLessThan(1000)
      })
    )
  )

  it.effect.each([true, false])(
    "a reply that ends with an error is tried again, and its calls do not run (stream %s)",
    (stream) => {
      saves.length = 0
      const script = [reply([text("Hel"), half()], { finish: "error" }), text("Hello")]
      const body = () =>
        Effect.gen(function* () {
          const outcome = yield* during(Run.start(yield* agentOf({ stream }), input), "1 second")
          expect(outcome).toMatchObject({
            _tag: "Completed",
            output: "Hello",
            turns: 1,
            usage: { input: 20, output: 10 }
          })
          expect(saves).toEqual([])
        }).pipe(Effect.provide(steady))
      return scene(script, body, { handlers: { save } })
    }
  )
})

describe("provider metadata", () => {
  const google = (signature: string) => ({ google: { thoughtSignature: signature, nested: { list: [1, null] } } })
  const first = reply([
    reasoning("hm", google("r")),
    { type: "text", text: "look", metadata: google("t") },
    { type: "tool-call", name: "look", params: { at: 1 }, id: "a", metadata: google("c") }
  ])

  it.effect.each([true, false])("RI-092 survives journal and resume on every part, unchanged (stream %s)", (stream) => {
    let held = true
    const look = ({ at }: { readonly at: number }) => (held ? Effect.never : Effect.succeed({ seen: at }))
    const body = ({ model }: World) =>
      Effect.gen(function* () {
        const agent = yield* agentOf({ stream })
        const fiber = yield* Effect.forkChild(Run.start(agent, input))
        yield* TestClock.adjust("1 second")
        yield* Fiber.interrupt(fiber)
        held = false
        yield* Run.resume(agent, input)
        const assistant = (yield* model.requests)[1]?.messages[2]
        expect(
          assistant?.role === "assistant" && assistant.content.map(({ options, type }) => [type, options])
        ).toEqual([
          ["reasoning", google("r")],
          ["text", google("t")],
          ["tool-call", google("c")]
        ])
        yield* journal("r")
      })
    return scene([first, text("done")], body, { handlers: { look } })
  })
})

describe("invariants", () => {
  it.effect.each([true, false])("M1 TurnStarted is committed before the model is asked (stream %s)", (stream) =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      const peeking = (entry: ScriptedModel.Entry) => () => {
        const stored = Effect.runSync(w.memory.read("r", { after: 0, limit: 100 }))
        const last: unknown = JSON.parse(stored.at(-1)?.body ?? "{}")
        seen.push(last)
        return entry
      }
      const script = [call("look", { at: 1 }), status(503), call("save", { text: "a" }), text("done")].map(peeking)
      const w: World = yield* world(script, { wrap: YieldingStore.make })
      yield* during(Run.start(yield* agentOf({ stream }), input), "1 second").pipe(Effect.provide([steady, w.layer]))
      yield* w.model.assertConsumed
      expect(seen).toMatchObject([1, 2, 2, 3].map((turn) => ({ _tag: "TurnStarted", turn })))
    })
  )

  it.effect("M1 an owner that was superseded does not ask the model", () =>
    Effect.gen(function* () {
      const look = () =>
        Effect.as(w.store.claim({ runId: "r", owner: "other", ttlMillis: 1000, takeover: 1 }), { seen: 1 }).pipe(
          Effect.orDie
        )
      const w: World = yield* world([call("look", { at: 1 })], { handlers: { look } })
      const error = yield* failure(Run.start(yield* agentOf(), input)).pipe(Effect.provide(w.layer))
      expect(error).toMatchObject({ _tag: "Fatal", reason: { _tag: "OwnershipLost" } })
      expect(yield* w.model.requests).toHaveLength(1)
    })
  )

  const denyAll = Guard.make({
    name: "deny-all",
    stage: "permissions",
    initial: undefined,
    fold: () => undefined,
    check: ({ proposal }) => (proposal._tag === "Call" ? Guard.deny("no") : Guard.allow)
  })

  it.effect.each([true, false])(
    "M2 approval parts in a reply run nothing and are not sent back (stream %s)",
    (stream) => {
      let ran = 0
      const save = () => Effect.sync(() => ({ saved: String(++ran) }))
      const script = [
        reply([
          call("save", { text: "a" }, "a"),
          reply([{ type: "tool-approval-request", approvalId: "p", toolCallId: "a" }])
        ]),
        text("done")
      ]
      const body = ({ model }: World) =>
        Effect.gen(function* () {
          expect(yield* Run.start(yield* agentOf({ stream }), input)).toMatchObject({
            _tag: "Completed",
            output: "done"
          })
          expect(ran).toBe(0)
          const [turn] = ofKind(yield* journal("r"), "TurnCompleted")
          expect(turn?.reply.map(({ type }) => type)).toEqual(["tool-call"])
          expect(texts((yield* model.requests)[1]?.messages ?? [])).not.toContain("approval")
        })
      return scene(script, body, { handlers: { save }, guards: [denyAll] })
    }
  )

  const approved = [
    Prompt.makeMessage("assistant", {
      content: [
        Prompt.makePart("tool-call", { id: "z", name: "save", params: { text: "a" }, providerExecuted: false }),
        Prompt.makePart("tool-approval-request", { approvalId: "p", toolCallId: "z" })
      ]
    }),
    Prompt.makeMessage("tool", {
      content: [Prompt.makePart("tool-approval-response", { approvalId: "p", approved: true })]
    })
  ]

  it.effect.each([true, false])(
    "M2 an approved call that a window puts into the prompt does not run (stream %s)",
    (stream) => {
      let ran = 0
      const save = () => Effect.sync(() => ({ saved: String(++ran) }))
      const body = () =>
        Effect.gen(function* () {
          const agent = yield* agentOf({ stream, window: (history) => [...history.slice(), ...approved] })
          const error = yield* failure(Run.start(agent, input))
          expect(error).toMatchObject({ _tag: "Fatal", reason: { _tag: "ModelRejected" } })
          expect(error.message).toContain("never runs a tool")
          expect(ran).toBe(0)
        })
      return scene([], body, { handlers: { save } })
    }
  )

  it.effect("M3 a turn that is interrupted, cancelled, refused or answered has exactly one end", () => {
    const script = [ScriptedModel.hang, status(400), call("look", { at: 1 }), ScriptedModel.hang]
    return scene(script, () =>
      Effect.gen(function* () {
        const agent = yield* agentOf()
        const fiber = yield* Effect.forkChild(Run.start(agent, input))
        yield* TestClock.adjust("1 second")
        yield* Fiber.interrupt(fiber)
        yield* failure(Run.resume(agent, input))
        const cancelled = yield* Effect.forkChild(Run.resume(agent, reopened))
        yield* TestClock.adjust("1 second")
        yield* Run.cancel({ runId: "r", by: "me" })
        yield* TestClock.adjust("1 second")
        expect(yield* Fiber.join(cancelled)).toMatchObject({ _tag: "Cancelled" })
        const turns = (yield* journal("r")).flatMap((event) => {
          if (event._tag === "TurnFailed") return [`${event.turn} ${event._tag} ${event.failure.tag}`]
          return event._tag === "TurnStarted" || event._tag === "TurnCompleted" ? [`${event.turn} ${event._tag}`] : []
        })
        expect(turns).toEqual([
          "1 TurnStarted",
          "1 TurnFailed Interrupted",
          "2 TurnStarted",
          "2 TurnFailed ModelRejected",
          "3 TurnStarted",
          "3 TurnCompleted",
          "4 TurnStarted",
          "4 TurnFailed Cancelled"
        ])
      })
    )
  })
})
