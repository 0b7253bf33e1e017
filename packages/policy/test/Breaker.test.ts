import { expect, it } from "@effect/vitest"
import { Agent, MemoryStore, Run, ToolError } from "@waystone/core"
import { ScriptedModel } from "@waystone/core/testing"
import { Breaker } from "@waystone/policy"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as CircuitBreaker from "effect/persistence/CircuitBreaker"
import * as TestClock from "effect/testing/TestClock"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import { setImmediate } from "node:timers/promises"
import { journal } from "./Lives.ts"

const failure = Schema.Union([
  ToolError.ToolError,
  Schema.TaggedStruct("NotThere", {}),
  Schema.TaggedStruct("Down", {})
])
const parameters = Schema.Struct({ host: Schema.String, how: Schema.String })
const Fetch = Tool.make("fetch", { parameters, success: Schema.String, failure }).annotate(Tool.Readonly, true)
const Pay = Tool.make("pay", { parameters, success: Schema.String, failure })
const Tools = Toolkit.make(Fetch, Pay)
const limits = { maxTurns: 60, maxConsecutiveFailures: 50 }
const agent = Agent.make("caller", { instructions: "Call.", tools: [Tools], limits, requires: [Breaker.Breaker] })

const { call, text } = ScriptedModel
const fetch = (how: string, host = "a") => call("fetch", { how, host })

let runs = 0
/** What the model was told, and which hosts were called. Time passes as fast as it must. */
const run = (script: ReadonlyArray<ScriptedModel.Entry>, breaker: Layer.Layer<Breaker.Breaker, unknown>) =>
  Effect.gen(function* () {
    const called: Array<string> = []
    const handler = ({ host, how }: typeof parameters.Type) =>
      Effect.suspend((): Effect.Effect<string, typeof failure.Type> => {
        called.push(`${host} ${how}`)
        switch (how) {
          case "away":
            return ToolError.retryable("no connection")
          case "hangs":
            return Effect.never
          case "down":
            return Effect.fail({ _tag: "Down" } as const)
          case "not there":
            return Effect.fail({ _tag: "NotThere" } as const)
          default:
            return Effect.succeed("here")
        }
      })
    const model = yield* ScriptedModel.make([...script, text("done")])
    const runId = `breaker-${++runs}`
    const fiber = yield* Run.start(agent, { runId, task: "Call." }).pipe(
      Effect.provide(Layer.mergeAll(model.layer, Tools.toLayer({ fetch: handler, pay: handler }), breaker)),
      Effect.forkChild
    )
    // Digests of tools are made outside of virtual time.
    while ((yield* model.requests).length === 0) yield* Effect.promise(() => setImmediate())
    yield* TestClock.adjust("14 minutes")
    const outcome = yield* Fiber.join(fiber)
    const results = (yield* journal(runId)).flatMap((event) => (event._tag === "ToolCallCompleted" ? [event] : []))
    return { outcome, called, results, errors: results.map(({ error }) => error) }
  })

const times = <A>(n: number, a: A): Array<A> => Array.from({ length: n }, () => a)
const refusals = (errors: ReadonlyArray<string | undefined>) => errors.map((error) => error === "CircuitOpen")

