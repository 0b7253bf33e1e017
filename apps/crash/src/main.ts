/**
 * A worker process: drives one Run, or sweeps for Runs that nobody drives, and may be told to die on the way.
 *
 * Prints one line of JSON when it ends by itself: the Outcome, or the error.
 */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { CheckpointStore, ProcessOwner, Run } from "@waystone/core"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as Job from "./Job.ts"
import * as Ledger from "./Ledger.ts"
import * as Points from "./Points.ts"
import * as Stores from "./Stores.ts"
import * as Subject from "./Subject.ts"

const program = Effect.gen(function* () {
  const job = yield* Job.decode(process.argv[2])
  const { pass, passed } = Points.make(job.dieAt)
  let frozen = false
  const act: Subject.Act = (entry) =>
    Effect.gen(function* () {
      if (job.freeze === true && !frozen) {
        frozen = true
        process.stdout.write("frozen\n")
        process.kill(process.pid, "SIGSTOP")
        // The signal is delivered before anything else runs here.
        yield* Effect.sleep("50 millis")
      }
      yield* pass
      yield* Effect.sleep("2 millis")
      Ledger.happen(job.ledger, entry)
      yield* pass
      yield* Effect.sleep("2 millis")
      yield* pass
      return Ledger.receipt(entry.item)
    })
  const store = Layer.effect(
    CheckpointStore.CheckpointStore,
    Effect.map(Layer.build(Stores.layer(job.store)), (context) =>
      Points.store(Context.get(context, CheckpointStore.CheckpointStore), pass)
    )
  )
  const services = Layer.mergeAll(store, Subject.model, Subject.handlers(act), ProcessOwner.layer)
  const agent = Subject.agent(job)
  const { runId } = job
  const driven =
    runId === undefined
      ? Effect.andThen(say("ready"), sweep(agent))
      : Effect.flatMap(drive(agent, runId), (end) => say({ end, points: passed() }))
  yield* Effect.provide(driven, services)
})

type Agent = ReturnType<typeof Subject.agent>

const say = (value: unknown) => Effect.sync(() => void process.stdout.write(`${JSON.stringify(value)}\n`))

/** Another worker may hold it: then it is asked for again until it ends or rests. */
const drive = (agent: Agent, runId: string) =>
  Run.start(agent, { runId, task: "go" }).pipe(
    Effect.retry({
      while: ({ reason }) => reason._tag === "RunBusy" || reason._tag === "OwnershipLost",
      schedule: Schedule.spaced("30 millis")
    }),
    Effect.match({ onSuccess: (outcome): unknown => outcome, onFailure: ({ reason }) => ({ _tag: reason._tag }) })
  )

/** New Runs first, then those that nobody drives any more, until SIGTERM: what is being driven is then left to others. */
const sweep = (agent: Agent) =>
  Effect.gen(function* () {
    const accepted = yield* Run.list({ status: "accepted", limit: 10 })
    const resume = ({ runId }: Run.RunInfo) => Effect.ignore(Run.resume(agent, { runId }))
    yield* Effect.forEach(accepted, resume, { concurrency: 10, discard: true })
    yield* Run.recover([agent])
  }).pipe(Effect.ignore, Effect.repeat(Schedule.spaced("50 millis")), Effect.asVoid)

program.pipe(Effect.provide(NodeFileSystem.layer), NodeRuntime.runMain)
