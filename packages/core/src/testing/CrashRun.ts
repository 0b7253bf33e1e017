/**
 * Drives one Run through as many lives as it takes: each process may die, the next one goes on.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type { Handler } from "effect/ai/Tool"
import type { Agent, Services } from "../Agent.ts"
import type { AgentTool } from "../AgentTool.ts"
import { type Append, CheckpointStore } from "../CheckpointStore.ts"
import { canonical } from "../Digest.ts"
import { readEvents } from "../Journal.ts"
import type { Outcome, Waiting } from "../Outcome.ts"
import { Owner } from "../Owner.ts"
import * as Route from "../Route.ts"
import * as Run from "../Run.ts"
import type { Answer, RunEvent } from "../RunEvent.ts"
import { ToolContext } from "../ToolContext.ts"
import * as AnswerLosingStore from "./AnswerLosingStore.ts"
import { type Execution, Ledger, Moment, type Plan } from "./CrashLedger.ts"
import * as DyingStore from "./DyingStore.ts"
import * as Mortal from "./Mortal.ts"

/** What is known outside about a call that waits. */
export interface Known {
  /** Its effect took place. */
  readonly happened: boolean
  /** What its handler returned, encoded, if it came that far. */
  readonly result?: unknown
}

/** What is crashed. */
export interface Subject<A extends Agent = Agent> {
  readonly agent: A
  /** Default "go". */
  readonly task?: string
  /** Everything that the agent needs but the store: model, handlers, plugins, reconcilers. Built anew in each process. */
  readonly services: Layer.Layer<Exclude<Services<A>, CheckpointStore>, unknown>
  /** An empty store for one Run. */
  readonly store: Effect.Effect<CheckpointStore["Service"], unknown, Scope.Scope>
  /**
   * What a person answers. By default approvals are given; a call in doubt is run again if its effect did not take place,
   * takes the result if that is known, and is told as failed else.
   */
  readonly answer?: (wait: Waiting, known: Known) => Answer
}

/** What came of a Run. */
export interface Life {
  readonly runId: string
  readonly plan: Plan
  readonly ledger: Ledger
  readonly store: CheckpointStore["Service"]
  /** How it ended; undefined if it never did. */
  readonly outcome: Outcome<unknown> | undefined
}

/** More lives than any plan needs. */
const maxLives = 30
/** A life that neither ends nor dies within this time has stalled. */
const longestLife = "10 seconds"

type End = Exit.Exit<Outcome<unknown>, unknown> | "died" | "stalled"

/** The Run, until it ends or has no life left. */
export const make = (subject: Subject, plan: Plan, runId: string): Effect.Effect<Life, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const ledger = new Ledger(plan)
    const store = yield* subject.store
    let outcome: Outcome<unknown> | undefined
    while (outcome === undefined && ledger.lives < maxLives && ledger.problems.length === 0) {
      ledger.lives++
      const end = yield* life(subject, { runId, plan, ledger, store, outcome })
      if (end === "died") continue
      if (end === "stalled") ledger.problems.push(`life ${ledger.lives} neither ended nor died in ${longestLife}`)
      else if (Exit.isFailure(end)) {
        if (!isStoreUnavailable(end.cause))
          ledger.problems.push(`life ${ledger.lives} failed: ${Cause.pretty(end.cause)}`)
      } else if (end.value._tag === "Suspended") {
        yield* answered(subject, { runId, plan, ledger, store, outcome }, end.value.waiting)
      } else outcome = end.value
    }
    if (outcome === undefined && ledger.problems.length === 0) ledger.problems.push(`no end within ${maxLives} lives`)
    return { runId, plan, ledger, store, outcome }
  })

const isStoreUnavailable = (cause: Cause.Cause<unknown>): boolean => {
  const error = Cause.squash(cause)
  return typeof error === "object" && error !== null && "reason" in error && tagOf(error.reason) === "StoreUnavailable"
}

const tagOf = (reason: unknown): unknown =>
  typeof reason === "object" && reason !== null && "_tag" in reason ? reason._tag : undefined

