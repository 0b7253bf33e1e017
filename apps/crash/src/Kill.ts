/**
 * Drives Runs through worker processes until they are completed, whatever dies on the way, and says what went wrong.
 */
import { CheckpointStore, Run, type RunEvent } from "@waystone/core"
import { PairingChecker } from "@waystone/core/testing"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Bill from "./Bill.ts"
import type * as Job from "./Job.ts"
import * as Ledger from "./Ledger.ts"
import { patient } from "./Patient.ts"
import * as Person from "./Person.ts"
import * as Subject from "./Subject.ts"
import * as Trace from "./Trace.ts"
import * as Worker from "./Worker.ts"

/** What is done to one Run. */
export interface Plan {
  readonly job: Job.Job & { readonly runId: string; readonly trace: string; readonly deaths: ReadonlyArray<number> }
  /** How many processes compete for the Run. */
  readonly workers: number
}

export interface Report {
  readonly problems: ReadonlyArray<string>
  readonly lives: number
  /** Lives that ended by SIGKILL. */
  readonly killed: number
  /** Deaths that were planned at points that the Run did not have. */
  readonly missed: ReadonlyArray<number>
  /** Attempts that took the Run over from a dead one. */
  readonly takeovers: number
  /** Of these, those by a process that had competed with the dead one from the start. */
  readonly byRivals: number
  /** Lives that were kept out by another one: the Run was busy, the Attempt lost, or an append fenced. */
  readonly refused: number
  /** Calls that a person was asked about. */
  readonly doubts: number
  /** Effects of readonly and idempotent tools that took place again. */
  readonly again: number
  /** Points that all lives passed together. */
  readonly points: number
}

/** Rounds of workers until it counts as stuck. */
const maxRounds = 12

const End = Schema.Struct({
  _tag: Schema.String,
  output: Schema.optionalKey(Schema.Unknown),
  message: Schema.optionalKey(Schema.String)
})
const decodeEnd = Schema.decodeUnknownOption(Schema.fromJsonString(End))
const decodeShared = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ runId: Schema.String, end: Schema.Unknown }))
)

/** A Run on its way, with the lives that drove it. */
export class Driven {
  readonly rounds: Array<ReadonlyArray<Worker.Life>> = []
  readonly problems: Array<string> = []
  doubts = 0
  output: unknown
  readonly plan: Plan

  constructor(plan: Plan) {
    this.plan = plan
  }

  get killed(): number {
    return this.rounds.flat().filter(({ signal }) => signal === "SIGKILL").length
  }

  get isOpen(): boolean {
    return this.output === undefined && this.problems.length === 0
  }

  /** It ended before all deaths that were planned for it. */
  get isMissed(): boolean {
    return this.output !== undefined && this.killed < this.plan.job.deaths.length
  }

  /** Takes in a round of lives, whose output is what they said of this Run. */
  lived(lives: ReadonlyArray<Worker.Life>): void {
    this.rounds.push(lives)
    for (const life of lives) {
      if (life.signal === "SIGKILL") continue
      if (life.code !== 0 || life.errors !== "") this.problems.push(`a worker ended with ${life.code}: ${life.errors}`)
      const end = decodeEnd(life.output.trim())
      if (end._tag === "None") this.problems.push(`a worker said ${life.output}`)
      else if (end.value._tag === "Completed") this.output = end.value.output
      else if (end.value._tag !== "Suspended") this.problems.push(`it ended as ${JSON.stringify(end.value)}`)
    }
    if (this.isOpen && this.rounds.length === maxRounds) this.problems.push(`it did not end in ${maxRounds} rounds`)
  }
}

/** Has processes of its own drive a Run until it has ended, or died as often as it was to. */
export const begin = Effect.fnUntraced(function* (plan: Plan) {
  const driven = new Driven(plan)
  const jobs = Array.from({ length: plan.workers }, () => plan.job)
  while (driven.isOpen && (driven.rounds.length === 0 || driven.killed < plan.job.deaths.length)) {
    driven.lived(yield* Effect.forEach(jobs, Worker.run, { concurrency: "unbounded" }))
    yield* answered(driven)
  }
  return driven
})

/**
 * Has new processes drive what `begin` left of Runs of one kind, to the end. They share them: what a Run went through is in
 * the store, and a start takes far longer than a Run.
 */
export const goOn = Effect.fnUntraced(function* (all: ReadonlyArray<Driven>) {
  for (;;) {
    const open = all.filter(({ isOpen }) => isOpen)
    const [first] = open
    if (first === undefined) return
    const { runId: _, trace: __, ...job } = first.plan.job
    const runs = open.map(({ plan }) => ({ runId: plan.job.runId, ledger: plan.job.ledger, trace: plan.job.trace }))
    const jobs = Array.from({ length: first.plan.workers }, () => ({ ...job, deaths: [], runs }))
    const lives = yield* Effect.forEach(jobs, Worker.run, { concurrency: "unbounded" })
    for (const one of open) one.lived(lives.map((life) => ({ ...life, output: saidOf(life, one.plan.job.runId) })))
    yield* Effect.forEach(open, answered, { concurrency: 3, discard: true })
  }
})

