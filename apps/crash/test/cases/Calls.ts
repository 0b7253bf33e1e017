import { describe, expect } from "@effect/vitest"
import { Agent, Run, RunError, ToolContext, ToolError, ToolOptions } from "@waystone/core"
import { ScriptedModel } from "@waystone/core/testing"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import type { Backend } from "../durable/backends.ts"
import { clerk, task } from "../durable/Desk.ts"
import { answer, approve, approved, digestOf, expectValid, expire, on, only, tagsOf, told } from "../durable/looks.ts"
import type { Store } from "../durable/Office.ts"

const runId = "r"
const resume = { _tag: "Resume", runId } as const
const start = (...replies: Parameters<typeof task>) => ({ _tag: "Start", runId, task: task(...replies) }) as const
const away = Effect.fail(new RunError.StoreUnavailable({ detail: "full" }))

export const calls = (backend: Backend) =>
  describe("calls across processes", () => {
    const it = on(backend)

    it("RI-034 a Run is never reported as suspended while its wait is not stored", ({ here, life, there }) =>
      Effect.gen(function* () {
        const full = (store: Store): Store => ({
          ...store,
          append: (request) => (request.head.waiting.length > 0 ? away : store.append(request))
        })
        const first = life({ wrap: full })
        expect(yield* first(told(Run.start(clerk, start([["pay", { amount: 1 }]]))))).toBe("Retryable StoreUnavailable")
        expect(yield* here(Run.get(runId))).toMatchObject({ status: "running", waiting: [] })
        expect((yield* there("B", resume)).said).toMatchObject({ _tag: "Suspended" })
        expect(yield* here(Run.get(runId))).toMatchObject({ status: "waiting", waiting: [{ kind: "approval" }] })
      }))

    it("RI-050 (a) three tries of a call have one key", ({ act, keys, life }) =>
      Effect.gen(function* () {
        let tries = 0
        const book = () =>
          Effect.gen(function* () {
            yield* act({ key: (yield* ToolContext.ToolContext).idempotencyKey, item: `try:${++tries}` })
            return tries < 3 ? yield* ToolError.retryable("later") : { booked: 1 }
          })
        const run = Run.start(clerk, start([["book", { seat: 1 }]], "done"))
        expect(yield* life({ handlers: { book } })(run)).toMatchObject({ _tag: "Completed" })
        expect(keys()).toEqual(Array(3).fill("r/t1.0"))
      }))

    it("RI-050 (b) a call whose process died after the effect runs again in another one, under its key", (office) =>
      Effect.gen(function* () {
        const { here, keys, mortal, there } = office
        const dying = yield* mortal({ name: "dying", deadly: "book" })
        yield* dying.untilDead(Run.start(clerk, start([["book", { seat: 1 }]], "done")))
        yield* here(expire())
        expect((yield* there("B", resume)).said).toMatchObject({ _tag: "Completed" })
        expect(keys()).toEqual(["r/t1.0", "r/t1.0"])
        yield* here(expectValid(runId))
      }))

    for (const [length, how] of [
      [1, "once"],
      [Number.POSITIVE_INFINITY, "until the Run rests"]
    ] as const) {
      it(`RI-134 a result that the store did not take ${how} is kept, and the unsafe tool runs once`, (office) =>
        Effect.gen(function* () {
          const { here, life, ran, there } = office
          let refusals = 0
          let isBack = false
          const failing = (store: Store): Store => ({
            ...store,
            append: (request) =>
              Effect.suspend(() =>
                ran().length > 0 && !isBack && refusals < length ? ((refusals += 1), away) : store.append(request)
              )
          })
          const first = yield* life({ wrap: failing })(
            Effect.gen(function* () {
              const outcome = yield* told(Run.start(clerk, start([["mail", { to: "bob" }]], "done")))
              // The process lives on, and so does what it owes.
              isBack = true
              return outcome === "Completed" ? outcome : `${outcome}, then ${yield* told(Run.resume(clerk, { runId }))}`
            })
          )
          expect(first).toBe(length === 1 ? "Completed" : "Retryable StoreUnavailable, then Completed")
          expect(refusals).toBeGreaterThanOrEqual(1)
          expect(yield* there("B", resume)).toMatchObject({ said: { _tag: "Completed" }, requests: [] })
          expect(ran()).toEqual(["mail:bob"])
          expect(yield* here(only("ToolCallCompleted"))).toMatchObject([
            { ending: "executed", result: { sent: "bob" } }
          ])
          yield* here(expectValid(runId))
        }))
    }

    for (const [release, words] of [
      ["changed", "takes other arguments now"],
      ["poorer", "does not exist any more"]
    ] as const) {
      it(`RI-123 an approved call whose tool ${words} in the next release is never run: it gets ToolDrift`, (office) =>
        Effect.gen(function* () {
          const { here, ran, there } = office
          yield* there("A", start([["pay", { amount: 1 }]], "done"))
          yield* here(approve())
          const { requests, said } = yield* there("B", resume, { release })
          expect(said).toMatchObject({ _tag: "Completed", output: "done" })
          expect(requests[0]?.text).toContain("ToolDrift")
          expect(requests[0]?.text).toContain(words)
          expect(yield* here(only("ToolCallCompleted"))).toMatchObject([{ ending: "invalid", error: "ToolDrift" }])
          expect(yield* here(tagsOf())).toContain("ToolsChanged")
          expect(yield* here(Run.get(runId))).toMatchObject({ version: "1" })
          expect(ran()).toEqual([])
          yield* here(expectValid(runId))
        }))
    }

    it("a worker without the Run's plugin cannot resume it: PluginMissing, and nothing is written", (office) =>
      Effect.gen(function* () {
        const { here, ran, there } = office
        yield* there("A", start([["pay", { amount: 1 }]], [["pay", { amount: 2 }]], "done"), { plugin: "watcher" })
        yield* here(approve())
        const stored = yield* here(tagsOf())
        const missing = { _tag: "Fatal", reason: { _tag: "PluginMissing", missing: ["watcher"] } }
        expect(yield* there("B", resume)).toMatchObject({ said: missing, requests: [] })
        expect((yield* there("B", resume, { plugin: "another" })).said).toMatchObject(missing)
        expect((yield* there("B", { _tag: "Recover" })).said).toMatchObject([{ _tag: "Failed", runId }])
        expect(yield* here(tagsOf())).toEqual(stored)
        expect(ran()).toEqual([])
        // The Run is free for one that has it, and for one that may go on without it.
        expect((yield* there("A", resume, { plugin: "watcher" })).said).toMatchObject({ _tag: "Suspended" })
        yield* here(approve("t2.0"))
        expect((yield* there("B", { ...resume, without: ["watcher"] })).said).toMatchObject({ _tag: "Completed" })
        expect(ran()).toEqual(["pay:1", "pay:2"])
        expect((yield* here(only("AttemptStarted"))).at(-1)).toMatchObject({ without: ["watcher"], plugins: [] })
      }))

    it("RI-108 the rule of a tool is asked once per call, whatever dies before the tool", ({
      act,
      life,
      mortal,
      ran
    }) =>
      Effect.gen(function* () {
        const Wire = Tool.make("wire", {
          parameters: Schema.Struct({ amount: Schema.Number }),
          success: Schema.String,
          needsApproval: () => Effect.as(act({ key: "rule", item: "asked" }), true)
        })
        const banker = Agent.make("banker", { instructions: "Work.", tools: [Wire] })
        const handlers = Toolkit.make(Wire).toLayer({
          wire: () => Effect.as(act({ key: "wire", item: "sent" }), "sent")
        })
        const begin = Run.start(banker, start([["wire", { amount: 1 }]], "done"))
        expect(yield* life({})(Effect.provide(begin, handlers))).toMatchObject({ _tag: "Suspended" })
        const say = Effect.flatMap(digestOf(), (digest) =>
          Run.answer(banker, { runId, callId: "t1.0", answer: approved(digest), by: "ann" })
        )
        yield* life({})(say)
        const dying = yield* mortal({ name: "dying" }, ({ events }) =>
          Effect.succeed(events.some((line) => line.includes('"ToolCallStarted"')) ? "die-before" : "live")
        )
        const again = Effect.provide(Run.resume(banker, { runId }), handlers)
        yield* dying.untilDead(again)
        expect(ran()).toEqual(["asked"])
        expect(yield* life({})(again)).toMatchObject({ _tag: "Completed" })
        expect(ran()).toEqual(["asked", "sent"])
      }))

    // The last one, since the process that it kills takes a second to start again.
    it("RI-066 after a SIGKILL in the middle of a tool a message finds a valid history; it never runs again", (office) =>
      Effect.gen(function* () {
        const { here, ran, there } = office
        const killed = yield* there("B", start([["mail", { to: "bob" }]], "done"), { dies: "mail" })
        expect(killed.said).toBe("killed")
        yield* here(Run.send({ runId, message: "still there?" }))
        const doubtful = yield* there("A", resume)
        expect(doubtful).toMatchObject({ said: { waiting: [{ id: "t1.0", kind: "in-doubt" }] }, requests: [] })
        yield* here(answer({ _tag: "TellFailed", reason: "the machine died" }))
        const { requests, said } = yield* there("A", resume)
        expect(said).toMatchObject({ _tag: "Completed" })
        expect(requests[0]?.roles).toEqual(["system", "user", "assistant", "tool", "user"])
        expect(requests[0]?.text).toMatch(/Failed: the machine died.*still there\?/)
        expect(ran()).toEqual(["mail:bob"])
        yield* here(expectValid(runId))
      }))
  })

