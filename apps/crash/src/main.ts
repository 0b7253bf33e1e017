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
  const pass = Points.make(job)
  const { actMillis = 2, trace } = job
  const mark = (what: Trace.What) => Effect.sync(() => void (trace !== undefined && Trace.mark(trace, what)))
  let frozen = false
  const act: Subject.Act = (entry) =>
    Effect.gen(function* () {
      yield* pass
      yield* Effect.sleep(actMillis)
      Ledger.happen(job.ledger, entry)
      if (job.freeze === true && !frozen) {
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
  const store = Layer.effect(
    CheckpointStore.CheckpointStore,
    Effect.map(Layer.build(Stores.layer(job.store)), (context) =>
      Points.store(Context.get(context, CheckpointStore.CheckpointStore), { pass, fenced: mark("fenced") })
    )
  )
  const services = Layer.mergeAll(
    store,
    Subject.model(() => job.team === true && Bill.charge(job)),
    Subject.handlers(act),
    ProcessOwner.layer,
    job.team === true ? Bill.budget : Layer.empty
  )
  const agent = Subject.agent(job)
  const { runId } = job
  const driven =
    runId === undefined ? Effect.andThen(say("ready"), work(agent)) : Effect.flatMap(drive(agent, runId, mark), say)
  yield* Effect.provide(driven, services)
})

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
  const parent = process.ppid
  yield* Effect.sleep("1 second").pipe(Effect.repeat({ while: () => process.ppid === parent }))
  yield* Effect.sync(() => process.kill(process.pid, "SIGKILL"))
})

Effect.raceFirst(program, whileParentLives).pipe(Effect.provide(NodeFileSystem.layer), NodeRuntime.runMain)
