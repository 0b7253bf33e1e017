import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Stream from "effect/Stream"
import { CheckpointStore } from "../src/CheckpointStore.ts"
import * as Guard from "../src/Guard.ts"
import * as MemoryStore from "../src/MemoryStore.ts"
import * as Run from "../src/Run.ts"
import { type Fatal, StoreUnavailable } from "../src/RunError.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"
import { ToolContext } from "../src/ToolContext.ts"
import * as ToolError from "../src/ToolError.ts"
import * as Text from "../src/Text.ts"
import {
  agentOf,
  during,
  eventsOf,
  handled,
  Idempotent,
  kinds,
  only,
  outcomeOf,
  pass,
  plugged,
  ran,
  Readonly,
  storeLayer,
  Work
} from "./support/tools.ts"

const { call, text } = ScriptedModel
const agent = agentOf(Work.setNeedsApproval(true))

/** What arrives as JSON over a wire has whatever shape it has. */
const wire = <A>(json: string): A => JSON.parse(json)

/** The model, and a handler that gives back 1. */
const working = ({ layer }: ScriptedModel.Scripted) =>
  Layer.merge(
    layer,
    handled(() => Effect.succeed(1))
  )

const reasonOf = <A, R>(effect: Effect.Effect<A, { readonly reason: { readonly _tag: string } }, R>) =>
  Effect.map(Effect.flip(effect), ({ reason }) => reason._tag)

const waiting = <A, E>(
  test: Effect.Effect<A, E, CheckpointStore | LanguageModel.LanguageModel | Effect.Services<typeof started>>
) =>
  Effect.gen(function* () {
    const model = yield* ScriptedModel.make([call("work", {}), text("done")])
    return yield* Effect.andThen(started, test).pipe(Effect.provide(working(model)))
  }).pipe(Effect.provide(MemoryStore.layer))
const started = Effect.orDie(Run.start(agent, { runId: "r", task: "go" }))

