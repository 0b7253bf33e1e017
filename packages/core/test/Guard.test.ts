import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Guard from "../src/Guard.ts"
import { headRow } from "../src/Journal.ts"
import * as MemoryStore from "../src/MemoryStore.ts"
import * as Run from "../src/Run.ts"
import type { RunEvent } from "../src/RunEvent.ts"
import * as RunEvents from "../src/RunEvent.ts"
import * as RunState from "../src/RunState.ts"
import type { Fate } from "../src/testing/DyingStore.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"
import {
  agentOf,
  eventsOf,
  handled,
  Idempotent,
  kinds,
  lived,
  only,
  outcomeOf,
  paired,
  plugged,
  type Ran,
  ran,
  Readonly,
  storeLayer,
  stores,
  Work
} from "./support/tools.ts"

const { call, calls, text } = ScriptedModel

const ok = () => Effect.succeed("ok")
const stateless = { initial: undefined, fold: () => undefined }

type Kind = Guard.Proposal["_tag"]

/** A guard that says one thing about Steps or about Calls, and allows the others. */
const saying = (
  name: string,
  on: Kind,
  verdict: Guard.Verdict | Effect.Effect<Guard.Verdict>,
  stage: Guard.Stage = "permissions"
) => Guard.make({ ...stateless, name, stage, check: ({ proposal }) => (proposal._tag === on ? verdict : Guard.allow) })

const plugin = (...guards: ReadonlyArray<Guard.Guard>) => plugged({ name: "guards", guards })

const verdicts = {
  Allow: (name: string): Guard.Verdict => ({ _tag: "Allow", reservation: { [name]: 1 } }),
  Nudge: (name: string) => Guard.nudge(`nudged by ${name}`),
  Ask: (name: string) => Guard.ask(`asked by ${name}`),
  Deny: (name: string) => Guard.deny(`denied by ${name}`),
  Stop: (name: string) => Guard.stop(`stopped by ${name}`)
}
const ranks = ["Allow", "Nudge", "Ask", "Deny", "Stop"] as const
const pairs = ranks.flatMap((a) => ranks.map((b) => [a, b] as const))
const worse = (a: Guard.Verdict["_tag"], b: Guard.Verdict["_tag"]) => (ranks.indexOf(a) >= ranks.indexOf(b) ? a : b)

/** What was journaled about verdicts. */
const said = (events: ReadonlyArray<RunEvent>) =>
  events.flatMap((event) => {
    if (event._tag === "ApprovalRequested") return [["Ask", event.guard, event.callId, event.reason]]
    return event._tag === "VerdictGiven" ? [[event.verdict, event.guard, event.on, event.message]] : []
  })

const turns = ({ requests }: Ran) => requests.length

