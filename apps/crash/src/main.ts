/**
 * A worker process: drives one Run, or some beside each other, or sweeps for Runs that nobody drives, and may be told to die on the way.
 *
 * Prints one line of JSON for each Run that it drove to an end or a rest: the Outcome, or the error.
 */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { CheckpointStore, ProcessOwner, Run } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { writeSync } from "node:fs"
import * as Bill from "./Bill.ts"
import { drive } from "./Drive.ts"
import * as Job from "./Job.ts"
import * as Ledger from "./Ledger.ts"
import * as Points from "./Points.ts"
import * as Stores from "./Stores.ts"
import * as Subject from "./Subject.ts"
import * as Trace from "./Trace.ts"

const program = Effect.gen(function* () {
  const job = yield* Job.decode(process.argv[2])
  const agent = Subject.agent(job)
  const { runId, runs } = job
  const driven =
    runs !== undefined
      ? Effect.forEach(runs, (one) => beside(agent, { ...job, ...one }), { concurrency: 3, discard: true })
      : runId === undefined
        ? Effect.provide(Effect.andThen(say("ready"), work(agent)), services(job))
        : Effect.flatMap(alone(agent, { ...job, runId }), say)
  yield* Effect.provide(driven, Stores.layer(job.store))
})

type Alone = Job.Job & { readonly runId: string }

const alone = (agent: Subject.Any, job: Alone) =>
  Effect.provide(
    drive(agent, job.runId, (what) => marked(job, what)),
    services(job)
  )

/** One Run of several that share the process and the connection, and nothing else. */
const beside = (agent: Subject.Any, job: Alone) =>
  Effect.flatMap(alone(agent, job), (end) => say({ runId: job.runId, end }))

const marked = ({ trace }: Job.Job, what: Trace.What) =>
  Effect.sync(() => void (trace !== undefined && Trace.mark(trace, what)))

/** What a Run needs, in the store that is provided. */
const services = (job: Job.Job) => {
  const pass = Points.make(job)
  const store = Layer.effect(
    CheckpointStore.CheckpointStore,
    Effect.map(CheckpointStore.CheckpointStore, (real) => Points.store(real, { pass, fenced: marked(job, "fenced") }))
  )
  return Layer.mergeAll(
    store,
    Subject.model(() => job.team === true && Bill.charge(job)),
    Subject.handlers(acting(job, pass)),
    ProcessOwner.layer,
    job.team === true ? Bill.budget : Layer.empty
  )
}

const acting = ({ actMillis = 2, freeze: freezes, ledger }: Job.Job, pass: Points.Pass): Subject.Act => {
  let frozen = false
  return (entry) =>
    Effect.gen(function* () {
      yield* pass
      yield* Effect.sleep(actMillis)
      Ledger.happen(ledger, entry)
      if (freezes === true && !frozen) {
        frozen = true
        freeze()
        // At once, so that the result is written before any timer tells it that the lease is lost.
        return Ledger.receipt(entry.item)
      }
      yield* pass
      yield* Effect.sleep(actMillis)
      yield* pass
      return Ledger.receipt(entry.item)
    })
}

/** Stops the process until SIGCONT. The signal may take a moment, in which nothing else may run here. */
const freeze = (): void => {
  writeSync(1, "frozen\n")
  const stopped = Date.now()
  process.kill(process.pid, "SIGSTOP")
  while (Date.now() - stopped < 100);
}

const say = (value: unknown) => Effect.sync(() => void process.stdout.write(`${JSON.stringify(value)}\n`))

/** Drives what nobody drives until SIGTERM. */
const work = (agent: Subject.Any) =>
  Run.work([agent], { every: "50 millis", onDriven: (one) => (isWrong(one) ? complain(one) : Effect.void) })

/** A store that answers too late, and another worker that was faster, are no faults: the next sweep sees to the Run. */
const isWrong = (one: Run.Recovered): boolean =>
  one._tag === "Died" ||
  (one._tag === "Failed" && one.error._tag === "Fatal" && one.error.reason._tag !== "OwnershipLost")

/** On standard error, where the tests look for it. */
const complain = (problem: unknown) => Effect.sync(() => void process.stderr.write(`${JSON.stringify(problem)}\n`))

/** A worker does not outlive the tests that started it, however they end. */
const whileParentLives = Effect.gen(function* () {
  // It is told who that is: somebody who died while this process started is its parent no more.
  const parent = Number(process.env["PARENT"])
  yield* Effect.sleep("1 second").pipe(Effect.repeat({ while: () => process.ppid === parent }))
  yield* Effect.sync(() => process.kill(process.pid, "SIGKILL"))
})

Effect.raceFirst(program, whileParentLives).pipe(Effect.provide(NodeFileSystem.layer), NodeRuntime.runMain)
