import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as AiError from "effect/ai/AiError"
import type * as Interceptor from "../src/Interceptor.ts"
import * as MemoryStore from "../src/MemoryStore.ts"
import * as Run from "../src/Run.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"
import * as ToolError from "../src/ToolError.ts"
import {
  agentOf,
  eventsOf,
  handled,
  Idempotent,
  lived,
  only,
  outcomeOf,
  paired,
  plugged,
  ran,
  storeLayer
} from "./support/tools.ts"

const { call, text } = ScriptedModel

const ok = () => Effect.succeed("ok")

/** Writes down when it is entered and left, around turns and tools. */
const noting = (log: Array<string>, name: string, stage: Interceptor.Stage): Interceptor.Interceptor => {
  const around = <A, E>(what: string, next: Effect.Effect<A, E>) =>
    Effect.suspend(() => {
      log.push(`> ${name} ${what}`)
      return Effect.ensuring(
        next,
        Effect.sync(() => log.push(`< ${name} ${what}`))
      )
    })
  return {
    name,
    stage,
    tool: ({ callId }, next) => around(callId, next),
    turn: ({ turn }, next) => around(`s${turn}`, next)
  }
}

const all = (log: Array<string>) =>
  Layer.mergeAll(
    plugged({ name: "p2", interceptors: [noting(log, "sanitize", "sanitize"), noting(log, "trace", "trace")] }),
    plugged({ name: "p1", interceptors: [noting(log, "breaker b", "breaker"), noting(log, "breaker a", "breaker")] })
  )

const order = ["trace", "breaker a", "breaker b", "sanitize"]
const inside = (what: string, tries: ReadonlyArray<string>) => {
  const [trace, ...perTry] = order
  return [
    `> ${trace} ${what}`,
    ...tries.flatMap((mark) => [
      ...perTry.map((name) => `> ${name} ${what}`),
      mark,
      ...perTry.toReversed().map((name) => `< ${name} ${what}`)
    ]),
    `< ${trace} ${what}`
  ]
}

