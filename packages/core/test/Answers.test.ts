import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Agent from "../src/Agent.ts"
import * as Run from "../src/Run.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"
import { ToolContext } from "../src/ToolContext.ts"
import {
  answer,
  begin,
  clerk,
  digestOf,
  eventsOf,
  expectValid,
  pass,
  resultsOf,
  tagsOf,
  told,
  world
} from "./support/scenario.ts"

const { call, calls, text } = ScriptedModel

const runId = "r"
const start = Run.start(clerk, { runId, task: "go" })
const resume = Run.resume(clerk, { runId })
const value = (value: boolean | number | string | null) => ({ _tag: "Value", value }) as const

describe("external calls", () => {
  it.effect.each([false, 0, ""])("RI-105 the answer %j is a value like any other", (said) =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const model = yield* ScriptedModel.make([call("ask", { question: "sure?" }), text("done")])
      const clerkHere = process({ model })
      expect(yield* clerkHere(start)).toMatchObject({ waiting: [{ id: "t1.0", kind: "external", name: "ask" }] })
      yield* here(answer(runId, "t1.0", value(said)))
      expect(yield* clerkHere(resume)).toMatchObject({ _tag: "Completed" })
      expect(resultsOf((yield* model.requests)[1])).toEqual([{ name: "ask", isFailure: false, result: said }])
      const tags = yield* here(tagsOf(runId))
      expect(tags.filter((tag) => tag === "ExternalRequested")).toHaveLength(1)
      expect(yield* here(told(answer(runId, "t1.0", value(said))))).toBe("void")
      yield* here(expectValid(runId))
    })
  )

  it.effect("a value that is none of the tool's is refused, and the call waits on", () =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const model = yield* ScriptedModel.make([call("ask", { question: "sure?" })])
      yield* process({ model })(start)
      expect(yield* here(told(answer(runId, "t1.0", value(null))))).toBe("Fatal AnswerInvalid")
      expect(yield* process({ model })(resume)).toMatchObject({ _tag: "Suspended", waiting: [{ id: "t1.0" }] })
    })
  )

  it.effect("RI-121 two questions in sequence are two calls, and no handler is replayed", () =>
    Effect.gen(function* () {
      const { here, process, ran } = yield* world
      const script = [
        calls([
          ["mail", { to: "bob" }],
          ["ask", { question: "how many?" }]
        ]),
        call("ask", { question: "how many? (a number)" }),
        text("done")
      ]
      const model = yield* ScriptedModel.make(script)
      expect(yield* process({ model })(start)).toMatchObject({ waiting: [{ id: "t1.1" }] })
      yield* here(answer(runId, "t1.1", value("bad")))
      expect(yield* process({ name: "B", model })(resume)).toMatchObject({ waiting: [{ id: "t2.0" }] })
      yield* here(answer(runId, "t2.0", value(3)))
      expect(yield* process({ name: "C", model })(resume)).toMatchObject({ _tag: "Completed" })
      expect(ran).toEqual(["mail bob"])
      expect(resultsOf((yield* model.requests)[2])).toEqual([{ name: "ask", isFailure: false, result: 3 }])
      const tags = yield* here(tagsOf(runId))
      expect(tags.filter((tag) => tag === "RunSuspended")).toHaveLength(2)
      yield* here(expectValid(runId))
    })
  )

  it.effect("RI-121 a handler is told which call it serves and nothing that it could suspend with", () =>
    Effect.gen(function* () {
      const { process } = yield* world
      const Peek = Tool.make("peek", { success: Schema.Array(Schema.String) })
      let seen: ToolContext | undefined
      let given: object = {}
      const handlers = Toolkit.make(Peek).toLayer({
        peek: (_, context) =>
          Effect.gen(function* () {
            seen = yield* ToolContext
            given = context
            return Object.keys(seen).toSorted()
          })
      })
      const peeker = Agent.make("peeker", { instructions: "Peek.", tools: [Peek] })
      const model = yield* ScriptedModel.make([call("peek", {}), text("done")])
      const run = Run.start(peeker, { runId, task: "go", session: "s", principal: { id: "ann" } })
      yield* process({ model })(Effect.provide(run, handlers))
      expect(seen).toEqual({
        runId,
        callId: "t1.0",
        idempotencyKey: "r/t1.0",
        turn: 1,
        try: 1,
        session: "s",
        principal: { id: "ann" }
      })
      expect(Object.keys(given).toSorted()).toEqual(["preliminary", "toolCallId"])
    })
  )
})