describe("what could not be read again is refused before it is stored", () => {
  it.effect.each([
    ['{"_tag":"Deny","digest":"$"}', "AnswerInvalid"],
    ['{"_tag":"Approve","digest":"$","scope":"forever"}', "AnswerInvalid"],
    ['{"_tag":"Approve"}', "AnswerInvalid"],
    ['{"_tag":"Approve","edited":{"n":99}}', "AnswerInvalid"],
    ['{"_tag":"Approve","digest":""}', "DigestMismatch"],
    ['{"_tag":"Nope"}', "AnswerInvalid"],
    ["null", "AnswerInvalid"]
  ])("RI-022 the answer %s is %s, and the Run goes on", ([json, reason]) =>
    waiting(
      Effect.gen(function* () {
        const digest = (yield* Run.get("r")).waiting[0]?.digest ?? ""
        const answer = wire<{ readonly _tag: "RunAgain" }>((json ?? "").replace("$", digest))
        expect(yield* reasonOf(Run.answer(agent, { runId: "r", callId: "t1.0", answer, by: "ann" }))).toBe(reason)
        yield* Run.answer(agent, { runId: "r", callId: "t1.0", answer: { _tag: "Approve", digest }, by: "ann" })
        expect(yield* Run.resume(agent, { runId: "r" })).toMatchObject({ _tag: "Completed" })
      })
    )
  )

  it.effect("whoever acts, ids and principals must be text", () =>
    waiting(
      Effect.gen(function* () {
        const five = wire<string>("5")
        expect(yield* reasonOf(Run.pause({ runId: "r", by: five }))).toBe("EncodeFailed")
        expect(yield* reasonOf(Run.cancel({ runId: "r", by: five }))).toBe("EncodeFailed")
        expect(yield* reasonOf(Run.send({ runId: "r", message: "hi", id: five }))).toBe("EncodeFailed")
        const principal = wire<{ readonly id: string }>('"bob"')
        expect(yield* reasonOf(Run.start(agent, { runId: "p", task: "go", principal }))).toBe("EncodeFailed")
        expect(yield* reasonOf(Run.start(agent, { runId: five, task: "go" }))).toBe("RunIdInvalid")
        expect(yield* reasonOf(Run.get("p"))).toBe("RunNotFound")
        expect((yield* Run.resume(agent, { runId: "r" }))._tag).toBe("Suspended")
      })
    )
  )

  it.effect.each([[""], ["  \n"], [[]]])("an empty message or task (%j) is EncodeFailed", ([message = ""]) =>
    waiting(
      Effect.gen(function* () {
        expect(yield* reasonOf(Run.send({ runId: "r", message }))).toBe("EncodeFailed")
        expect(yield* reasonOf(Run.start(agent, { runId: "e", task: message }))).toBe("EncodeFailed")
      })
    )
  )

  it.effect.each([
    { maxTurns: Number.NaN },
    { maxTurns: Infinity },
    { maxTurns: 0 },
    { activeTime: "0 seconds" }
  ] as const)("a Run is not reopened with the limits %j", (limits) =>
    Effect.gen(function* () {
      const model = yield* ScriptedModel.make([call("work", {})])
      const once = agentOf(Readonly, { limits: { maxTurns: 1 } })
      yield* Effect.gen(function* () {
        expect((yield* Run.start(once, { runId: "r", task: "go" }))._tag).toBe("Stopped")
        const failure = yield* Effect.flip(Run.resume(once, { runId: "r", limits }))
        expect((failure as Fatal).reason).toMatchObject({ _tag: "ToolkitInvalid" })
        expect(failure.message).toContain("limits.")
        expect((yield* Run.get("r")).status).toBe("stopped")
      }).pipe(Effect.provide(working(model)))
    }).pipe(Effect.provide(MemoryStore.layer))
  )

  it.effect("a model that bypasses effect's checks fails the Turn, not the journal", () =>
    Effect.gen(function* () {
      const raw = yield* LanguageModel.make({ generateText: () => Effect.succeed([]), streamText: () => Stream.empty })
      const nameless = { type: "tool-call", id: "c", params: {}, providerExecuted: false, metadata: {} }
      const finish = {
        type: "finish",
        reason: "tool-calls",
        usage: { inputTokens: {}, outputTokens: {} },
        metadata: {}
      }
      const model = { ...raw, generateText: () => Effect.succeed({ content: [nameless, finish] }) }
      const layer = Layer.succeed(LanguageModel.LanguageModel, model as never)
      const unstreamed = agentOf(Readonly, { stream: false })
      yield* Effect.gen(function* () {
        const failure = yield* Effect.flip(Run.start(unstreamed, { runId: "r", task: "go" }))
        expect(failure.reason).toMatchObject({ _tag: "ModelRejected" })
        expect(kinds(yield* eventsOf())).toContain("TurnFailed") // and it can be read
      }).pipe(
        Effect.provide(
          Layer.mergeAll(
            layer,
            handled(() => Effect.succeed(1))
          )
        )
      )
    }).pipe(Effect.provide(MemoryStore.layer))
  )
})

describe("a broken guard refuses", () => {
  const broken = {
    "gives no verdict": { check: () => wire<Guard.Verdict>("null") },
    "misspells its verdict": { check: () => wire<Guard.Verdict>('{"_tag":"deny"}') },
    "notes what is no JSON": { check: (): Guard.Verdict => ({ _tag: "Allow", note: 1n as never }) },
    "throws in its fold": {
      check: () => Guard.allow,
      fold: () => {
        throw new Error("fold")
      }
    }
  }
  it.effect.each(Object.entries(broken))("G1 when it %s", ([, options]) =>
    Effect.gen(function* () {
      let executions = 0
      const guard = Guard.make({ name: "g", stage: "permissions", initial: 0, fold: (memory) => memory, ...options })
      const onCalls = Guard.make({
        ...guard,
        check: (check) => (check.proposal._tag === "Call" ? guard.check(check) : Guard.allow)
      })
      const handler = () => Effect.sync(() => ++executions)
      const script = "fold" in options ? [] : [call("work", {}), text("ok")]
      const run = yield* ran({ handler, script, layer: plugged({ name: "p", guards: [onCalls] }) })
      expect(executions).toBe(0)
      expect(JSON.stringify(run.events)).toContain("the guard g failed")
    })
  )
})

