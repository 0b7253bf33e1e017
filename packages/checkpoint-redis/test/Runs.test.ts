import { Agent, CheckpointStore, Owner, Run, ToolContext } from "@waystone/core"
import { CrashSuite, PairingChecker, ScriptedModel } from "@waystone/core/testing"
import { afterAll, describe, expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import { TestClock } from "effect/testing"
import * as TestProxy from "./support/proxy.ts"
import * as TestServer from "./support/server.ts"
import { around, created, eventually, failing, gated, isAppend, isIndex, open, type Store } from "./support/stores.ts"

const shared = await TestServer.shared("the tests of Runs on checkpoint-redis")
const url = shared?.url ?? ""
const prefix = TestServer.freshPrefix()

afterAll(async () => {
  if (shared !== undefined) await TestServer.clean(shared, prefix)
  await shared?.stop()
})

const shape = { parameters: Schema.Struct({ n: Schema.Number }), success: Schema.Struct({ text: Schema.String }) }
const Pay = Tool.make("pay", shape)
const Look = Tool.make("look", shape).annotate(Tool.Readonly, true)
const kit = Toolkit.make(Pay, Look)
const agent = Agent.make("payer", { instructions: "Pay.", tools: [kit], limits: { maxTurns: 60 } })

type Does = (n: number) => Effect.Effect<string>
const said: Does = (n) => Effect.succeed(`${n}`)
const tools = ({ look = said, pay = said }: { readonly pay?: Does; readonly look?: Does } = {}) =>
  kit.toLayer({
    pay: ({ n }) => Effect.map(pay(n), (text) => ({ text })),
    look: ({ n }) => Effect.map(look(n), (text) => ({ text }))
  })

/** Pays `turns` times, one call a turn, then is done; answers by what stands in the request. */
const payTimes = (turns: number, name: "pay" | "look" = "pay") =>
  ScriptedModel.layer(({ messages }) => {
    const n = messages.filter(({ role }) => role === "tool").length
    return n < turns ? ScriptedModel.call(name, { n }, `c${n}`) : ScriptedModel.text("done")
  })

const on = (store: Store) => Layer.succeed(CheckpointStore.CheckpointStore, store)
const outcomes = (entries: ReadonlyArray<{ readonly seq: number }>) => entries.map(({ seq }) => seq)

/** Drives it again, as a worker does, until it is done; owners of earlier lives are known to be dead. */
const dead = Layer.succeed(Owner.Owner, {
  name: Effect.sync(() => `test ${Math.random()}`),
  isDead: () => Effect.succeed(true)
})

describe.skipIf(shared === undefined)("a Run on Redis", () => {
  it.live("RI-010 RI-013 completes with ten results of a megabyte, each stored once, and a small head", () =>
    Effect.gen(function* () {
      const megabyte = (n: number) => `<${n}>${"0123456789abcdef".repeat(62_500)}`
      const big = Agent.make("big", { instructions: "Look.", tools: [kit], limits: { maxTurns: 60 } })
      const store = yield* open(url, { prefix })
      const layers = Layer.mergeAll(
        on(store),
        payTimes(10, "look"),
        tools({ look: (n) => Effect.succeed(megabyte(n)) })
      )
      const outcome = yield* Effect.provide(Run.start(big, { runId: "big", task: "go" }), layers)
      expect(outcome).toMatchObject({ _tag: "Completed", output: "done" })
      const events = yield* store.read("big", { after: 0, limit: 1000 })
      for (let n = 0; n < 10; n++) expect(events.filter(({ body }) => body.includes(`<${n}>`))).toHaveLength(1)
      expect((yield* store.head("big"))?.body.length).toBeLessThan(65_536)
      expect(yield* Effect.provide(PairingChecker.ofRun("big"), on(store))).toEqual([])
    })
  )

  it.live("RI-042 a result and a task with NUL come back as they are, a lone surrogate as U+FFFD", () =>
    Effect.gen(function* () {
      const store = yield* open(url, { prefix })
      const odd = "a\u0000b \ud800 c"
      const run = Run.start(agent, { runId: "nul", task: odd })
      const layers = Layer.mergeAll(on(store), payTimes(1), tools({ pay: () => Effect.succeed(odd) }))
      expect(yield* Effect.provide(run, layers)).toMatchObject({ _tag: "Completed" })
      const events = yield* Effect.provide(Stream.runCollect(Run.events("nul", { follow: false })), on(store))
      expect(JSON.stringify(events.map(({ event }) => event))).toContain('"text":"a\\u0000b \ufffd c"')
    })
  )

  it.live("a reply that Redis's proxy drops after the script ran is one event, not two", () =>
    Effect.gen(function* () {
      const port = Number(new URL(url).port)
      const proxy = yield* TestProxy.scoped(port)
      const store = yield* open(proxy.url, { prefix })
      const paid: Array<number> = []
      const pay: Does = (n) =>
        Effect.sync(() => {
          paid.push(n)
          // The next append carries this result.
          proxy.loseReplyTo(`receipt ${n}`)
          return `receipt ${n}`
        })
      const layers = Layer.mergeAll(on(store), payTimes(4), tools({ pay }))
      const outcome = yield* Effect.provide(Run.start(agent, { runId: "dropped", task: "go" }), layers)
      expect(outcome).toMatchObject({ _tag: "Completed" })
      expect(proxy.lost()).toBe(4)
      expect(paid).toEqual([0, 1, 2, 3])
      const direct = yield* open(url, { prefix })
      const events = yield* direct.read("dropped", { after: 0, limit: 1000 })
      for (let n = 0; n < 4; n++) expect(events.filter(({ body }) => body.includes(`receipt ${n}`))).toHaveLength(1)
      expect(yield* Effect.provide(PairingChecker.ofRun("dropped"), on(direct))).toEqual([])
      // The store itself says that it does not know, and does not try again.
      proxy.loseReplyTo("told once")
      const lost = store.append(created("once", { events: ["told once"] }))
      expect(yield* Effect.flip(lost)).toMatchObject({ _tag: "StoreUnavailable" })
      expect(yield* direct.read("once", { after: 0, limit: 10 })).toHaveLength(1)
    })
  )

  it.live("RI-072 rests as Retryable while Redis is out of memory, and resumes without paying again", () =>
    Effect.gen(function* () {
      let full = false
      const oom = around((command, seen) =>
        isAppend(seen) ? Effect.suspend(() => (full ? failing("OOM command not allowed") : command)) : command
      )
      const store = yield* open(url, { prefix, wrap: oom })
      const paid: Array<number> = []
      const pay: Does = (n) => Effect.sync(() => `${paid.push(n)}`)
      const look: Does = () => Effect.sync(() => ((full = true), "full"))
      const model = ScriptedModel.layer(({ messages }) => {
        const n = messages.filter(({ role }) => role === "tool").length
        return n < 4 ? ScriptedModel.call(n === 2 ? "look" : "pay", { n }, `c${n}`) : ScriptedModel.text("done")
      })
      const layers = Layer.mergeAll(on(store), model, tools({ pay, look }), dead)
      const error = yield* Effect.flip(Effect.provide(Run.start(agent, { runId: "oom", task: "go" }), layers))
      expect(error).toMatchObject({ _tag: "Retryable", reason: { _tag: "StoreUnavailable" } })
      full = false
      const healthy = Layer.mergeAll(on(yield* open(url, { prefix })), model, tools({ pay }), dead)
      expect(yield* Effect.provide(Run.resume(agent, { runId: "oom" }), healthy)).toMatchObject({ _tag: "Completed" })
      expect(paid).toEqual([0, 1, 3])
    })
  )

  it.live("RI-045 is followed from another process while one worker dies and another goes on: every event once", () =>
    Effect.gen(function* () {
      const own = { prefix: TestServer.freshPrefix() }
      const first = yield* open(url, own)
      const third = yield* open(url, own)
      const paying: Array<number> = []
      const pay: Does = (n) =>
        Effect.andThen(
          Effect.sync(() => paying.push(n)),
          Effect.suspend(() => Effect.as(n === 2 && paying.length === 3 ? Effect.never : Effect.sleep(20), `${n}`))
        )
      const dying = Layer.mergeAll(on(first), payTimes(5, "look"), tools({ look: pay }))
      const running = yield* Effect.forkChild(Effect.provide(Run.start(agent, { runId: "seen", task: "go" }), dying))
      while (paying.length < 3) yield* Effect.sleep(10)
      const follower = yield* Effect.forkChild(Effect.provide(Stream.runCollect(Run.events("seen")), on(third)))
      yield* Fiber.interrupt(running)
      const second = Layer.mergeAll(on(yield* open(url, own)), payTimes(5, "look"), tools({ look: pay }), dead)
      const recovered = yield* Effect.provide(Run.recover([agent]), second)
      expect(recovered).toMatchObject([{ _tag: "Driven", runId: "seen", outcome: { _tag: "Completed" } }])
      const events = yield* Fiber.join(follower)
      expect(outcomes(events)).toEqual(events.map((_, i) => i + 1))
      expect(events.filter(({ event }) => event._tag === "RunFinished")).toHaveLength(1)
      if (shared !== undefined) yield* Effect.promise(() => TestServer.clean(shared, own.prefix))
    })
  )

  it.live("a Run whose index entry was lost is recovered by the next sweep", () =>
    Effect.gen(function* () {
      const own = TestServer.freshPrefix()
      const dying = around((command, seen) => (isIndex(seen) || seen.startsWith("SCAN") ? failing("died") : command))
      const { gate, wrap } = gated()
      const worker = yield* open(url, { prefix: own, wrap })
      const store = yield* open(url, { prefix: own, wrap: dying })
      const hanging = Layer.mergeAll(on(store), payTimes(2, "look"), tools({ look: () => Effect.never }))
      const running = yield* Effect.forkChild(Effect.provide(Run.start(agent, { runId: "lost", task: "go" }), hanging))
      while (((yield* worker.head("lost"))?.seq ?? 0) < 4) yield* Effect.sleep(20)
      yield* Fiber.interrupt(running)
      const layers = Layer.mergeAll(on(worker), payTimes(2, "look"), tools(), dead)
      const sweep = Effect.provide(Run.recover([agent]), layers)
      expect(yield* sweep).toEqual([])
      gate.open = true
      const recovered = yield* eventually(sweep, (runs) => runs.length > 0) // a large server takes more than one
      expect(recovered).toMatchObject([{ _tag: "Driven", runId: "lost" }])
      if (shared !== undefined) yield* Effect.promise(() => TestServer.clean(shared, own))
    })
  )

  for (const hinted of [true, false]) {
    const when = hinted ? "at once, with watch" : "within a second, without watch"
    it.effect(`a cancel from outside stops a running tool ${when}`, () =>
      Effect.gen(function* () {
        const own = TestServer.freshPrefix()
        let asked = 0
        const counting = around((command) => {
          asked++
          return Effect.ensuring(
            command,
            Effect.sync(() => asked--)
          )
        })
        const { watch, ...plain } = yield* open(url, { prefix: own, wrap: counting })
        const store = hinted && watch !== undefined ? { ...plain, watch } : plain
        const outside = on(yield* open(url, { prefix: own }))
        const subscribers = Effect.promise(async () =>
          String(await shared?.send("PUBSUB", "NUMSUB", `{${own}}:changed`))
        )
        const started = yield* Deferred.make<void>()
        const pay: Does = () => Effect.andThen(Deferred.succeed(started, undefined), Effect.never)
        const layers = Layer.mergeAll(on(store), payTimes(1), tools({ pay }))
        const running = yield* Effect.forkChild(Effect.provide(Run.start(agent, { runId: "r", task: "go" }), layers))
        yield* Deferred.await(started)
        if (hinted) yield* TestClock.withLive(eventually(subscribers, (count) => count.endsWith(",1")))
        // The server answers in real time; virtual time passes only while nothing is asked of it.
        const answered = Effect.promise(async () => {
          let quiet = 0
          while (quiet < 20) {
            await new Promise<void>((resolve) => setImmediate(resolve))
            quiet = asked === 0 ? quiet + 1 : 0
          }
        })
        yield* answered
        yield* Effect.provide(Run.cancel({ runId: "r", by: "ann" }), outside)
        // With a hint no time passes at all: nothing else can stop it.
        for (let step = 0; !hinted && step < 4; step++) {
          yield* TestClock.adjust(250)
          yield* answered
        }
        expect(yield* Fiber.join(running)).toMatchObject({ _tag: "Cancelled" })
        if (shared !== undefined) yield* Effect.promise(() => TestServer.clean(shared, own))
      })
    )
  }
})

describe.skipIf(!TestServer.canStart)("a server that is killed and started again in the middle of a Run", () => {
  for (const [name, down] of [
    ["for a moment: the Run goes on", 0],
    ["for long: the Run rests as Retryable, and resumes", 4000]
  ] as const) {
    it.live(
      `${name}; nothing is lost or doubled`,
      () =>
        Effect.gen(function* () {
          const server = yield* TestServer.scoped("--appendfsync", "always")
          const store = yield* open(server.url, { commandTimeout: down === 0 ? "5 seconds" : "2 seconds" })
          const paid: Array<number> = []
          const pay: Does = (n) =>
            Effect.gen(function* () {
              paid.push(n)
              if (n === 2) {
                yield* Effect.promise(() => server.kill())
                const back = Effect.andThen(
                  Effect.sleep(down),
                  Effect.promise(() => server.restart())
                )
                yield* down === 0 ? back : Effect.forkDetach(back)
              }
              return `receipt ${n}`
            })
          const layers = Layer.mergeAll(on(store), payTimes(5), tools({ pay }), dead)
          const provided = Effect.provide(Run.start(agent, { runId: "r", task: "go" }), layers)
          let tries = 0
          const again = provided.pipe(
            Effect.tapError((error) => {
              tries++
              expect(error).toMatchObject({ _tag: "Retryable", reason: { _tag: "StoreUnavailable" } })
              return Effect.sleep(1000)
            }),
            Effect.retry({ times: 10 })
          )
          expect(yield* again).toMatchObject({ _tag: "Completed", output: "done" })
          if (down === 0) expect(tries).toBe(0)
          else expect(tries).toBeGreaterThan(0)
          expect(paid).toEqual([0, 1, 2, 3, 4])
          const events = yield* store.read("r", { after: 0, limit: 1000 })
          for (let n = 0; n < 5; n++) expect(events.filter(({ body }) => body.includes(`receipt ${n}`))).toHaveLength(1)
          expect(yield* Effect.provide(PairingChecker.ofRun("r"), on(store))).toEqual([])
        }).pipe(Effect.provide(Logger.layer([]))) // the client logs every try to connect
    )
  }
})

describe.skipIf(shared === undefined)("crashes", () => {
  const act = Effect.gen(function* () {
    const { idempotencyKey } = yield* ToolContext.ToolContext
    yield* CrashSuite.happens(Effect.void)
    return { text: idempotencyKey }
  })
  const handlers = kit.toLayer({ pay: () => act, look: () => act })
  const model = ScriptedModel.layer(({ messages }) => {
    const n = messages.filter(({ role }) => role === "tool").length
    if (n === 0) return ScriptedModel.call("pay", { n }, "c0")
    return n === 1
      ? ScriptedModel.calls([
          ["look", { n: 1 }, "c0"],
          ["pay", { n: 2 }, "c1"]
        ])
      : ScriptedModel.text("done")
  })
  CrashSuite.register(it.live, { agent, services: Layer.merge(model, handlers), store: open(url, { prefix }) })
})