describe("calls in doubt", () => {
  /** A Run whose process was killed while `mail` ran. */
  const killed = Effect.gen(function* () {
    const one = yield* world
    const script = [call("mail", { to: "bob" }), text("done"), text("and done")]
    const model = yield* ScriptedModel.make(script)
    const doomed = yield* one.mortal({ name: "A", model, deadly: "mail" })
    yield* doomed.untilDead(start)
    return { ...one, model, next: one.process({ name: "B", model }) }
  })

  it.effect("RI-066 after a kill in the middle of a tool a new message finds a valid history", () =>
    Effect.gen(function* () {
      const { here, model, next, ran } = yield* killed
      yield* here(Run.send({ runId, message: "still there?" }))
      expect(yield* next(resume)).toMatchObject({ _tag: "Suspended", waiting: [{ id: "t1.0", kind: "in-doubt" }] })
      expect(yield* model.requests).toHaveLength(1)
      yield* here(answer(runId, "t1.0", { _tag: "TellFailed", reason: "the machine died" }))
      expect(yield* next(resume)).toMatchObject({ _tag: "Completed" })
      const messages = (yield* model.requests)[1]?.messages ?? []
      expect(messages.map(({ role }) => role)).toEqual(["system", "user", "assistant", "tool", "user"])
      expect(JSON.stringify(messages[3])).toContain("Failed: the machine died")
      expect(ran).toEqual(["mail died"])
      yield* here(expectValid(runId))
    })
  )

  it.effect("a call in doubt takes the result that a person knows, and does not run", () =>
    Effect.gen(function* () {
      const { here, model, next, ran } = yield* killed
      yield* next(resume)
      expect(yield* here(told(answer(runId, "t1.0", { _tag: "Approve", digest: "" })))).toBe("Fatal NotPending")
      expect(yield* here(told(answer(runId, "t1.0", { _tag: "TakeResult", value: 7 })))).toBe("Fatal AnswerInvalid")
      yield* here(answer(runId, "t1.0", { _tag: "TakeResult", value: { sent: "bob" } }))
      expect(yield* next(resume)).toMatchObject({ _tag: "Completed" })
      expect(resultsOf((yield* model.requests)[1])).toEqual([
        { name: "mail", isFailure: false, result: { sent: "bob" } }
      ])
      expect(ran).toEqual(["mail died"])
    })
  )

  it.effect("a call in doubt runs again only when a person says so, and a second doubt is another question", () =>
    Effect.gen(function* () {
      const { here, mortal, model, next, process, ran } = yield* killed
      yield* next(resume)
      const first = yield* here(digestOf(runId, "t1.0"))
      yield* here(answer(runId, "t1.0", { _tag: "RunAgain", digest: first }))
      const doomed = yield* mortal({ name: "C", model, deadly: "mail" })
      yield* doomed.untilDead(resume)
      const last = process({ name: "D", model })
      yield* last(resume)
      const second = yield* here(digestOf(runId, "t1.0"))
      expect(second).not.toBe(first)
      expect(yield* here(told(answer(runId, "t1.0", { _tag: "RunAgain", digest: first })))).toBe("Fatal DigestMismatch")
      yield* here(answer(runId, "t1.0", { _tag: "RunAgain", digest: second }))
      expect(yield* last(resume)).toMatchObject({ _tag: "Completed" })
      expect(ran).toEqual(["mail died", "mail died", "mail bob"])
      yield* here(expectValid(runId))
      expect(yield* here(told(answer(runId, "t1.0", { _tag: "RunAgain", digest: second })))).toBe("void")
    })
  )
})

describe("an answer while the Run is running", () => {
  it.effect("counts when that call waits, although another one is still at work", () =>
    Effect.gen(function* () {
      const { here, process, ran } = yield* world
      const script = [
        calls([
          ["pay", { amount: 1 }],
          ["mail", { to: "bob" }]
        ]),
        text("done")
      ]
      const model = yield* ScriptedModel.make(script)
      const busy = process({ model, handlers: { mail: () => Effect.as(Effect.sleep("2 seconds"), { sent: "bob" }) } })
      const fiber = yield* begin(busy(start))
      const digest = yield* here(digestOf(runId, "t1.0"))
      expect(yield* here(Effect.map(Run.get(runId), ({ status }) => status))).toBe("running")
      yield* here(answer(runId, "t1.0", { _tag: "Approve", digest }))
      yield* pass(2000)
      expect(yield* Fiber.join(fiber)).toMatchObject({ _tag: "Completed" })
      expect(ran).toEqual(["pay 1"])
      const events = yield* here(eventsOf(runId))
      expect(events.map(({ _tag }) => _tag)).not.toContain("RunSuspended")
      yield* here(expectValid(runId))
    })
  )
})