describe("what never answers is let go", () => {
  it.effect.each(["guard", "sanitizer"])("a %s that ignores its interruption does not hold up a cancel", (what) =>
    Effect.gen(function* () {
      const slow = Effect.uninterruptible(Effect.sleep("5 minutes"))
      const layer = plugged({
        name: "p",
        guards: [
          Guard.make({
            name: "g",
            stage: "limits",
            initial: 0,
            fold: (memory) => memory,
            check: ({ proposal }) =>
              what === "guard" && proposal._tag === "Call" ? Effect.as(slow, Guard.allow) : Guard.allow
          })
        ],
        interceptors: [
          {
            name: "s",
            stage: "sanitize",
            tool: (_info, next) => (what === "sanitizer" ? Effect.tap(next, slow) : next)
          }
        ]
      })
      const store = yield* MemoryStore.make
      const cancel = Effect.andThen(Effect.sleep("3 seconds"), Run.cancel({ runId: "r" })).pipe(
        Effect.provideService(CheckpointStore, store)
      )
      const fiber = yield* Effect.forkChild(cancel)
      const run = yield* ran({
        handler: () => Effect.succeed("raw"),
        script: [call("work", {})],
        layer,
        store,
        time: "20 seconds"
      })
      yield* Fiber.join(fiber)
      expect(outcomeOf(run)).toMatchObject({ _tag: "Cancelled" })
      expect(JSON.stringify(run.events)).not.toContain("raw") // nothing gets past a sanitizer
    })
  )

  it.effect.each([
    ['{"_tag":"Allow","reservation":{"t":"x"}}', "Call"],
    ['{"_tag":"Allow","reservation":null}', "Call"],
    ['{"_tag":"Allow","reservation":[1]}', "Call"],
    ['{"_tag":"Allow","reservation":{"a":1,"b":null}}', "Call"],
    ['{"_tag":"Ask","reason":"r","expiresAt":"soon"}', "Call"],
    ['{"_tag":"Allow","maxOutputTokens":-5}', "Step"]
  ] as const)("the Verdict %s about a %s comes from a broken guard", ([json, on]) =>
    Effect.gen(function* () {
      const guard = Guard.make({
        name: "g",
        stage: "budget",
        initial: 0,
        fold: (memory) => memory,
        check: ({ proposal }) => (proposal._tag === on ? wire<Guard.Verdict>(json) : Guard.allow)
      })
      const script = on === "Step" ? [] : [call("work", {}), text("ok")]
      const layer = plugged({ name: "p", guards: [guard] })
      const run = yield* ran({ handler: () => Effect.die("it ran"), script, layer })
      expect(JSON.stringify(run.events)).toContain("the guard g failed")
    })
  )

  it.effect("what an interceptor makes unreadable is said to be so, and the effect is recorded", () =>
    Effect.gen(function* () {
      const odd = wire<{ readonly isFailure: boolean }>('{"isFailure":"yes","modelOutput":"abc"}')
      const layer = plugged({
        name: "p",
        interceptors: [
          { name: "s", stage: "sanitize", tool: (_info, next) => Effect.map(next, (output) => ({ ...output, ...odd })) }
        ]
      })
      const run = yield* ran({ handler: () => Effect.succeed(1), layer })
      expect(run.completed).toMatchObject([
        { ending: "executed", result: "executed, output unavailable: an interceptor made it unreadable" }
      ])
    })
  )

  it.effect("what an interceptor makes unreadable keeps what is known: an unknown outcome, and a Fatal", () =>
    Effect.gen(function* () {
      const odd = wire<{ readonly error: string }>('{"error":7}')
      const layer = plugged({
        name: "p",
        interceptors: [
          { name: "s", stage: "sanitize", tool: (_info, next) => Effect.map(next, (output) => ({ ...output, ...odd })) }
        ]
      })
      const unknown = yield* ran({ handler: () => Effect.interrupt, layer })
      expect(unknown.completed).toMatchObject([
        {
          ending: "unknown",
          isFailure: true,
          result: "outcome: unknown, output unavailable: an interceptor made it unreadable"
        }
      ])
      const fatal = yield* ran({ handler: () => ToolError.fatal("the disk is gone"), layer })
      expect(fatal.completed).toMatchObject([{ isFailure: true, fatal: { detail: "the disk is gone" } }])
      expect(kinds(fatal.events).at(-1)).toBe("RunFinished")
      expect(fatal.requests).toHaveLength(1)
    })
  )

  it.effect("L2 what is known of a try that failed is not said of the try after it", () =>
    Effect.gen(function* () {
      const handler = () =>
        Effect.flatMap(ToolContext, (context) => (context.try === 1 ? ToolError.retryable("not yet") : Effect.never))
      const limits = { activeTime: "10 seconds" } as const
      const run = yield* ran({ tool: Idempotent, handler, agent: { limits }, time: "1 minute" })
      expect(run.completed).toMatchObject([{ ending: "unknown", error: "Interrupted" }])
    })
  )

  it.effect("a verb ends where a store refuses an append for events that it does not show", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryStore.make
      const model = yield* ScriptedModel.make([])
      const layer = Layer.merge(working(model), storeLayer(memory))
      yield* Effect.provide(Run.accept(agentOf(Readonly), { runId: "r", task: "go" }), layer)
      const append = () => Effect.succeed({ _tag: "Conflict" as const, seq: 7 })
      const cancelled = Effect.provide(Run.cancel({ runId: "r" }), storeLayer({ ...memory, append }))
      expect(yield* during("10 seconds")(reasonOf(cancelled))).toBe("StoreUnavailable")
    })
  )

  it.effect("a handler that ignores its interruption is timed out all the same", () =>
    Effect.gen(function* () {
      const run = yield* during("40 seconds")(
        ran({ handler: () => Effect.uninterruptible(Effect.never), time: "40 seconds" })
      )
      expect(run.completed[0]).toMatchObject({ ending: "unknown", error: "Timeout" })
    })
  )

  it.effect("a store that never answers is one that is away", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryStore.make
      const model = yield* ScriptedModel.make([])
      const silent = Layer.succeed(CheckpointStore, {
        ...memory,
        claim: () => Effect.never,
        release: () => Effect.never
      })
      const start = Run.start(agent, { runId: "r", task: "go" }).pipe(
        Effect.provide(
          Layer.mergeAll(
            model.layer,
            silent,
            handled(() => Effect.succeed(1))
          )
        )
      )
      expect(yield* during("30 seconds")(reasonOf(start))).toBe("StoreUnavailable")
    })
  )

  it.effect("a store that never answers an append is one that is away", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryStore.make
      const model = yield* ScriptedModel.make([])
      const silent = Layer.succeed(CheckpointStore, { ...memory, append: () => Effect.never })
      const start = Run.start(agent, { runId: "r", task: "go" }).pipe(
        Effect.provide(
          Layer.mergeAll(
            model.layer,
            silent,
            handled(() => Effect.succeed(1))
          )
        )
      )
      expect(yield* during("30 seconds")(reasonOf(start))).toBe("StoreUnavailable")
    })
  )

  it.effect("an append that is refused for nothing is one that failed, not an endless loop", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryStore.make
      const model = yield* ScriptedModel.make([])
      const append = () => Effect.succeed({ _tag: "Conflict" as const, seq: 7 })
      const start = Run.start(agent, { runId: "r", task: "go" }).pipe(
        Effect.provide(
          Layer.mergeAll(
            model.layer,
            Layer.succeed(CheckpointStore, { ...memory, append }),
            handled(() => Effect.succeed(1))
          )
        )
      )
      const fiber = yield* Effect.forkChild(reasonOf(start))
      expect(yield* during("30 seconds")(Fiber.join(fiber))).toBe("StoreUnavailable")
    })
  )

  it.effect(
    "RI-134 a result that the store was away for is written when it is back, and the tool is not run again",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryStore.make
        let away = false
        let executions = 0
        const failing: typeof memory.append = (request) =>
          Effect.suspend(() => (away ? Effect.fail(new StoreUnavailable({ detail: "away" })) : memory.append(request)))
        const model = yield* ScriptedModel.make([call("work", {}), text("done")])
        const handler = () =>
          Effect.sync(() => {
            away = true
            return ++executions
          })
        const layer = Layer.mergeAll(
          model.layer,
          Layer.succeed(CheckpointStore, { ...memory, append: failing }),
          handled(handler)
        )
        const plain = agentOf(Work)
        yield* Effect.gen(function* () {
          const first = yield* during("60 seconds")(reasonOf(Run.start(plain, { runId: "r", task: "go" })))
          expect(first).toBe("StoreUnavailable")
          away = false
          yield* during("5 seconds")(Effect.sleep("3 seconds"))
          const outcome = yield* during("30 seconds")(Run.resume(plain, { runId: "r" }))
          expect(outcome).toMatchObject({ _tag: "Completed", output: "done" })
          expect(executions).toBe(1)
          expect(only(yield* eventsOf(), "ToolCallCompleted")).toMatchObject([{ ending: "executed", result: 1 }])
        }).pipe(Effect.provide(layer))
      })
  )
})