/** One process: it drives the Run until that ends, rests, or the process dies. */
const life = (subject: Subject, one: Life): Effect.Effect<End, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const { ledger, plan, runId, store } = one
    const { agent, task = "go" } = subject
    const mortal = yield* Mortal.make
    const lossy =
      plan.loses === undefined ? store : AnswerLosingStore.make(store, () => ledger.appends - 1 === plan.loses)
    const dying = DyingStore.make(lossy, mortal, (append) => fate(one, append))
    const built = yield* Layer.build(Layer.fresh(subject.services))
    const context = withHandlers(built, toolsOf(agent), (execution) => observed(one, mortal, execution)).pipe(
      Context.add(CheckpointStore, dying),
      Context.add(Owner, { name: Effect.succeed(`${runId} life ${ledger.lives}`), isDead: () => Effect.succeed(true) })
    )
    const known = (yield* store.head(runId)) !== undefined
    const driven: Effect.Effect<Outcome<unknown>, unknown, Services<Agent>> = known && ledger.lives % 2 === 0
      ? Run.resume(agent, { runId })
      : Run.start(agent, { runId, task })
    // Whatever the agent needs is in the context, by the type of Subject.
    const fiber = yield* Effect.forkDetach(Effect.provideContext(driven, context as Context.Context<Services<Agent>>))
    const ended: Effect.Effect<End> = Effect.raceFirst(Fiber.await(fiber), Effect.as(mortal.died, "died" as const))
    const end = yield* Effect.timeoutOrElse(ended, {
      duration: longestLife,
      orElse: () => Effect.succeed("stalled" as const)
    })
    // Nothing of a dead process acts again, so it need not be waited for; this only stops its timers.
    if (typeof end === "string") yield* Effect.forkDetach(Fiber.interrupt(fiber))
    return mortal.isDead() ? "died" : end
  })

/** What happens at an append, and what comes before it from outside. */
const fate = ({ ledger, plan, runId, store }: Life, { events }: Append): Effect.Effect<DyingStore.Fate> =>
  Effect.gen(function* () {
    const number = ledger.appends++
    const outside = Effect.provideService(CheckpointStore, store)
    if (plan.message === number) yield* Effect.ignore(outside(Run.send({ runId, message: "Hurry.", id: "m" })))
    if (plan.cancel === number) yield* Effect.ignore(outside(Run.cancel({ runId })))
    const kinds = events.map(kindOf).join(", ")
    if (ledger.reach(`before append ${number} (${kinds})`)) return "die-before"
    return ledger.reach(`after append ${number} (${kinds})`) ? "die-after" : "live"
  })

/** All tools, those of its sub-agents included. */
const toolsOf = (agent: Agent): ReadonlyArray<AgentTool> =>
  [agent, ...Route.below([agent])].flatMap(({ tools }) => tools)

type Observe = (execution: {
  readonly tool: AgentTool
  readonly arguments: unknown
  readonly handler: Effect.Effect<unknown, unknown>
}) => Effect.Effect<unknown, unknown>

/** The context with every handler observed. */
const withHandlers = (
  context: Context.Context<never>,
  tools: ReadonlyArray<AgentTool>,
  observe: Observe
): Context.Context<never> => {
  const services = new Map(context.mapUnsafe)
  const wrapped = new Set<string>()
  for (const tool of tools) {
    const known: Handler<string> | undefined = services.get(tool.tool.id)
    if (known === undefined || wrapped.has(tool.tool.id)) continue
    wrapped.add(tool.tool.id)
    const handler = (input: unknown, own: unknown) =>
      observe({ tool, arguments: input, handler: Effect.suspend(() => known.handler(input, own)) })
    services.set(tool.tool.id, { ...known, handler })
  }
  return Context.makeUnsafe(services)
}

