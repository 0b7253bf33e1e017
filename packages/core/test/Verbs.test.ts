import { readFileSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as AiError from "effect/ai/AiError"
import { TestClock } from "effect/testing"
import * as Agent from "../src/Agent.ts"
import { type Plugin, PluginId } from "../src/Plugin.ts"
import * as Run from "../src/Run.ts"
import type { Answer } from "../src/RunEvent.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"
import {
  approve,
  asksUntil,
  begin,
  type Classed,
  clerk,
  eventsOf,
  pass,
  type Process,
  type Services,
  tagsOf,
  told,
  tools,
  world,
  type World
} from "./support/scenario.ts"

// ---- how a status is reached: docs/events.md, section 4

const { call, calls, fail, hang, text } = ScriptedModel
const runId = "r"

/** The same agent with one turn. */
const brief = Agent.make("clerk", { instructions: "Work.", tools, limits: { maxTurns: 1 } })

interface Situation extends World {
  readonly agent: typeof clerk
  readonly task: string
  readonly drive: Process
}

const failures = {
  overloaded: fail(new AiError.InternalProviderError({ description: "overloaded" })),
  refused: fail(new AiError.ContentPolicyError({ description: "no" }))
}

/** What the model does, by the task. */
const script: ScriptedModel.Script = ({ messages, number }) => {
  const has = (word: string) => JSON.stringify(messages[1]).includes(word)
  const results = messages.filter(({ role }) => role === "tool").length
  if (has("hang")) return number === 1 ? hang : text("done")
  if (has("overloaded") && number <= 5) return failures.overloaded
  if (has("refused") && number === 1) return failures.refused
  if (results > 0) return has("then-fail") && number === 2 ? failures.refused : text("done")
  if (has("pay-twice"))
    return calls([
      ["pay", { amount: 1 }],
      ["pay", { amount: 2 }]
    ])
  if (has("pay-and-mail"))
    return calls([
      ["pay", { amount: 1 }],
      ["mail", { to: "bob" }]
    ])
  if (has("pay")) return call("pay", { amount: 1 })
  if (has("ask")) return call("ask", { question: "sure?" })
  if (has("mail")) return call("mail", { to: "bob" })
  return has("look") ? call("look", { at: 1 }) : text("done")
}

const situation = (task: string, agent = clerk) =>
  Effect.gen(function* () {
    const one = yield* world
    const model = yield* ScriptedModel.make(script)
    const drive = one.process({ model, handlers: { mail: () => Effect.never } })
    return { ...one, model, agent, task, drive }
  })

const started = (task: string, agent = clerk) =>
  Effect.tap(situation(task, agent), (s) => s.drive(told(Run.start(agent, { runId, task }))))
const accepted = Effect.tap(situation("go"), (s) => s.here(Run.accept(clerk, { runId, task: "go" })))
/** Its model waits. */
const hanging = Effect.flatMap(situation("hang"), (s) =>
  Effect.map(begin(s.drive(told(Run.start(clerk, { runId, task: "hang" })))), (fiber) => ({ ...s, fiber }))
)
/** One call asks while another one is at work. */
const asking = Effect.tap(situation("pay-and-mail"), (s) =>
  begin(s.drive(told(Run.start(clerk, { runId, task: s.task }))))
)
const inDoubt = Effect.tap(situation("mail"), (s) =>
  Effect.gen(function* () {
    const dying = yield* s.mortal({ name: "X", model: s.model, deadly: "mail" })
    yield* dying.untilDead(Run.start(clerk, { runId, task: "mail" }))
    yield* s.drive(Run.resume(clerk, { runId }))
  })
)
const retry = Effect.tap(situation("overloaded"), (s) =>
  Effect.gen(function* () {
    const fiber = yield* begin(s.drive(told(Run.start(clerk, { runId, task: s.task }))))
    yield* TestClock.adjust("40 seconds")
    expect(yield* Fiber.join(fiber)).toBe("Retryable ModelUnavailable")
  })
)
const answered = Effect.tap(started("pay"), (s) => s.here(approve(runId, "t1.0")))
const goOn = (s: Situation) => s.drive(told(Run.resume(s.agent, { runId })))

class Desk extends Context.Service<Desk, Plugin>()("test/Desk") {}
const onlyBea = Layer.succeed(Desk, { [PluginId]: { name: "desk", mayAnswer: (by) => Effect.succeed(by === "bea") } })

const ways = {
  accepted,
  running: hanging,
  "running, asked": asking,
  "running, decided": Effect.tap(asking, (s) => s.here(approve(runId, "t1.0"))),
  "running, no owner": Effect.tap(hanging, ({ fiber }) => Fiber.interrupt(fiber)),
  "running, dead owner": Effect.tap(hanging, ({ dead }) => Effect.sync(() => dead.add("A"))),
  waiting: started("pay"),
  "waiting, two": started("pay-twice"),
  "waiting, decided": Effect.tap(started("pay-twice"), (s) => s.here(approve(runId, "t1.0"))),
  "waiting, answered": answered,
  "waiting, expired": Effect.tap(situation("mail"), (s) =>
    Effect.gen(function* () {
      const guarded = s.process({ model: s.model, extra: asksUntil(1000) })
      yield* guarded(told(Run.start(clerk, { runId, task: s.task })))
      yield* TestClock.adjust("1 second")
    })
  ),
  "waiting, guarded": Effect.tap(situation("pay"), (s) =>
    s.process({ model: s.model, extra: onlyBea })(told(Run.start(clerk, { runId, task: s.task })))
  ),
  external: started("ask"),
  "in-doubt": inDoubt,
  paused: Effect.tap(accepted, (s) => s.here(Run.pause({ runId }))),
  "paused, asked": Effect.tap(started("pay"), (s) => s.here(Run.pause({ runId }))),
  "paused, answered": Effect.tap(started("pay"), (s) =>
    s.here(Effect.andThen(Run.pause({ runId }), approve(runId, "t1.0")))
  ),
  retry,
  "retry, due": Effect.tap(retry, () => TestClock.adjust("2 minutes")),
  "paused, retry due": Effect.tap(retry, (s) =>
    Effect.andThen(s.here(Run.pause({ runId })), TestClock.adjust("2 minutes"))
  ),
  completed: started("go"),
  "completed, decided": Effect.tap(answered, goOn),
  cancelled: Effect.tap(started("pay"), (s) => s.here(Run.cancel({ runId }))),
  "cancelled, decided": Effect.tap(started("pay-twice"), (s) =>
    s.here(Effect.andThen(approve(runId, "t1.0"), Run.cancel({ runId })))
  ),
  stopped: started("look", brief),
  "stopped, decided": Effect.tap(started("pay", brief), (s) => Effect.andThen(s.here(approve(runId, "t1.0")), goOn(s))),
  failed: started("refused"),
  "failed, decided": Effect.tap(started("pay then-fail"), (s) =>
    Effect.andThen(s.here(approve(runId, "t1.0")), goOn(s))
  ),
  "unknown id": situation("go")
}
type Way = keyof typeof ways

// ---- the table

const columns = ["accepted", "running", "waiting", "completed", "cancelled", "stopped", "failed", "unknown id"] as const
type Column = (typeof columns)[number]

type Verb = (s: Situation) => Effect.Effect<unknown, Classed, Services>

/** One thing that is tried in a cell: what is written and what the caller gets. */
interface Case {
  readonly writes: ReadonlyArray<string>
  readonly gives: string
  /** Default: as the column is called. */
  readonly from: Way | undefined
  /** Default: the verb of the row. */
  readonly verb: Verb | undefined
}
const gives = (
  gives: string,
  {
    from,
    verb,
    writes = []
  }: { readonly writes?: ReadonlyArray<string>; readonly from?: Way; readonly verb?: Verb } = {}
): Case => ({ gives, writes, from, verb })
const writes = (...writes: ReadonlyArray<string>) => gives("void", { writes })

interface Row {
  readonly verb: Verb
  readonly cells: { readonly [C in Column]: Case | ReadonlyArray<Case> }
}

/** The same in every status; an unknown id is another matter. */
const everywhere = (cell: Case): Omit<Row["cells"], "unknown id"> => ({
  accepted: cell,
  running: cell,
  waiting: cell,
  completed: cell,
  cancelled: cell,
  stopped: cell,
  failed: cell
})

const none: ReadonlyArray<Case> = []
const exists = gives("Fatal RunExists")
const notFound = gives("Fatal RunNotFound")
const terminal = gives("Fatal RunTerminal")
const suspended = (from: Way) => gives("Suspended", { from })
const turn = ["TurnStarted", "TurnCompleted"]
const driven = ["AttemptStarted", ...turn, "RunFinished"]
const completed = (from: Way, writes: ReadonlyArray<string> = driven) => gives("Completed", { from, writes })
const afterApproval = ["AttemptStarted", "ToolCallStarted", "ToolCallCompleted", ...turn, "RunFinished"]
const held = ["external", "in-doubt", "retry"].map((from) => suspended(from as Way))

const start =
  (task?: string): Verb =>
  (s) =>
    Run.start(s.agent, { runId, task: task ?? s.task })
const accept =
  (task?: string): Verb =>
  (s) =>
    Run.accept(s.agent, { runId, task: task ?? s.task })
const resume =
  (options: Omit<Run.ResumeInput, "runId">): Verb =>
  (s) =>
    Run.resume(s.agent, { runId, ...options })

/** Names the digest of what was asked, wherever the Run is now. */
const say =
  (callId: string, make: (digest: string) => Answer): Verb =>
  (s) =>
    Effect.gen(function* () {
      const events = yield* Effect.orElseSucceed(eventsOf(runId), () => [])
      const asked = events.findLast((event) => "digest" in event && event.callId === callId)
      const digest = asked !== undefined && "digest" in asked ? (asked.digest ?? "") : ""
      yield* Run.answer(s.agent, { runId, callId, answer: make(digest), by: "ann" })
    })
const yes = (digest: string): Answer => ({ _tag: "Approve", digest })
const no = (digest: string): Answer => ({ _tag: "Deny", digest, reason: "no" })
const approves = say("t1.0", yes)
const denies = say("t1.0", no)

/** An ended Run whose call was decided, and one whose call was not. */
const ended = (status: "completed" | "cancelled" | "stopped" | "failed") => [
  gives("void", { from: `${status}, decided` }),
  gives("Fatal AlreadyDecided", { from: `${status}, decided`, verb: denies }),
  terminal
]

const fate = Effect.match(Run.get(runId), { onSuccess: () => "kept", onFailure: () => "removed" })
const remove =
  (options?: { readonly force: boolean }): Verb =>
  () =>
    Effect.andThen(Run.remove(runId, options), fate)
const prune =
  (olderThan: number): Verb =>
  () =>
    Effect.andThen(Run.prune({ olderThan }), fate)
const pruned = [gives("removed"), gives("kept", { verb: prune(1) })]

/** The tags of the fork beyond what it copied; it must have copied all. */
const fork =
  (at?: number): Verb =>
  () =>
    Effect.gen(function* () {
      const id = yield* Run.fork({ runId, id: "fork", ...(at === undefined ? undefined : { at }) })
      const copied = yield* Effect.orDie(tagsOf(runId))
      const tags = yield* Effect.orDie(tagsOf("fork"))
      expect(tags.slice(0, copied.length)).toEqual(copied)
      return `${id}: ${tags.slice(copied.length).join()}`
    })
const forked = gives("fork: RunForked")

const seen = Effect.map(Stream.runCollect(Run.events(runId)), (all) => `the events to ${all.at(-1)?.event._tag}`)
/** Cancels the Run while somebody watches it. */
const watched: Verb = () =>
  Effect.gen(function* () {
    const watching = yield* begin(seen)
    yield* Run.cancel({ runId })
    yield* pass(2000)
    return yield* Fiber.join(watching)
  })

const send = Run.send({ runId, message: "hello", id: "m1" })

const kept = gives("kept")
const swept: Row["cells"] = {
  ...everywhere(kept),
  running: [
    kept,
    gives("taken", { from: "running, no owner", writes: driven }),
    gives("taken", { from: "running, dead owner", writes: driven })
  ],
  waiting: [
    kept,
    ...(["external", "in-doubt", "paused", "retry"] as const).map((from) => gives("kept", { from })),
    gives("taken", { from: "retry, due", writes: driven }),
    gives("taken", { from: "waiting, answered", writes: afterApproval }),
    gives("taken", {
      from: "waiting, decided",
      writes: ["AttemptStarted", "ToolCallStarted", "ToolCallCompleted", "RunSuspended"]
    })
  ],
  "unknown id": none
}

const table: { readonly [row: string]: Row } = {
  "accept same task": { verb: accept(), cells: { ...everywhere(gives("void")), "unknown id": writes("RunAccepted") } },
  "accept other task": { verb: accept("another"), cells: { ...everywhere(exists), "unknown id": none } },
  "start same task": {
    verb: start(),
    cells: {
      accepted: completed("accepted", ["RunStarted", ...driven]),
      running: [gives("Retryable RunBusy"), completed("running, no owner"), completed("running, dead owner")],
      waiting: [
        suspended("waiting"),
        ...held,
        suspended("paused"),
        suspended("paused, answered"),
        suspended("paused, retry due"),
        completed("waiting, answered", afterApproval),
        gives("Suspended", {
          from: "waiting, decided",
          writes: ["AttemptStarted", "ToolCallStarted", "ToolCallCompleted", "RunSuspended"]
        }),
        completed("retry, due")
      ],
      completed: gives("Completed"),
      cancelled: gives("Cancelled"),
      stopped: gives("Stopped"),
      failed: gives("Fatal ModelRefusal"),
      "unknown id": completed("unknown id", ["RunAccepted", "RunStarted", ...driven])
    }
  },
  "start other task": { verb: start("another"), cells: { ...everywhere(exists), "unknown id": none } },
  resume: {
    verb: resume({}),
    cells: {
      accepted: completed("accepted", ["RunStarted", ...driven]),
      running: [gives("Retryable RunBusy"), completed("running, no owner"), completed("running, dead owner")],
      waiting: [
        suspended("waiting"),
        ...held,
        completed("paused", ["PauseLifted", "RunStarted", ...driven]),
        completed("paused, answered", ["PauseLifted", ...afterApproval]),
        completed("paused, retry due", ["PauseLifted", ...driven]),
        gives("Suspended", { from: "paused, asked", writes: ["PauseLifted", "AttemptStarted", "RunSuspended"] }),
        completed("waiting, answered", afterApproval),
        completed("retry, due")
      ],
      completed: [gives("Completed"), gives("Completed", { verb: resume({ reopen: true }) })],
      cancelled: [gives("Cancelled"), gives("Cancelled", { verb: resume({ reopen: true }) })],
      stopped: [
        gives("Stopped"),
        gives("Completed", { verb: resume({ limits: { maxTurns: 3 } }), writes: ["RunReopened", ...driven] }),
        gives("Stopped", { verb: resume({ reopen: true }), writes: ["RunReopened", "AttemptStarted", "RunFinished"] })
      ],
      failed: [
        gives("Fatal ModelRefusal"),
        gives("Completed", { verb: resume({ limits: { maxTurns: 3 } }), writes: ["RunReopened", ...driven] }),
        gives("Completed", { verb: resume({ reopen: true }), writes: ["RunReopened", ...driven] })
      ],
      "unknown id": notFound
    }
  },
  answer: {
    verb: approves,
    cells: {
      accepted: gives("Fatal NotPending"),
      running: [
        gives("void", { from: "running, asked", writes: ["CallAnswered"] }),
        gives("void", { from: "running, decided" }),
        gives("Fatal AlreadyDecided", { from: "running, decided", verb: denies }),
        gives("Fatal NotPending"),
        gives("Fatal NotPending", { from: "running, asked", verb: say("t1.1", yes) })
      ],
      waiting: [
        writes("CallAnswered"),
        gives("void", { verb: denies, writes: ["CallAnswered"] }),
        gives("void", {
          from: "external",
          verb: say("t1.0", () => ({ _tag: "Value", value: false })),
          writes: ["CallAnswered"]
        }),
        gives("void", {
          from: "in-doubt",
          verb: say("t1.0", (digest) => ({ _tag: "RunAgain", digest })),
          writes: ["CallAnswered"]
        }),
        gives("void", { from: "paused, asked", writes: ["CallAnswered"] }),
        gives("void", { from: "waiting, decided" }),
        gives("Fatal AlreadyDecided", { from: "waiting, decided", verb: denies }),
        gives("Fatal NotPending", { verb: say("t1.1", yes) }),
        gives("Fatal NotPending", { verb: say("t1.0", () => ({ _tag: "Value", value: 1 })) }),
        gives("Fatal DigestMismatch", { verb: say("t1.0", () => yes("0")) }),
        gives("Fatal ApprovalExpired", { from: "waiting, expired" }),
        gives("Fatal PluginMissing", { from: "waiting, guarded" }),
        gives("Fatal MayNotAnswer", { from: "waiting, guarded", verb: (s) => Effect.provide(approves(s), onlyBea) }),
        gives("Fatal AnswerInvalid", { from: "external", verb: say("t1.0", () => ({ _tag: "Value", value: null })) })
      ],
      completed: ended("completed"),
      cancelled: ended("cancelled"),
      stopped: ended("stopped"),
      failed: ended("failed"),
      "unknown id": notFound
    }
  },
  send: {
    verb: () => send,
    cells: {
      accepted: writes("MessageReceived"),
      running: writes("MessageReceived"),
      waiting: [
        writes("MessageReceived"),
        ...(["external", "in-doubt", "paused", "retry"] as const).map((from) =>
          gives("void", { from, writes: ["MessageReceived"] })
        ),
        gives("void", { verb: () => Effect.andThen(send, send), writes: ["MessageReceived"] })
      ],
      completed: terminal,
      cancelled: terminal,
      stopped: terminal,
      failed: terminal,
      "unknown id": notFound
    }
  },
  pause: {
    verb: () => Run.pause({ runId }),
    cells: {
      accepted: writes("PauseRequested"),
      running: writes("PauseRequested"),
      waiting: [
        writes("PauseRequested"),
        gives("void", { from: "retry", writes: ["PauseRequested"] }),
        gives("void", { from: "paused" })
      ],
      completed: terminal,
      cancelled: terminal,
      stopped: terminal,
      failed: terminal,
      "unknown id": notFound
    }
  },
  cancel: {
    verb: () => Run.cancel({ runId }),
    cells: {
      accepted: writes("CancelRequested", "RunFinished"),
      running: [
        writes("CancelRequested"),
        gives("void", { from: "running, no owner", writes: ["CancelRequested"] }),
        gives("Cancelled", {
          from: "running, no owner",
          verb: (s) => Effect.andThen(Run.cancel({ runId }), Run.resume(s.agent, { runId })),
          writes: ["CancelRequested", "AttemptStarted", "RunFinished"]
        })
      ],
      waiting: [
        writes("CancelRequested", "ToolCallCompleted", "RunFinished"),
        gives("void", {
          from: "waiting, two",
          writes: ["CancelRequested", "ToolCallCompleted", "ToolCallCompleted", "RunFinished"]
        }),
        gives("void", { from: "in-doubt", writes: ["CancelRequested", "ToolCallCompleted", "RunFinished"] }),
        gives("void", { from: "paused", writes: ["CancelRequested", "RunFinished"] }),
        gives("void", { from: "retry", writes: ["CancelRequested", "RunFinished"] })
      ],
      completed: gives("void"),
      cancelled: gives("void"),
      stopped: writes("CancelRequested", "RunFinished"),
      failed: writes("CancelRequested", "RunFinished"),
      "unknown id": notFound
    }
  },
  fork: {
    verb: fork(),
    cells: {
      ...everywhere(forked),
      accepted: [
        forked,
        ...[0, -1, 1.5, 2].map((at) => gives("Fatal CheckpointNotFound", { verb: fork(at) })),
        gives("Fatal CheckpointNotFound", { from: "waiting", verb: fork(2) })
      ],
      running: [forked, gives("fork: RunForked,CallInDoubt", { from: "running, asked" })],
      "unknown id": notFound
    }
  },
  get: {
    verb: () => Effect.map(Run.get(runId), ({ status }) => `head: ${status}`),
    cells: {
      accepted: gives("head: accepted"),
      running: gives("head: running"),
      waiting: (["waiting", "external", "in-doubt", "paused", "retry"] as const).map((from) =>
        gives("head: waiting", { from })
      ),
      completed: gives("head: completed"),
      cancelled: gives("head: cancelled"),
      stopped: gives("head: stopped"),
      failed: gives("head: failed"),
      "unknown id": notFound
    }
  },
  events: {
    verb: () => seen,
    cells: {
      ...everywhere(gives("the events to RunFinished")),
      accepted: gives("the events to RunAccepted"),
      running: gives("the events to RunFinished", {
        verb: watched,
        writes: ["CancelRequested", "TurnFailed", "RunFinished"]
      }),
      waiting: gives("the events to RunSuspended"),
      "unknown id": notFound
    }
  },
  remove: {
    verb: remove(),
    cells: {
      ...everywhere(gives("removed")),
      accepted: [gives("Fatal RunNotTerminal"), gives("Fatal RunNotTerminal", { verb: remove({ force: true }) })],
      running: [gives("Fatal RunNotTerminal"), gives("Fatal RunNotTerminal", { verb: remove({ force: true }) })],
      waiting: [gives("Fatal RunNotTerminal"), gives("removed", { verb: remove({ force: true }) })],
      "unknown id": notFound
    }
  },
  prune: {
    verb: prune(0),
    cells: {
      accepted: kept,
      running: kept,
      waiting: kept,
      completed: pruned,
      cancelled: pruned,
      stopped: pruned,
      failed: pruned,
      "unknown id": none
    }
  },
  recover: {
    verb: () => Effect.map(Run.recover([clerk]), (swept) => (swept.length === 0 ? "kept" : "taken")),
    cells: swept
  },
  work: {
    verb: () =>
      Effect.gen(function* () {
        let took = "kept"
        const worker = yield* begin(Run.work([clerk], { onDriven: () => Effect.sync(() => void (took = "taken")) }))
        yield* pass(250)
        yield* Fiber.interrupt(worker)
        return took
      }),
    cells: { ...swept, accepted: gives("taken", { writes: ["RunStarted", ...driven] }) }
  },
  list: {
    verb: () => Effect.map(Run.list(), (runs) => (runs.some((run) => run.runId === runId) ? "listed" : "not listed")),
    cells: { ...everywhere(gives("listed")), "unknown id": none }
  }
}

// ---- the tests

const casesOf = (row: Row, column: Column): ReadonlyArray<Case> => [row.cells[column]].flat()

const tested = Object.entries(table).flatMap(([name, row]) =>
  columns.flatMap((column) =>
    casesOf(row, column).map((one) => {
      const from = one.from ?? column
      const wrote = one.writes.length === 0 ? "no event" : one.writes.join(", ")
      return [`${name} · ${from}: ${wrote} · ${one.gives}`, from, one, one.verb ?? row.verb] as const
    })
  )
)

/** What is written since; nothing if the Run is gone. */
const since = (count: number) =>
  Effect.map(
    Effect.orElseSucceed(tagsOf(runId), () => []),
    (tags) => tags.slice(count)
  )

describe("docs/events.md, section 4", () => {
  it.effect.each(tested)("%s", ([, from, one, verb]) =>
    Effect.gen(function* () {
      const s: Situation = yield* ways[from]
      const before = (yield* s.here(since(0))).length
      expect(yield* s.drive(told(verb(s)))).toBe(one.gives)
      expect(yield* s.here(since(before))).toEqual(one.writes)
    })
  )
})

describe("the table of docs/events.md, section 4", () => {
  const page = readFileSync(new URL("../../../docs/events.md", import.meta.url), "utf8")
  const lines = page
    .slice(page.indexOf("## 4. Every verb in every status"))
    .split("\n")
    .filter((line) => line.startsWith("| "))
    .map((line) =>
      line
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim())
    )
  const [head = [], , ...body] = lines
  const nameOf = (cell = "") => /^`(\w+)`( (?:same|other) task)?/.exec(cell)?.slice(1).join("") ?? cell

  it("has the rows and columns of these tests", () => {
    expect(head.slice(1)).toEqual(columns)
    expect(body.map(([first]) => nameOf(first))).toEqual(Object.keys(table))
  })

  const cells = body.flatMap(([first = "", ...cells]) =>
    cells.map((cell, i) => {
      const text = cell === "same" ? (cells[0] ?? "") : cell === "as completed" ? (cells[3] ?? "") : cell
      return { name: nameOf(first), column: columns[i] ?? "accepted", text: `${text} ${first.split("`")[2]}`, cells }
    })
  )

  it.each(cells)("has a test for everything that it says of $name in $column", ({ cells, column, name, text }) => {
    const row = table[name]
    const own = row === undefined ? [] : casesOf(row, column)
    // Where the page says the same of all statuses, not every status can have all of it.
    const cases = row !== undefined && cells.includes("same") ? columns.flatMap((one) => casesOf(row, one)) : own
    const covered = cases.flatMap(({ gives, writes }) => [...writes, ...gives.split(/[ :,]+/)])
    const said = text.match(/\b[A-Z][a-z]+(?:[A-Z][a-z]+)*\b|\b(?:drives|void|kept|taken|removed|listed)\b/g) ?? []
    for (const word of said.filter((word) => word !== "Outcome" && word !== "Run")) {
      expect(covered).toContain(word === "drives" ? "AttemptStarted" : word)
    }
    expect(own.length === 0).toBe(text.startsWith("–"))
  })
})