describe("Guard", () => {
  it.effect.each(pairs)("G2 of %s and %s about a Step the stricter counts, of equals the first", ([a, b]) =>
    Effect.gen(function* () {
      const worst = worse(a, b)
      const name = worst === a ? "a" : "b"
      const layer = plugin(saying("b", "Step", verdicts[b]("b")), saying("a", "Step", verdicts[a]("a")))
      const goes = worst === "Allow" || worst === "Nudge"
      const run = yield* ran({ handler: ok, layer, script: goes ? [text("done")] : [] })
      // G1: only Allow, and a Nudge that was told, lets the model be called.
      expect(turns(run)).toBe(goes ? 1 : 0)
      switch (worst) {
        case "Allow":
          expect(said(run.events)).toEqual([])
          break
        case "Nudge":
          // All that nudge are heard, in order.
          for (const nudging of ["a", "b"].filter((guard) => (guard === "a" ? a : b) === "Nudge")) {
            expect(said(run.events)).toContainEqual(["Nudge", nudging, "s1", `nudged by ${nudging}`])
            expect(JSON.stringify(run.requests[0]?.messages)).toContain(`nudged by ${nudging}`)
          }
          expect(said(run.events).length).toBe([a, b].filter((verdict) => verdict === "Nudge").length)
          break
        case "Ask":
          expect(said(run.events)).toEqual([["Ask", name, "s1", `asked by ${name}`]])
          expect(outcomeOf(run)).toMatchObject({ _tag: "Suspended", waiting: [{ id: "s1", kind: "approval" }] })
          break
        case "Deny":
        case "Stop": {
          const message = worst === "Deny" ? `denied by ${name}` : `stopped by ${name}`
          expect(said(run.events)).toEqual([["Stop", name, "s1", message]])
          expect(outcomeOf(run)).toMatchObject({ _tag: "Stopped", reason: { _tag: "Denied", guard: name, message } })
        }
      }
      if (goes) {
        const expected = [a === "Allow" ? { a: { a: 1 } } : {}, b === "Allow" ? { b: { b: 1 } } : {}]
        expect(only(run.events, "TurnStarted")[0]?.reservations ?? {}).toEqual(Object.assign({}, ...expected))
      }
    })
  )

  it.effect.each(pairs)("G2 of %s and %s about a Call the stricter counts, of equals the first", ([a, b]) =>
    Effect.gen(function* () {
      const worst = worse(a, b)
      const name = worst === a ? "a" : "b"
      const layer = plugin(saying("b", "Call", verdicts[b]("b")), saying("a", "Call", verdicts[a]("a")))
      let executions = 0
      const handler = () => Effect.sync(() => ++executions)
      const script = [call("work", {}), ...(worst === "Ask" || worst === "Stop" ? [] : [text("done")])]
      const run = yield* ran({ handler, layer, script })
      const goes = worst === "Allow" || worst === "Nudge"
      expect(executions).toBe(goes ? 1 : 0)
      switch (worst) {
        case "Allow":
        case "Nudge": {
          expect(said(run.events)).toEqual([])
          const expected = [a === "Allow" ? { a: { a: 1 } } : {}, b === "Allow" ? { b: { b: 1 } } : {}]
          expect(only(run.events, "ToolCallStarted")[0]?.reservations ?? {}).toEqual(Object.assign({}, ...expected))
          break
        }
        case "Ask":
          // What another guard reserved is kept for the start after the approval.
          expect(only(run.events, "ApprovalRequested")[0]?.reservations ?? {}).toEqual(
            Object.assign({}, a === "Allow" ? { a: { a: 1 } } : {}, b === "Allow" ? { b: { b: 1 } } : {})
          )
          // All that ask about a call ask at once, so that one answer is one to all of them.
          expect(said(run.events)).toEqual([
            ["Ask", name, "t1.0", a === b ? "asked by a; b: asked by b" : `asked by ${name}`]
          ])
          expect(outcomeOf(run)).toMatchObject({ _tag: "Suspended", waiting: [{ id: "t1.0", guard: name }] })
          break
        case "Deny":
          expect(said(run.events)).toEqual([["Deny", name, "t1.0", `denied by ${name}`]])
          expect(run.completed).toMatchObject([{ ending: "refused", isFailure: true }])
          expect(run.results[0]?.result).toEqual({ error: `Refused by ${name}: denied by ${name}` })
          break
        case "Stop":
          expect(said(run.events)).toEqual([["Stop", name, "t1.0", `stopped by ${name}`]])
          expect(run.completed).toMatchObject([{ ending: "not-executed", isFailure: true }])
          expect(outcomeOf(run)).toMatchObject({ _tag: "Stopped", reason: { _tag: "Denied", guard: name } })
      }
    })
  )

  it.effect("G2 of equal verdicts the one of the outermost stage counts, whatever the names", () =>
    Effect.gen(function* () {
      const guards = (["loop", "budget", "permissions", "limits"] as const).map((stage, i) =>
        saying(`${i}`, "Step", Guard.stop(stage), stage)
      )
      const run = yield* ran({ handler: ok, script: [], layer: plugin(...guards) })
      expect(outcomeOf(run)).toMatchObject({ reason: { guard: "3", message: "limits" } })
    })
  )

  it.effect("a Stop may give another reason than Denied", () =>
    Effect.gen(function* () {
      const layer = plugin(saying("cap", "Step", Guard.stop("spent", { _tag: "Budget" })))
      const run = yield* ran({ handler: ok, script: [], layer })
      expect(outcomeOf(run)).toMatchObject({ _tag: "Stopped", reason: { _tag: "Budget" } })
    })
  )

  it.effect("the smallest output limit of all guards reaches the adapter's settings", () =>
    Effect.gen(function* () {
      const allow = (maxOutputTokens: number): Guard.Verdict => ({ _tag: "Allow", maxOutputTokens })
      const layer = plugin(
        saying("a", "Step", allow(300)),
        saying("b", "Step", allow(500)),
        saying("c", "Step", Guard.allow)
      )
      const run = yield* ran({ handler: ok, script: [text("done")], layer })
      expect(only(run.events, "TurnStarted")[0]?.settings).toEqual({ maxOutputTokens: 300 })
    })
  )

  it.effect.each(["Step", "Call"] as const)(
    "a note about a %s is journaled once, also where another guard nudges",
    (on) =>
      Effect.gen(function* () {
        const note = { seen: [1] }
        const layer = plugin(
          saying("a", on, { _tag: "Allow", note }),
          saying("b", on, Effect.succeed({ _tag: "Allow", note: "b" })),
          saying("c", on, Guard.nudge("careful"))
        )
        const run = yield* ran({
          handler: ok,
          layer,
          script: on === "Step" ? [text("done")] : [call("work", {}), text("done")]
        })
        const notes = only(run.events, "VerdictGiven").filter(({ verdict }) => verdict === "Allow")
        const id = on === "Step" ? "s1" : "t1.0"
        expect(notes).toMatchObject([
          { guard: "a", on: id, note },
          { guard: "b", on: id, note: "b" }
        ])
      })
  )

  it.effect("a note about a call is journaled once when an outside message comes between it and its start", () =>
    Effect.gen(function* () {
      const store = yield* MemoryStore.make
      const handler = ({ n }: { readonly n?: number }) =>
        n === 0 ? Effect.provide(Run.send({ runId: "r", message: "hurry", id: "m" }), storeLayer(store)) : ok()
      const layer = plugin(saying("a", "Call", { _tag: "Allow", note: "seen" }))
      const script = [calls([call("work", { n: 0 }), call("work", { n: 1 })]), text("done")]
      const run = yield* ran({ handler, layer, script, store })
      expect(outcomeOf(run)._tag).toBe("Completed")
      expect(only(run.events, "VerdictGiven").map(({ on }) => on)).toEqual(["t1.0", "t1.1"])
    })
  )

  const broken: ReadonlyArray<readonly [string, () => Guard.Verdict | Effect.Effect<Guard.Verdict>]> = [
    [
      "throws",
      () => {
        throw new Error("no rules")
      }
    ],
    ["dies", () => Effect.die(new Error("no rules"))],
    ["interrupts itself", () => Effect.interrupt]
  ]
  it.effect.each(broken)("a guard whose check %s refuses", ([, check]) =>
    Effect.gen(function* () {
      const broke = (on: Kind) =>
        plugin(
          Guard.make({
            ...stateless,
            name: "x",
            stage: "loop",
            check: ({ proposal }) => (proposal._tag === on ? check() : Guard.allow)
          })
        )
      const step = yield* ran({ handler: ok, script: [], layer: broke("Step") })
      expect(outcomeOf(step)).toMatchObject({ reason: { _tag: "Denied", guard: "x", message: "the guard x failed" } })
      const refused = yield* ran({ handler: () => Effect.die("it ran"), layer: broke("Call") })
      expect(refused.results[0]?.result).toEqual({ error: "Refused by x: the guard x failed" })
    })
  )

  describe("G3 no verdict can spin the loop", () => {
    it.effect("a guard that always nudges tells the model once per Step", () =>
      Effect.gen(function* () {
        const script = [call("work", {}), call("work", {}), text("done")]
        const run = yield* ran({ handler: ok, script, layer: plugin(saying("n", "Step", Guard.nudge("hm"))) })
        expect(outcomeOf(run)).toMatchObject({ _tag: "Completed", turns: 3 })
        expect(said(run.events).map(([, , on]) => on)).toEqual(["s1", "s2", "s3"])
      })
    )

    it.effect("a nudge that was committed before its process died is not told again", () =>
      Effect.gen(function* () {
        const agent = agentOf(Work)
        const { name, version } = agent
        const events: ReadonlyArray<RunEvent> = [
          { _tag: "RunAccepted", at: 0, agent: name, version, task: "go" },
          { _tag: "RunStarted", at: 0, agent: name, version, tools: yield* agent.records, plugins: ["guards"] },
          { _tag: "AttemptStarted", at: 0, attempt: 1, owner: "dead", recovered: false },
          { _tag: "VerdictGiven", at: 0, guard: "n", on: "s1", verdict: "Nudge", message: "hm" }
        ]
        const store = yield* MemoryStore.make
        yield* store.append({
          runId: "r",
          epoch: 1,
          owner: "dead",
          expectedSeq: 0,
          events: events.map(RunEvents.encode),
          head: headRow(RunState.fromEvents(events).head)
        })
        const run = yield* ran({
          handler: ok,
          script: [text("done")],
          layer: plugin(saying("n", "Step", Guard.nudge("hm"))),
          store
        })
        expect(outcomeOf(run)._tag).toBe("Completed")
        expect(said(run.events)).toHaveLength(1)
        expect(run.requests[0]?.messages.filter(({ content }) => JSON.stringify(content).includes("hm"))).toHaveLength(
          1
        )
      })
    )

    it.effect("a guard that always denies calls ends the Run by its failures", () =>
      Effect.gen(function* () {
        const script = Array.from({ length: 5 }, () => call("work", {}))
        const run = yield* ran({ handler: ok, script, layer: plugin(saying("d", "Call", Guard.deny("no"))) })
        expect(outcomeOf(run)).toMatchObject({ _tag: "Stopped", reason: { _tag: "ConsecutiveFailures" } })
      })
    )

    /** Answers every wait with yes until the Run ends, in a new process each time. */
    const approving = (on: Kind) =>
      Effect.gen(function* () {
        let executions = 0
        const store = yield* MemoryStore.make
        const model = yield* ScriptedModel.make([call("work", {}), text("done")])
        const agent = agentOf(Work)
        const layer = Layer.mergeAll(
          model.layer,
          handled(() => Effect.sync(() => ++executions)),
          plugin(saying("q", on, Guard.ask("really?")))
        )
        const process = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
          Effect.flatten(
            Effect.map(
              lived(store, () => Effect.provide(effect, layer)),
              (exit) => exit ?? Exit.die("it died")
            )
          )
        const answered: Array<string> = []
        let outcome = yield* process(Run.start(agent, { runId: "r", task: "go" }))
        while (outcome._tag === "Suspended" && answered.length < 10) {
          const [wait] = outcome.waiting
          const callId = wait?.id ?? ""
          answered.push(callId)
          const answer = { _tag: "Approve", digest: wait?.digest ?? "" } as const
          outcome = yield* process(
            Effect.andThen(
              Run.answer(agent, { runId: "r", callId, answer, by: "ann" }),
              Run.resume(agent, { runId: "r" })
            )
          )
        }
        yield* Effect.provide(paired(), storeLayer(store))
        return { answered, executions, outcome }
      })

    it.effect("a guard that always asks about Steps asks once per Step", () =>
      Effect.gen(function* () {
        const { answered, outcome } = yield* approving("Step")
        expect(outcome).toMatchObject({ _tag: "Completed", turns: 2 })
        expect(answered).toEqual(["s1", "s2"])
      })
    )

    it.effect("a guard that always asks about calls asks once per call", () =>
      Effect.gen(function* () {
        const { answered, executions, outcome } = yield* approving("Call")
        expect(outcome).toMatchObject({ _tag: "Completed", turns: 2 })
        expect(answered).toEqual(["t1.0"])
        expect(executions).toBe(1)
      })
    )
  })

  it.effect("a no to a Step stops the Run; the answer names the Step and its digest", () =>
    Effect.gen(function* () {
      const agent = agentOf(Work)
      const layer = Layer.mergeAll(
        ScriptedModel.layer([]),
        handled(ok),
        MemoryStore.layer,
        plugin(saying("q", "Step", Guard.ask("really?")))
      )
      const program = Effect.gen(function* () {
        yield* Run.start(agent, { runId: "r", task: "go" })
        const deny = (digest: string) =>
          Run.answer(agent, {
            runId: "r",
            callId: "s1",
            answer: { _tag: "Deny", digest, reason: "too dear" },
            by: "ann"
          })
        expect((yield* Effect.flip(deny("another"))).reason._tag).toBe("DigestMismatch")
        yield* deny((yield* Run.get("r")).waiting[0]?.digest ?? "")
        expect(yield* Run.resume(agent, { runId: "r" })).toMatchObject({
          _tag: "Stopped",
          reason: { _tag: "Denied", guard: "q", message: "denied by ann: too dear" }
        })
      })
      yield* Effect.provide(program, layer)
    })
  )

  describe("the memory of a guard", () => {
    /** Remembers every event that it folded, and shows what it knew at each check. */
    const remembering = () => {
      const checks: Array<{ readonly on: Kind; readonly memory: ReadonlyArray<RunEvent> }> = []
      const guard = Guard.make<ReadonlyArray<RunEvent>>({
        name: "m",
        stage: "loop",
        initial: [],
        fold: (memory, event) => [...memory, event],
        check: ({ memory, proposal }) => {
          checks.push({ on: proposal._tag, memory })
          return Guard.allow
        }
      })
      return { checks, layer: plugin(guard) }
    }

    it.effect("J5 holds what is not committed yet", () =>
      Effect.gen(function* () {
        const { checks, layer } = remembering()
        const memory = yield* MemoryStore.make
        let stored = 0
        const seen: Array<number> = []
        const store = {
          ...memory,
          append: (request: Parameters<typeof memory.append>[0]) => {
            stored += request.events.length
            return memory.append(request)
          }
        }
        const handler = () => Effect.sync(() => seen.push(stored))
        const run = yield* ran({ tool: Readonly, handler, layer, store })
        expect(checks.map(({ memory }) => kinds(memory).at(-1))).toEqual([
          "AttemptStarted",
          "TurnCompleted",
          "ToolCallCompleted"
        ])
        // At the last check the reply and its result were known to the guard and not to the store.
        expect(checks[2]?.memory.length).toBe((seen[0] ?? 0) + 2)
        expect(checks[2]?.memory).toEqual(run.events.slice(0, checks[2]?.memory.length))
      })
    )

    it.effect.each(stores)("J5 is folded again after an outside message came in between, on %s", ([, make]) =>
      Effect.gen(function* () {
        const { checks, layer } = remembering()
        const store = yield* make
        const handler = ({ n }: { readonly n?: number }) =>
          n === 0 ? Effect.provide(Run.send({ runId: "r", message: "hurry", id: "m" }), storeLayer(store)) : ok()
        const script = [calls([call("work", { n: 0 }), call("work", { n: 1 })]), text("one"), text("done")].slice(0, 2)
        const run = yield* ran({ handler, layer, script, store })
        expect(kinds(run.events)).toContain("MessageReceived")
        expect(checks.map(({ on }) => on)).toEqual(["Step", "Call", "Call", "Step"])
        for (const { memory } of checks) expect(memory).toEqual(run.events.slice(0, memory.length))
        expect(kinds(checks[3]?.memory ?? [])).toContain("MessageReceived")
      })
    )

    const cap = (max: number) =>
      Guard.make<number>({
        name: "token-cap",
        stage: "budget",
        initial: 0,
        fold: (used, event) => (event._tag === "TurnCompleted" ? used + event.usage.input + event.usage.output : used),
        check: ({ memory, proposal }) =>
          proposal._tag === "Step" && memory >= max
            ? Guard.stop(`${memory} tokens used`, { _tag: "Budget" })
            : { _tag: "Allow", reservation: { tokens: 15 } }
      })

    /** Runs to the end in as many processes as it takes; the append number `at` of all meets this fate. */
    const surviving = (tool: Work, { at, fate }: { readonly at: number; readonly fate: Fate }) =>
      Effect.gen(function* () {
        let appends = 0
        const store = yield* MemoryStore.make
        const model = yield* ScriptedModel.make(() => call("work", {}))
        const agent = agentOf(tool)
        const layer = Layer.mergeAll(model.layer, handled(ok), plugin(cap(45)))
        const process = lived(
          store,
          () => Effect.provide(Run.start(agent, { runId: "r", task: "go" }), layer),
          () => Effect.sync(() => (appends++ === at ? fate : "live"))
        )
        const exit = (yield* process) ?? (yield* process)
        const events = yield* Effect.provide(
          Effect.tap(eventsOf(), () => paired()),
          storeLayer(store)
        )
        return { appends, died: appends > at, exit, events }
      })

    it.effect.each(["die-before", "die-after"] as const)(
      "RI-032 a budget of tokens stops at the same turn, whichever append the process '%s'",
      (fate) =>
        Effect.gen(function* () {
          const whole = yield* surviving(Idempotent, { at: Infinity, fate })
          expect(whole.exit).toMatchObject({ _tag: "Success", value: { _tag: "Stopped", reason: { _tag: "Budget" } } })
          expect(only(whole.events, "TurnCompleted")).toHaveLength(3)
          expect(only(whole.events, "TurnStarted").map(({ reservations }) => reservations)).toEqual(
            Array(3).fill({ "token-cap": { tokens: 15 } })
          )
          expect(whole.appends).toBeGreaterThan(6)
          for (let at = 0; at < whole.appends; at++) {
            const { died, events, exit } = yield* surviving(Idempotent, { at, fate })
            expect(died).toBe(true)
            expect(exit).toMatchObject({ _tag: "Success", value: { _tag: "Stopped", reason: { _tag: "Budget" } } })
            // A turn that was lost with its process is made again, and what is paid for counts once.
            expect(only(events, "TurnCompleted")).toHaveLength(3)
            expect(only(events, "VerdictGiven")).toMatchObject([{ guard: "token-cap", message: "45 tokens used" }])
          }
        })
    )

    it.effect("RI-032 memory after a resume is the memory without a crash", () =>
      Effect.gen(function* () {
        const resumed = remembering()
        const store = yield* MemoryStore.make
        const model = yield* ScriptedModel.make([call("work", {}), call("work", {}), text("done")])
        const agent = agentOf(Idempotent)
        const process = (dies: boolean, layer: Layer.Layer<never>) =>
          lived(store, (self) => {
            const handler = () => Effect.suspend(() => (dies ? self.die : ok()))
            return Run.start(agent, { runId: "r", task: "go" }).pipe(
              Effect.provide([model.layer, handled(handler), layer])
            )
          })
        expect(yield* process(true, plugin(saying("m", "Call", Guard.allow)))).toBeUndefined()
        expect(yield* process(false, resumed.layer)).toMatchObject({ _tag: "Success" })
        const whole = remembering()
        const script = [call("work", {}), call("work", {}), text("done")]
        yield* ran({ tool: Idempotent, handler: ok, script, layer: whole.layer })
        const facts = (events: ReadonlyArray<RunEvent> = []) =>
          events.filter(({ _tag }) => _tag === "TurnCompleted" || _tag === "ToolCallCompleted")
        expect(facts(resumed.checks.at(-1)?.memory)).toHaveLength(4)
        expect(facts(resumed.checks.at(-1)?.memory)).toEqual(facts(whole.checks.at(-1)?.memory))
        const events = yield* Effect.provide(eventsOf(), storeLayer(store))
        for (const { memory } of resumed.checks) expect(memory).toEqual(events.slice(0, memory.length))
      })
    )
  })

  it.effect("what guards reserved for a call that another guard asked about is in its start", () =>
    Effect.gen(function* () {
      const layer = plugin(saying("a", "Call", verdicts.Allow("a")), saying("b", "Call", Guard.ask("sure?")))
      const model = yield* ScriptedModel.make([call("work", {}), text("done")])
      const world = Layer.mergeAll(model.layer, handled(ok), layer)
      yield* Effect.gen(function* () {
        const agent = agentOf(Work)
        yield* Run.start(agent, { runId: "r", task: "go" })
        const { waiting } = yield* Run.get("r")
        expect(waiting[0]?.arguments).toEqual({}) // whoever answers sees what is asked
        const digest = waiting[0]?.digest ?? ""
        yield* Run.answer(agent, { runId: "r", callId: "t1.0", answer: { _tag: "Approve", digest }, by: "ann" })
        yield* Run.resume(agent, { runId: "r" })
        expect(only(yield* eventsOf(), "ToolCallStarted")[0]?.reservations).toEqual({ a: { a: 1 } })
      }).pipe(Effect.provide(world))
    }).pipe(Effect.provide(MemoryStore.layer))
  )

  it.effect("two guards of one name are refused, since nobody could tell their reservations apart", () =>
    Effect.gen(function* () {
      const twice = plugin(saying("a", "Call", Guard.allow), saying("a", "Step", Guard.allow))
      const run = yield* ran({ handler: ok, layer: twice, script: [] })
      expect(JSON.stringify(run.exit)).toContain("two guards are named a")
    })
  )
})
