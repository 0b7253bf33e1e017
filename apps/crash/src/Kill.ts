/**
 * Drives one Run through worker processes until it is completed, whatever dies on the way, and says what went wrong.
 */
import { type CheckpointStore, Run, type RunEvent } from "@waystone/core"
import { PairingChecker } from "@waystone/core/testing"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type * as Job from "./Job.ts"
import * as Ledger from "./Ledger.ts"
import * as Subject from "./Subject.ts"
import * as Worker from "./Worker.ts"

/** What is done to one Run. */
export interface Plan {
  readonly job: Job.Job & { readonly runId: string }
  /** Where the workers of the first round die; one worker each. */
  readonly deaths: ReadonlyArray<number>
}

export interface Report {
  readonly problems: ReadonlyArray<string>
  readonly lives: number
  /** Lives that ended by SIGKILL. */
  readonly killed: number
  /** Calls that a person was asked about. */
  readonly doubts: number
  /** Effects of readonly and idempotent tools that took place again. */
  readonly again: number
  /** The most points that a life passed which ended by itself. */
  readonly points: number
}

/** Rounds of workers until it counts as stuck. */
const maxRounds = 12

const Waiting = Schema.Struct({ id: Schema.String, kind: Schema.String })
const Ended = Schema.Struct({
  end: Schema.Struct({
    _tag: Schema.String,
    output: Schema.optionalKey(Schema.Unknown),
    waiting: Schema.optionalKey(Schema.Array(Waiting))
  }),
  points: Schema.Int
})
const decodeEnded = Schema.decodeUnknownOption(Schema.fromJsonString(Ended))

/** One Run, in the store that is provided, which is the one of the job. */
export const run = Effect.fnUntraced(function* ({
  deaths,
  job
}: Plan): Effect.fn.Return<Report, unknown, CheckpointStore.CheckpointStore> {
  const problems: Array<string> = []
  const counts = { lives: 0, killed: 0, doubts: 0, points: 0 }
  let output: unknown
  for (let round = 0; output === undefined && problems.length === 0; round++) {
    if (round === maxRounds) {
      problems.push(`it did not end in ${maxRounds} rounds`)
      break
    }
    const jobs = deaths.map((dieAt) => (round === 0 ? { ...job, dieAt } : job))
    const lives = yield* Effect.forEach(jobs, Worker.run, { concurrency: "unbounded" })
    for (const life of lives) {
      counts.lives++
      if (life.signal === "SIGKILL") counts.killed++
      else if (life.code !== 0 || life.errors !== "") problems.push(`a worker ended with ${life.code}: ${life.errors}`)
      const ended = decodeEnded(life.output.trim())
      if (ended._tag === "None") continue
      const { end, points } = ended.value
      counts.points = Math.max(counts.points, points)
      if (end._tag === "Completed") output = end.output
      else if (end._tag === "Suspended") counts.doubts += yield* answerAll(job, end.waiting ?? [])
      else problems.push(`it ended as ${JSON.stringify(end)}`)
    }
  }
  const effects = Ledger.read(job.ledger)
  const again = effects.length - new Set(effects.map(({ key }) => key)).size
  // A Run that a worker could not drive may not even exist.
  if (problems.length > 0) return { problems, ...counts, again }
  const events = yield* Effect.map(Stream.runCollect(Run.events(job.runId)), (all) => all.map(({ event }) => event))
  problems.push(...wrongEffects(job, effects), ...wrongEvents(events))
  if (output !== undefined && output !== Subject.answer()) problems.push(`its answer is ${String(output)}`)
  for (const { problem, seq } of yield* PairingChecker.ofRun(job.runId)) problems.push(`pairing at ${seq}: ${problem}`)
  return { problems, ...counts, again }
})

/** What a person says who knows the world outside: it happened and gave this, or it did not. */
const answerAll = (job: Plan["job"], waiting: ReadonlyArray<typeof Waiting.Type>) =>
  Effect.gen(function* () {
    let doubts = 0
    for (const { id, kind } of waiting) {
      if (kind !== "in-doubt") continue
      const known = Ledger.read(job.ledger).find(({ key }) => key === `${job.runId}/${id}`)
      const answer: RunEvent.Answer =
        known === undefined
          ? { _tag: "RunAgain" }
          : { _tag: "TakeResult", value: { receipt: Ledger.receipt(known.item) } }
      // Two workers may report the same wait: the second answer is the same one.
      yield* Run.answer(Subject.agent(job), { runId: job.runId, callId: id, answer, by: "person" }).pipe(
        Effect.tap(() => Effect.sync(() => doubts++)),
        Effect.catchIf(
          ({ reason }) => reason._tag === "NotPending" || reason._tag === "AlreadyDecided",
          () => Effect.void
        )
      )
    }
    return doubts
  })

const wrongEffects = ({ effect }: Job.Job, effects: ReadonlyArray<Ledger.Entry>): ReadonlyArray<string> =>
  Subject.items.flatMap((item) => {
    const own = effects.filter((one) => one.item === item)
    const keys = new Set(own.map(({ key }) => key)).size
    if (own.length === 0) return [`the effect of ${item} was lost`]
    // A readonly turn's reply can be lost with its results, and a new turn has new keys.
    if (keys !== 1 && effect !== "readonly") return [`${item} happened under ${keys} keys`]
    return effect === "unsafe" && own.length > 1 ? [`${item} happened ${own.length} times`] : []
  })

const wrongEvents = (events: ReadonlyArray<RunEvent.RunEvent>): ReadonlyArray<string> => {
  const results = events.flatMap((event) => (event._tag === "ToolCallCompleted" ? [event] : []))
  const ids = results.map(({ callId }) => callId)
  return [
    ...(ids.length === Subject.items.length && new Set(ids).size === ids.length
      ? []
      : [`results of ${ids.join(", ")}`]),
    ...results.filter(({ isFailure }) => isFailure).map(({ callId }) => `the result of ${callId} is a failure`)
  ]
}