it.layer(MemoryStore.layer)((it) => {
  it.effect("B2 after five tries in a row that found the tool away it is not called, and the model is told so", () =>
    Effect.gen(function* () {
      // Core makes three tries of the first call, with 1 s and 2 s between them, and two of the second.
      const { called, outcome, results } = yield* run([fetch("away"), fetch("away"), fetch("fine")], Breaker.layer())
      expect(outcome._tag).toBe("Completed")
      expect(called).toEqual(times(5, "a away"))
      expect(results.map(({ ending, error, tries }) => [ending, error, tries])).toEqual([
        ["executed", "Retryable", 3],
        ["executed", "CircuitOpen", 3],
        ["executed", "CircuitOpen", undefined]
      ])
      expect(results[2]).toMatchObject({
        isFailure: true,
        result: {
          error:
            "fetch was not called: it failed 5 times in a row and is left alone for 28s more. " +
            "Do something else first, or say that it is not available."
        }
      })
    })
  )

  it.effect("after 30 s one call may try; it closes the circuit, or opens it again", () =>
    Effect.gen(function* () {
      const later = (seconds: number, entry: ScriptedModel.Entry) => ScriptedModel.after(`${seconds} seconds`, entry)
      const breaker = Breaker.layer({ errors: ["Down"] })
      const open = times(5, fetch("down"))
      const back = yield* run([...open, later(29, fetch("fine")), later(1, fetch("fine")), fetch("down")], breaker)
      expect(refusals(back.errors)).toEqual([...times(5, false), true, false, false])
      const still = yield* run([...open, later(30, fetch("down")), fetch("fine"), later(30, fetch("fine"))], breaker)
      expect(refusals(still.errors)).toEqual([...times(5, false), false, true, false])
    })
  )

  it.effect("B1 a failure that says that the tool works does not count, and a success starts anew", () =>
    Effect.gen(function* () {
      const typed = yield* run(times(12, fetch("not there")), Breaker.layer())
      expect(typed.called).toHaveLength(12)
      const named = yield* run(times(7, fetch("down")), Breaker.layer({ errors: ["Down"] }))
      expect(named.called).toHaveLength(5)
      const between = [...times(4, fetch("down")), fetch("fine"), ...times(4, fetch("down"))]
      expect((yield* run(between, Breaker.layer({ errors: ["Down"] }))).called).toHaveLength(9)
    })
  )

  it.effect("B1 timeouts and unknown outcomes count, each tool has its own circuit", () =>
    Effect.gen(function* () {
      const hangs = call("pay", { how: "hangs", host: "a" })
      const { errors } = yield* run([...times(6, hangs), fetch("fine")], Breaker.layer())
      expect(errors).toEqual([...times(5, "Timeout"), "CircuitOpen", undefined])
    })
  )

  it.effect("an argument can tell circuits apart, and a tool can have settings of its own", () =>
    Effect.gen(function* () {
      const breaker = Breaker.layer({ tools: { fetch: { failures: 2, key: "host", errors: ["Down"] } } })
      const both = [fetch("down"), fetch("down"), fetch("fine"), fetch("fine", "b")]
      const { called, errors } = yield* run(both, breaker)
      expect(called).toEqual(["a down", "a down", "b fine"])
      expect(refusals(errors)).toEqual([false, false, true, false])
    })
  )

  it.effect("without a key a tool has one circuit, whatever its arguments", () =>
    Effect.gen(function* () {
      const down = ["a", "b", "c", "d", "e"].map((host) => fetch("down", host))
      const { called, errors } = yield* run([...down, fetch("fine", "f")], Breaker.layer({ errors: ["Down"] }))
      expect(called).toHaveLength(5)
      expect(refusals(errors)).toEqual([...times(5, false), true])
    })
  )

  it.effect("Runs that one Layer serves share its circuits", () =>
    Effect.gen(function* () {
      const built = yield* Layer.build(Breaker.layer({ failures: 1, openSeconds: 3600, errors: ["Down"] }))
      const shared = Layer.succeedContext(built)
      yield* run([fetch("down")], shared)
      expect((yield* run([fetch("fine")], shared)).called).toEqual([])
    }).pipe(Effect.scoped)
  )

  it.effect("B3 where the store of circuits is away, calls are made", () =>
    Effect.gen(function* () {
      const cause = new Error("away")
      const away = Effect.fail(
        new CircuitBreaker.CircuitBreakerError({
          reason: new CircuitBreaker.CircuitBreakerStoreError({ message: "away", cause })
        })
      )
      const store = Layer.succeed(CircuitBreaker.CircuitBreakerStore, {
        admit: () => away,
        record: () => away,
        state: () => away
      })
      const { called, outcome } = yield* run(
        [fetch("fine")],
        Layer.provide(Breaker.layerStored({ failures: 1 }), store)
      )
      expect(called).toEqual(["a fine"])
      expect(outcome._tag).toBe("Completed")
    })
  )

  it.effect.each([
    { options: { failures: 0 }, field: "failures" },
    { options: { openSeconds: 0 }, field: "openSeconds" },
    { options: { tools: { fetch: { failures: "2" } } }, field: "tools.fetch.failures" },
    { options: { wait: 1 }, field: "wait" }
  ])("$options is refused by the name of its field", ({ field, options }) =>
    Effect.gen(function* () {
      const error = yield* Layer.build(Breaker.layer(options as Breaker.Options)).pipe(Effect.flip)
      expect(error).toMatchObject({ _tag: "OptionsInvalid", policy: "Breaker", field })
      expect(error.message).toContain(field)
    }).pipe(Effect.scoped)
  )

  it.effect("the defaults are 5 failures, 30 seconds, one circuit a tool, no errors by name", () =>
    Effect.gen(function* () {
      const circuit = { failures: 5, openSeconds: 30, errors: [] }
      const decoded = yield* Schema.decodeUnknownEffect(Breaker.Options)({ tools: { fetch: {} } })
      expect(decoded).toEqual({ ...circuit, tools: { fetch: circuit } })
      expect(yield* Schema.decodeUnknownEffect(Breaker.Options)({})).toEqual({ ...circuit, tools: {} })
    })
  )
})