/** What a life that drove several Runs said of one. */
const saidOf = ({ output }: Worker.Life, runId: string): string => {
  const said = output
    .split("\n")
    .flatMap((line) => Option.toArray(decodeShared(line)))
    .find((one) => one.runId === runId)
  return said === undefined ? output : JSON.stringify(said.end)
}

const answered = Effect.fnUntraced(function* (driven: Driven) {
  if (driven.isOpen) driven.doubts += yield* Person.answer(driven.plan.job)
})

/** What became of a Run, in the store that is provided, which is the one of its job. */
export const report = Effect.fnUntraced(function* (
  driven: Driven
): Effect.fn.Return<Report, unknown, CheckpointStore.CheckpointStore> {
  const { doubts, killed, output, rounds } = driven
  const { job } = driven.plan
  const problems = [...driven.problems]
  const effects = Ledger.read(job.ledger)
  const trace = Trace.read(job.trace)
  const points = trace.filter(({ what }) => what === "point").length
  const missed = job.deaths.filter((point) => point >= points)
  if (killed !== job.deaths.length - missed.length) problems.push(`${killed} deaths, planned ${job.deaths.join(", ")}`)
  const counts = {
    lives: rounds.flat().length,
    killed,
    missed,
    refused: new Set(trace.filter(({ what }) => what !== "point").map(({ pid }) => pid)).size,
    doubts,
    again: Math.max(0, effects.length - Subject.right(job).items.length),
    points
  }
  const right = Subject.right(job)
  // A Run that a worker could not drive may not even exist.
  if (problems.length > 0) return { problems, ...counts, takeovers: 0, byRivals: 0 }
  const below = yield* patient(Run.list({ parent: job.runId }))
  const trees = yield* Effect.forEach([job.runId, ...below.map(({ runId }) => runId)], (runId) =>
    patient(Effect.map(Stream.runCollect(Run.events(runId)), (all) => all.map(({ event }) => event)))
  )
  const [events = [], ...others] = trees
  problems.push(...wrongEffects(job, effects), ...wrongEvents(right.items, trees.flat()))
  if (job.team === true) problems.push(...Bill.wrong(job, events, others))
  if (output !== right.answer) problems.push(`its answer is ${String(output)}`)
  for (const runId of [job.runId, ...below.map(({ runId }) => runId)]) problems.push(...(yield* left(runId)))
  return { problems, ...counts, ...takeovers(events, rounds) }
})

/** What must not be left of a Run that has ended, and what providers would not take of it. */
const left = Effect.fnUntraced(function* (runId: string) {
  const head = yield* patient(Effect.flatMap(CheckpointStore.CheckpointStore, (store) => store.head(runId)))
  const pairing = yield* PairingChecker.ofRun(runId)
  return [
    ...(head?.owner === undefined ? [] : [`${runId} is still held by ${head.owner}`]),
    ...(head?.status === "completed" ? [] : [`${runId} is ${head?.status}`]),
    ...pairing.map(({ problem, seq }) => `${runId}: pairing at ${seq}: ${problem}`)
  ]
})

const takeovers = (events: ReadonlyArray<RunEvent.RunEvent>, rounds: ReadonlyArray<ReadonlyArray<Worker.Life>>) => {
  const attempts = events.flatMap((event) => (event._tag === "AttemptStarted" ? [event] : []))
  /** Owners name their pid (ProcessOwner). */
  const owns = ({ pid }: Worker.Life) => attempts.some(({ owner }) => owner.split(" ")[3] === String(pid))
  return {
    takeovers: attempts.filter(({ recovered }) => recovered).length,
    byRivals: rounds.filter((lives) => lives.filter(owns).length > 1).length
  }
}

const wrongEffects = (job: Job.Job, effects: ReadonlyArray<Ledger.Entry>): ReadonlyArray<string> =>
  Subject.right(job).items.flatMap((item) => {
    const { effect } = job
    const own = effects.filter((one) => one.item === item)
    const keys = new Set(own.map(({ key }) => key)).size
    if (own.length === 0) return [`the effect of ${item} was lost`]
    // A readonly turn's reply can be lost with its results, and a new turn has new keys.
    if (keys !== 1 && effect !== "readonly") return [`${item} happened under ${keys} keys`]
    return effect === "unsafe" && own.length > 1 ? [`${item} happened ${own.length} times`] : []
  })

/** Each call has one result, in the journal, and it is the one that its effect gave. */
const wrongEvents = (items: ReadonlyArray<string>, events: ReadonlyArray<RunEvent.RunEvent>): ReadonlyArray<string> => {
  // Those of sub-agents are their answers, which the root's answer is made of.
  const results = events.flatMap((event) =>
    event._tag === "ToolCallCompleted" && event.child === undefined ? [event] : []
  )
  const given = results.map(({ isFailure, result }) => JSON.stringify({ isFailure, result })).toSorted()
  const right = items.map((item) => JSON.stringify({ isFailure: false, result: { receipt: Ledger.receipt(item) } }))
  return JSON.stringify(given) === JSON.stringify(right.toSorted())
    ? []
    : [`results in the journal: ${given.join(", ")}`]
}