describe("what the model and the journal must not see", () => {
  it.effect("RI-012 a typed failure has neither stack nor folders nor keys", () =>
    Effect.gen(function* () {
      const failure = {
        message: "ENOENT /home/ann/.ssh/id_rsa\n    at open (/home/ann/x.ts:1:2)",
        stack: "Error\n    at open (/home/ann/x.ts:1:2)",
        header: "Authorization: Bearer abcdefgh12345678ijkl"
      }
      const run = yield* ran({ handler: () => Effect.fail(failure) })
      expect(run.completed[0]?.result).toEqual({ message: "ENOENT id_rsa", header: "Authorization: Bearer [redacted]" })
    })
  )

  it("what only looks like a secret stays", () => {
    const harmless = [
      "Basic authentication is not supported",
      'constraint "pk_customer_orders"',
      "sk-learn-contrib",
      "password: must be longer",
      "secret = undefined"
    ]
    for (const text of harmless) expect(Text.safeMessage(text, 1000)).toBe(text)
    const secrets = [
      "sk-live-abcd1234efgh5678",
      "github_pat_11ABCDEFG0abcdefghij",
      "https://ann:pw@host",
      "api_key=abc123def456"
    ]
    for (const text of secrets) expect(Text.safeMessage(text, 1000)).toContain("[redacted]")
  })

  it.effect("arguments that are too long are not in any later request, and their call says so", () =>
    Effect.gen(function* () {
      const run = yield* ran({
        handler: () => Effect.die("it ran"),
        script: [call("work", { n: 1, text: "x".repeat(300_000) }), text("ok")],
        agent: { stream: false }
      })
      expect(run.completed).toMatchObject([{ ending: "invalid", error: "ArgumentsTooLarge" }])
      expect(JSON.stringify(run.requests.at(-1)?.messages).length).toBeLessThan(10_000)
    })
  )
})