const Meeting = Schema.Struct({ at: Schema.Date, links: Schema.Array(Schema.URL) })
const shape = { parameters: Schema.Struct({ day: Schema.Date }), success: Meeting }
const Meet = Tool.make("meet", shape).annotate(Tool.Readonly, true)
const Invite = ToolOptions.external(Tool.make("invite", shape))
/** Its handler returns what its schema has no codec for. */
class Lamp {
  readonly burns = () => true
}
const Light = Tool.make("light", { success: Schema.Struct({ lamp: Schema.instanceOf(Lamp) }) })

export const values = (backend: Backend) =>
  describe("values across processes", () => {
    const it = on(backend)

    it("RI-063 a Date and a URL of a tool's schema are the same values for another process", ({ life }) =>
      Effect.gen(function* () {
        const at = new Date("2026-11-30T16:55:00.123Z")
        const links = [new URL("https://example.com/a?b=c")]
        const seen: Array<unknown> = []
        const planner = Agent.make("planner", { instructions: "Plan.", tools: [Meet, Invite] })
        const handlers = Toolkit.make(Meet).toLayer({
          meet: ({ day }) => Effect.sync(() => (seen.push(day), { at, links }))
        })
        const day = at.toISOString()
        const both = [
          ["meet", { day }],
          ["invite", { day }]
        ] as const
        const begin = Run.start(planner, start(both, "done"))
        const model = yield* ScriptedModel.make([ScriptedModel.calls(both), ScriptedModel.text("done")])
        expect(yield* life({ model })(Effect.provide(begin, handlers))).toMatchObject({ _tag: "Suspended" })
        expect(seen).toEqual([at])
        const say = (value: Schema.Json) =>
          life({})(told(Run.answer(planner, { runId, callId: "t1.1", answer: { _tag: "Value", value }, by: "ann" })))
        expect(yield* say({ at: "some day", links: [] })).toBe("Fatal AnswerInvalid")
        const invited = new Date(0)
        expect(yield* say({ at: invited.toISOString(), links: [] })).toBe("void")
        const go = Effect.provide(Run.resume(planner, { runId }), handlers)
        expect(yield* life({ model })(go)).toMatchObject({ _tag: "Completed" })
        const results = (yield* life({})(only("ToolCallCompleted"))).map(({ result }) => result)
        const decoded = results.map((result) => Schema.decodeUnknownSync(Schema.toCodecJson(Meeting))(result))
        expect(decoded).toEqual([
          { at, links },
          { at: invited, links: [] }
        ])
        expect(decoded.every(({ at }) => at instanceof Date)).toBe(true)
        // The model of the other process was told the same.
        expect((yield* model.requests)[1]?.results.map(({ result }) => result)).toEqual(results)
      }))

    it("RI-063 what a schema has no codec for is said when it happens, not at the resume; the tool runs once", (office) =>
      Effect.gen(function* () {
        const { act, here, life, ran } = office
        const lighter = Agent.make("lighter", { instructions: "Light.", tools: [Light] })
        const handlers = Toolkit.make(Light).toLayer({
          light: () => Effect.as(act({ key: "k", item: "lit" }), { lamp: new Lamp() })
        })
        const begin = Effect.provide(Run.start(lighter, start([["light", {}]], "done")), handlers)
        expect(yield* life({})(begin)).toMatchObject({ _tag: "Completed" })
        expect(yield* here(only("ToolCallCompleted"))).toMatchObject([
          { ending: "executed", result: expect.stringMatching(/^executed, output unavailable: .*lamp/) }
        ])
        expect(yield* life({})(begin)).toMatchObject({ _tag: "Completed" })
        expect(ran()).toEqual(["lit"])
      }))

    it("RI-010 of results over 1 MB the head and the tail are kept, once each, and a mark says what is cut", (office) =>
      Effect.gen(function* () {
        const { here, kept, life, requests, size, there } = office
        const big = (at: number) => `<${at}>${"0123456789".repeat(100_100)}</${at}>`
        const look = ({ at }: { readonly at: number }) => Effect.succeed({ seen: big(at) })
        const run = Run.start(clerk, start([["look", { at: 1 }]], [["look", { at: 2 }]], "done"))
        expect(yield* life({ handlers: { look } })(run)).toMatchObject({ _tag: "Completed" })
        const results = (yield* here(only("ToolCallCompleted"))).map(({ result }) => String(result))
        for (const [i, result] of results.entries()) {
          expect(result.length).toBeLessThan(1_000_100)
          expect(result).toMatch(new RegExp(`^.{0,20}<${i + 1}>0123`))
          expect(result).toMatch(/\n\[… \d{4} characters cut …\]\n/)
          expect(result).toMatch(new RegExp(`6789</${i + 1}>.{0,20}$`))
        }
        expect(results).toHaveLength(2)
        const whole = yield* size
        expect(whole).toBeGreaterThan(1_900_000)
        expect(whole).toBeLessThan(2_700_000)
        const head = yield* here(Run.get(runId))
        expect(JSON.stringify(head).length).toBeLessThan(64_000)
        expect((yield* requests).every(({ text }) => text.length < 40_000)).toBe(true)
        expect((yield* kept).length).toBeGreaterThan(0)
        expect(yield* there("B", resume)).toMatchObject({ said: { _tag: "Completed" }, requests: [] })
        yield* here(expectValid(runId))
      }))
  })