describe("Interceptor", () => {
  it.effect(
    "trace is around all tries, then by stage and name breaker and sanitize are around each, of turn and tool",
    () =>
      Effect.gen(function* () {
        const log: Array<string> = []
        let tries = 0
        const handler = () =>
          Effect.suspend(() => {
            log.push(`try ${++tries}`)
            return tries < 3 ? ToolError.retryable("not yet") : Effect.succeed("ok")
          })
        const asked = (entry: ScriptedModel.Entry) => () => {
          log.push("asked")
          return entry
        }
        const down = ScriptedModel.fail(new AiError.InternalProviderError({ description: "down" }))
        const run = yield* ran({
          tool: Idempotent,
          handler,
          script: [asked(down), asked(call("work", {})), asked(text("done"))],
          layer: all(log),
          time: "1 minute"
        })
        expect(outcomeOf(run)._tag).toBe("Completed")
        expect(log).toEqual([
          ...inside("s1", ["asked", "asked"]),
          ...inside("t1.0", ["try 1", "try 2", "try 3"]),
          ...inside("s2", ["asked"])
        ])
      })
  )

  it.effect("runs on every execution and never on replay", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const store = yield* MemoryStore.make
      const model = yield* ScriptedModel.make([call("work", { n: 1 }), call("work", { n: 2 }), text("done")])
      const process = (dies: boolean) =>
        lived(store, (self) => {
          const handler = ({ n }: { readonly n?: number }) => (n === 2 && dies ? self.die : ok())
          return Run.start(agentOf(Idempotent), { runId: "r", task: "go" }).pipe(
            Effect.provide([model.layer, handled(handler), all(log)])
          )
        })
      yield* process(true)
      const before = log.splice(0)
      expect(before.filter((line) => line.startsWith("> trace"))).toEqual([
        "> trace s1",
        "> trace t1.0",
        "> trace s2",
        "> trace t2.0"
      ])
      expect(yield* process(false)).toMatchObject({ _tag: "Success", value: { _tag: "Completed" } })
      expect(log.filter((line) => line.startsWith("> trace"))).toEqual(["> trace t2.0", "> trace s3"])
      yield* Effect.provide(paired(), storeLayer(store))
    })
  )

  it.effect("changes what journal and model see, of a tool and of a turn", () =>
    Effect.gen(function* () {
      const infos: Array<unknown> = []
      const layer = plugged({
        name: "p",
        interceptors: [
          {
            name: "shout",
            stage: "sanitize",
            tool: (info, next) =>
              Effect.map(next, (output) => {
                infos.push(info)
                return { ...output, result: String(output.result).toUpperCase() }
              }),
            turn: (info, next) =>
              Effect.map(next, (reply) => {
                infos.push(info)
                const parts = reply.parts.map((part) =>
                  part.type === "text-delta" ? { ...part, delta: part.delta.toUpperCase() } : part
                )
                return { ...reply, parts }
              })
          }
        ]
      })
      const run = yield* ran({
        handler: () => Effect.succeed("quiet"),
        script: [call("work", { n: 3 }), text("done")],
        layer
      })
      expect(run.completed).toMatchObject([{ result: "QUIET", isFailure: false }])
      expect(run.results).toMatchObject([{ result: "QUIET" }])
      expect(outcomeOf(run)).toMatchObject({ output: "DONE" })
      expect(infos).toEqual([
        { runId: "r", turn: 1 },
        { runId: "r", callId: "t1.0", name: "work", start: 1, effect: "unsafe", openWorld: false, arguments: { n: 3 } },
        { runId: "r", turn: 2 }
      ])
    })
  )

  it.effect("can answer in place of the handler, as a breaker does", () =>
    Effect.gen(function* () {
      const open = { isFailure: true, result: { error: "the breaker is open" }, error: "Open" }
      const layer = plugged({
        name: "p",
        interceptors: [{ name: "b", stage: "breaker", tool: () => Effect.succeed(open) }]
      })
      const run = yield* ran({ handler: () => Effect.die("it ran"), layer })
      expect(run.completed).toMatchObject([{ ...open, ending: "executed" }])
      expect(outcomeOf(run)._tag).toBe("Completed")
    })
  )

  const wrong: ReadonlyArray<readonly [string, Effect.Effect<Interceptor.ToolOutput>, object]> = [
    ["dies", Effect.die(new Error("bug in /srv/app/x.js")), { isFailure: true, result: { error: "bug in x.js" } }],
    ["cuts a character", Effect.succeed({ isFailure: false, result: "a\ud83d" }), { result: "a\ufffd" }],
    [
      "gives too much",
      Effect.succeed({ isFailure: false, result: "x".repeat(20_000) }),
      { shown: expect.stringContaining("characters cut") }
    ]
  ]
  it.effect.each(wrong)("the call has a result that can be sent when an interceptor %s", ([, output, expected]) =>
    Effect.gen(function* () {
      const layer = plugged({
        name: "p",
        interceptors: [{ name: "s", stage: "sanitize", tool: (_, next) => Effect.andThen(next, output) }]
      })
      const run = yield* ran({ handler: ok, layer })
      expect(outcomeOf(run)._tag).toBe("Completed")
      expect(run.completed).toMatchObject([expected])
    })
  )

  it.effect("without interceptors of turns or tools nothing changes", () =>
    Effect.gen(function* () {
      const store = yield* MemoryStore.make
      const run = yield* ran({
        handler: ok,
        layer: plugged({ name: "p", interceptors: [{ name: "n", stage: "trace" }] }),
        store
      })
      expect(run.completed).toMatchObject([{ result: "ok" }])
      expect(only(yield* Effect.provide(eventsOf(), storeLayer(store)), "RunStarted")[0]?.plugins).toEqual(["p"])
    })
  )
})
