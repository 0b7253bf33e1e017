/**
 * Drives one Run through worker processes until it is completed, whatever dies on the way, and says what went wrong.
 */
import { CheckpointStore, Run, type RunEvent } from "@waystone/core"
import { PairingChecker } from "@waystone/core/testing"
import * as Effect from "effect/Effect"
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

const decodeEnd = Schema.decodeUnknownOption(
  Schema.fromJsonString(
    Schema.Struct({
      _tag: Schema.String,
      output: Schema.optionalKey(Schema.Unknown),
      message: Schema.optionalKey(Schema.String)
    })
  )
)

/** One Run, in the store that is provided, which is the one of the job. */
export const run = Effect.fnUntraced(function* ({
  job,
  workers
}: Plan): Effect.fn.Return<Report, unknown, CheckpointStore.CheckpointStore> {
  const problems: Array<string> = []
  const rounds: Array<ReadonlyArray<Worker.Life>> = []
  let doubts = 0
  let output: unknown
  while (output === undefined && problems.length === 0) {
    if (rounds.length === maxRounds) {
      problems.push(`it did not end in ${maxRounds} rounds`)
      break
    }
    const jobs = Array.from({ length: workers }, () => job)
    const lives = yield* Effect.forEach(jobs, Worker.run, { concurrency: "unbounded" })
    rounds.push(lives)
    for (const life of lives) {
      if (life.signal === "SIGKILL") continue
      if (life.code !== 0 || life.errors !== "") problems.push(`a worker ended with ${life.code}: ${life.errors}`)
      const end = decodeEnd(life.output.trim())
      if (end._tag === "None") problems.push(`a worker said ${life.output}`)
      else if (end.value._tag === "Completed") output = end.value.output
      else if (end.value._tag !== "Suspended") problems.push(`it ended as ${JSON.stringify(end.value)}`)
    }
    if (output === undefined && problems.length === 0) doubts += yield* Person.answer(job)
  }
  const effects = Ledger.read(job.ledger)
  const trace = Trace.read(job.trace)
  const points = trace.filter(({ what }) => what === "point").length
  const missed = job.deaths.filter((point) => point >= points)
  const killed = rounds.flat().filter(({ signal }) => signal === "SIGKILL").length
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