describe("what a caller passes wrongly", () => {
  it.effect.each([0, 2, 99])("Run.events after %d gives what there is after it, once, and ends", (after) =>
    waiting(
      Effect.gen(function* () {
        const all = yield* Stream.runCollect(Run.events("r", { follow: false }))
        const seen = yield* Stream.runCollect(Run.events("r", { after }))
        expect(seen.map(({ seq }) => seq)).toEqual(all.map(({ seq }) => seq).filter((seq) => seq > after))
      })
    )
  )
})

describe("recover", () => {
  it.effect("reports a Run that a bug kills and drives the others", () =>
    Effect.gen(function* () {
      const model = yield* ScriptedModel.make([ScriptedModel.hang, ScriptedModel.hang, text("done")])
      const good = agentOf(Readonly)
      const bad = { ...good, name: "bad", records: Effect.die(new Error("bug")) }
      yield* good.records // made once, by a real promise, which virtual time would not wait for
      yield* Effect.gen(function* () {
        for (const [agent, runId] of [
          [{ ...good, name: "bad" }, "r1"],
          [good, "r2"]
        ] as const) {
          const fiber = yield* Effect.forkChild(Run.start(agent, { runId, task: "go" }))
          yield* pass("1 second")
          yield* Fiber.interrupt(fiber) // running, without an owner
        }
        const swept = yield* Run.recover([bad, good])
        expect(swept).toMatchObject([
          { _tag: "Died", runId: "r1" },
          { _tag: "Driven", runId: "r2", outcome: { _tag: "Completed" } }
        ])
      }).pipe(Effect.provide(working(model)))
    }).pipe(Effect.provide(MemoryStore.layer))
  )
})
