/**
 * Begins a Run of the repairer or of a team, or goes on with one, and fails unless everything is as it should be.
 */
import { Run, RunError } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as Agent from "./Agent.ts"
import { NotRepaired, Unusable } from "./Complaint.ts"
import * as Demo from "./Demo.ts"
import { isThere, Project } from "./Project.ts"
import { again, type Choice, offline } from "./model/Choice.ts"
import * as Rules from "./approval/Rules.ts"
import * as Rejected from "./Rejected.ts"
import type { Scenario } from "./scenario/Scenario.ts"
import * as Layers from "./Layers.ts"
import * as Status from "./Status.ts"
import { Keeping, type Store } from "./Stores.ts"

export interface Wanted {
  readonly runId: string
  readonly task?: string | undefined
  readonly scenario?: Scenario | undefined
}

/** Starts a Run on what is provided; fails if the project is not repaired, or the scenario is not proven. */
export const start = Effect.fnUntraced(function* ({ runId, scenario, task = Agent.task }: Wanted) {
  const agent = scenario?.team === true ? Agent.planner() : Agent.repairer(scenario?.firstPart)
  return yield* judged(Demo.run({ agent, runId, begin: { _tag: "Start", task }, scenario }))
})

export interface Again {
  readonly runId: string
  readonly store: Store
  /** The model that goes on with it. */
  readonly model: Choice
  /** The rules that hold from now on; see `Layers`. */
  readonly policy?: string | undefined
  /** It may go on under other rules than before. Default false. */
  readonly newRules?: boolean
  /** Where its files are now, if not where it worked before. */
  readonly folder?: string | undefined
  readonly scenario?: Scenario | undefined
}

/** Goes on with a Run of the store, in the folder that it works on. */
export const resume = Effect.fnUntraced(function* ({
  folder,
  model,
  newRules = false,
  policy,
  runId,
  scenario,
  store
}: Again) {
  const found = yield* Effect.provide(look(runId, folder), Layers.looking(store))
  const project = Project.again(folder ?? found.folder, runId)
  const all = Layers.layer({ project, store, model, policy, scenario })
  const driven = Effect.gen(function* () {
    const without = yield* Rules.left(runId, found.rules, newRules)
    const begin = { _tag: "Resume", task: found.task, reopen: found.rejected, without } as const
    return yield* judged(Demo.run({ agent: found.agent, runId, begin, scenario }))
  })
  return yield* Effect.provide(driven, all).pipe(
    Effect.catchTag("KeyMissing", ({ message }) =>
      Effect.fail(new Unusable({ message: `${message} The run is as it was; then: ${found.command}${again(model)}` }))
    )
  )
})

/**
 * Drives a Run that is to be cancelled to its end, and shows nothing. Somebody else may take it meanwhile: then they do.
 * It ends also where its folder is gone.
 */
export const finish = Effect.fnUntraced(function* ({ runId, store }: Pick<Again, "runId" | "store">) {
  const { agent, info } = yield* Effect.provide(agentOf(runId), Layers.looking(store))
  const { session } = info
  const there = session !== undefined && (yield* isThere(session))
  const project = there ? Project.again(session, runId) : Project.gone(session ?? "")
  const services = Layers.layer({ project, store, model: offline })
  // Nothing is begun any more, so it does not matter which rules hold.
  const without = yield* Effect.provide(Rules.ofRun(runId), Layers.looking(store))
  yield* Run.resume(agent, { runId, by: "user", without }).pipe(
    Effect.catchReason("Retryable", "RunBusy", () => Effect.void),
    Effect.provide(services)
  )
})

/** A Run that goes its own way. Fails if it is a worker's, also if that has ended: then its root is the one to name. */
export const rootOf = Effect.fnUntraced(function* (runId: string) {
  const info = yield* Run.get(runId)
  const { parent } = info
  if (parent === undefined) return info
  return yield* new RunError.Fatal({ reason: new RunError.RunIsChild({ runId, rootId: parent.rootId }) })
})

/** The agent that a Run goes on with. Fails if another program made it, or if it is a worker's. */
export const agentOf = Effect.fnUntraced(function* (runId: string) {
  const info = yield* rootOf(runId)
  const agent = Agent.named(info.agent)
  if (agent !== undefined) return { agent, info }
  const message = `run ${runId} is one of the agent ${info.agent}: this demo has ${Agent.names.join(" and ")} alone.`
  return yield* new Unusable({ message })
})

const judged = <E, R>(good: Effect.Effect<boolean, E, R>) =>
  Effect.flatMap(good, (good) => (good ? Effect.void : Effect.fail(new NotRepaired())))

/** What is needed to go on with it, or why that cannot be. */
const look = Effect.fnUntraced(function* (runId: string, elsewhere: string | undefined) {
  const { agent, info } = yield* agentOf(runId)
  const { command } = yield* Keeping
  const driver = yield* Status.driver(info)
  if (driver !== undefined) {
    return yield* new Unusable({
      message: `run ${runId} is being driven by another process. To see it: ${command(`events ${runId} --follow`)} ; to make it rest: ${command(`pause ${runId}`)} (If that process has just died, try again in 10 seconds.)`
    })
  }
  const { session, status } = info
  if (session === undefined)
    return yield* new Unusable({ message: `run ${runId} does not say which folder it works on.` })
  if (elsewhere === undefined && !(yield* isThere(session))) {
    return yield* new Unusable({
      message: `run ${runId} cannot go on: the folder ${session} is gone: give a copy of it by --dir.`
    })
  }
  const rejected = status === "failed" && Rejected.is(yield* last(info))
  const task = Status.taskOf((yield* accepted(runId)).task)
  const rules = yield* Rules.ofRun(runId)
  return { agent, folder: session, task, rejected, rules, command: command(`resume ${runId}`) }
})

/** The first event of every Run. */
export const accepted = Effect.fnUntraced(function* (runId: string) {
  const [first] = yield* Stream.runCollect(Stream.take(Run.events(runId, { follow: false }), 1))
  if (first?.event._tag === "RunAccepted") return first.event
  return yield* new RunError.Fatal({ reason: new RunError.CheckpointCorrupt({ runId, seq: 1, path: "$" }) })
})

/** The last event of a Run that has ended. */
const last = ({ runId, seq }: Pick<Run.RunInfo, "runId" | "seq">) =>
  Effect.map(
    Stream.runLast(Run.events(runId, { after: seq - 1, follow: false })),
    (last) => Option.getOrUndefined(last)?.event
  )