/** One execution: it can die before, inside and after the handler, and what it does is written down. */
const observed = (
  one: Life,
  mortal: Mortal.Mortal,
  { arguments: input, handler, tool }: Parameters<Observe>[0]
): Effect.Effect<unknown, unknown> =>
  Effect.gen(function* () {
    const { ledger } = one
    const { callId, idempotencyKey: key, runId } = yield* ToolContext
    const { effect, name } = tool
    const point = (where: string) =>
      mortal.guard(Effect.suspend(() => (ledger.reach(`${where} the handler of ${callId}`) ? mortal.die : Effect.void)))
    yield* point("before")
    yield* mortal.guard(mayRun(one, runId, { callId, effect }))
    const execution: Execution = { key, callId, tool: name, effect, arguments: canonical(input), happened: 0 }
    ledger.executions.push(execution)
    const counted = Effect.sync(() => void execution.happened++)
    const happens: Moment["happens"] = (happening) =>
      Effect.andThen(
        point("inside"),
        Effect.tap(happening, () => Effect.andThen(counted, point("after the effect in")))
      )
    const result = yield* mortal.guard(Effect.provideService(handler, Moment, { happens }))
    if (execution.happened === 0) yield* counted
    const encoded = yield* Effect.option(tool.encodeSuccess(result))
    if (encoded._tag === "Some") execution.returned = canonical(encoded.value)
    yield* point("after")
    return result
  })

/** L1 and R1, seen from the handler: its start is committed, and its result is not. */
const mayRun = (
  { ledger, store }: Life,
  runId: string,
  { callId, effect }: { readonly callId: string; readonly effect: string }
): Effect.Effect<void> =>
  Effect.gen(function* () {
    const events = yield* store.read(runId, { after: 0, limit: 10_000 })
    const own = events.filter(({ body }) => body.includes(`"callId":"${callId}"`)).map(({ body }) => kindOf(body))
    if (effect !== "readonly" && own.findLast((kind) => kind !== "CallAnswered") !== "ToolCallStarted") {
      ledger.problems.push(`the handler of ${callId} began before its start was committed`)
    }
    if (own.includes("ToolCallCompleted")) ledger.problems.push(`${callId} ran after it was completed`)
  }).pipe(Effect.orDie)

const kindOf = (body: string): string => /"_tag":"(\w+)"/.exec(body)?.[1] ?? body.slice(0, 20)

/** All events of a Run. */
export const eventsOf = (
  store: CheckpointStore["Service"],
  runId: string
): Effect.Effect<ReadonlyArray<RunEvent>, unknown> =>
  Effect.gen(function* () {
    const events: Array<RunEvent> = []
    const entry = yield* store.head(runId)
    yield* readEvents(store, runId, { after: 0, seq: entry?.seq ?? 0, each: ({ event }) => void events.push(event) })
    return events
  })

/** The ids of a Run and of all Runs below it. */
export const treeOf = (
  store: CheckpointStore["Service"],
  runId: string
): Effect.Effect<ReadonlyArray<string>, unknown> =>
  Effect.gen(function* () {
    const children = yield* store.list({ parent: runId }, { limit: 1000 })
    const below = yield* Effect.forEach(children, (child) => treeOf(store, child.runId))
    return [runId, ...below.flat()]
  })

/** Answers everything that the Run waits for; a Run that rests without saying why has stalled. */
const answered = (subject: Subject, one: Life, waiting: ReadonlyArray<Waiting>): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { ledger, runId, store } = one
    if (waiting.length === 0) ledger.problems.push("it rests and waits for nothing: a silent stall")
    for (const wait of waiting) {
      if (wait.kind === "paused") continue
      if (wait.kind === "in-doubt") ledger.doubts++
      const { runId: asking } = yield* Route.along(runId, wait.path ?? [])
      const key = `${asking}/${wait.id}`
      const returned = ledger.returned(key)
      const known: Known = {
        happened: ledger.happened(key),
        ...(returned === undefined ? undefined : { result: JSON.parse(returned) })
      }
      const answer = (subject.answer ?? byDefault)(wait, known)
      const said = Run.answer(subject.agent, { runId, callId: wait.id, path: wait.path ?? [], answer, by: "suite" })
      const exit = yield* Effect.exit(Effect.provideService(said, CheckpointStore, store))
      if (Exit.isFailure(exit)) ledger.problems.push(`the answer to ${wait.id} failed: ${Cause.pretty(exit.cause)}`)
    }
  })

const byDefault = ({ digest = "", kind }: Waiting, { happened, result }: Known): Answer => {
  if (kind === "approval") return { _tag: "Approve", digest }
  if (kind === "external") return { _tag: "Value", value: null }
  if (!happened) return { _tag: "RunAgain" }
  return result === undefined
    ? { _tag: "TellFailed", reason: "It happened, and its result is lost." }
    : { _tag: "TakeResult", value: JSON.parse(JSON.stringify(result)) }
}
