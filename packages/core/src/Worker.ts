/**
 * Works as one of any number of worker processes: takes Runs that nobody drives, one sweep after the other, until it is
 * told to end.
 *
 * Invariants
 *   W1  No more than `concurrency` Runs are driven at once, and none twice.
 *   W2  One Run that fails, dies or takes long keeps no other from being taken.
 *   W3  Once it is interrupted nothing new begins: no Run is taken, no model called, no tool run. What runs has
 *       `drain` to end by itself; only then is it interrupted.
 *   W4  A store that is away ends nothing; it is asked again, and no Run is taken twice within `every`, unless somebody else
 *       wrote to it meanwhile: an answer is acted on at the next look.
 *   W5  Of a damaged Run that the lists leave out it says so once, not with every look.
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as FiberMap from "effect/FiberMap"
import * as Stream from "effect/Stream"
import type { Agent, Services } from "./Agent.ts"
import { boundedStore } from "./Bounded.ts"
import type { CheckpointStore, Entry } from "./CheckpointStore.ts"
import { Draining } from "./Drain.ts"
import * as LeftOut from "./LeftOut.ts"
import * as SteadyTime from "./SteadyTime.ts"
import { accepted, byName, driven, due, type Recovered } from "./Sweep.ts"
import * as WorkOptions from "./WorkOptions.ts"

/** A wrong value is a defect that names its option: a worker cannot fail. */
export interface WorkInput {
  /** How many Runs are driven at once: a whole number from 1. Default 10. */
  readonly concurrency?: number
  /** How long after one look at the store the next one comes: longer than 0. Default 1 second. */
  readonly every?: Duration.Input
  /** How long what runs may go on after the interruption, from 0. Default 25 seconds: container platforms kill after 30. */
  readonly drain?: Duration.Input
  /** Hears of every Run that was driven. Default: failures are logged as warnings, the rest as debug messages. */
  readonly onDriven?: (recovered: Recovered) => Effect.Effect<void>
}

/** A Run that was driven is left alone until then, or until it is not at that seq any more. */
interface Resting {
  readonly until: number
  readonly seq?: number
}

/** A Run that only fails here (a plugin is missing, a bug) is left alone for so long, so that it is not tried every second. */
const restMillis = 60_000

/**
 * Drives every Run of these agents that `accept` stored, whose owner died or let go, or whose `wakeAt` has come; roots
 * only. Never ends by itself. An interruption drains it: under `NodeRuntime.runMain` that is what SIGTERM and SIGINT do.
 * What it did not end is left without an owner, for other workers to take at once.
 */
export const work = <As extends ReadonlyArray<Agent>>(
  agents: As,
  input: WorkInput = {}
): Effect.Effect<never, never, Services<As[number]> | CheckpointStore> =>
  // Each Run is driven by its own agent, whose services are among those of all of them.
  Effect.scoped(LeftOut.once(working(agents, input))) as Effect.Effect<
    never,
    never,
    Services<As[number]> | CheckpointStore
  >

const working = Effect.fnUntraced(function* (
  agents: ReadonlyArray<Agent>,
  { concurrency = 10, drain = "25 seconds", every = "1 second", onDriven = logged }: WorkInput
) {
  yield* WorkOptions.concurrency("Run.work", concurrency)
  yield* WorkOptions.every("Run.work", every)
  yield* WorkOptions.drain("Run.work", drain)
  const store = yield* boundedStore
  const { now } = yield* SteadyTime.make
  const known = byName(agents)
  const driving = yield* FiberMap.make<string, void>()
  const rests = new Map<string, Resting>()
  let ending = false

  const drive = (agent: Agent, runId: string) =>
    Effect.gen(function* () {
      const recovered = yield* driven(agent, runId)
      if (recovered.some(isHopeless)) rests.set(runId, { until: now() + restMillis })
      else yield* leave(runId, recovered)
      yield* Effect.forEach(recovered, onDriven, { discard: true })
    }).pipe(Effect.provideService(Draining, { begun: () => ending }))

  const leave = Effect.fnUntraced(function* (runId: string, recovered: ReadonlyArray<Recovered>) {
    const until = now() + Duration.toMillis(every)
    rests.set(runId, { until })
    if (recovered.some(isOver)) return
    const left = yield* Effect.orElseSucceed(store.head(runId), () => undefined)
    if (left === undefined) return
    // It waited when it was left and does not now: somebody came between.
    if (left.status === "running" && recovered.some(isSuspended)) rests.delete(runId)
    else rests.set(runId, { until, seq: left.seq })
  })

  const take = Effect.fnUntraced(function* ({ agent: name, runId, seq }: Entry) {
    const agent = known.get(name)
    const rest = rests.get(runId)
    if (agent === undefined || (rest !== undefined && (rest.seq === undefined || rest.seq === seq))) return
    yield* FiberMap.run(driving, runId, drive(agent, runId), { onlyIfMissing: true })
  })

  const free = Effect.map(FiberMap.size(driving), (size) => size < concurrency)
  // Where all hands are full there may be more to do as soon as one is free. Looked at once: what is full is not empty.
  const rest = Effect.suspend(() => {
    const hands = Array.from(driving, ([, fiber]) => Fiber.await(fiber))
    return hands.length < concurrency ? Effect.sleep(every) : Effect.asVoid(Effect.raceAllFirst(hands))
  })
  const names = [...known.keys()]
  const sweep = Effect.gen(function* () {
    const time = now()
    for (const [runId, { until }] of rests) if (until <= time) rests.delete(runId)
    yield* Stream.runForEachWhile(Stream.concat(due(known), accepted(names)), (entry) =>
      Effect.andThen(take(entry), free)
    )
    yield* rest
  }).pipe(
    Effect.catch(({ reason }) =>
      Effect.andThen(Effect.logWarning(`Runs could not be looked for: ${reason.message}`), Effect.sleep(every))
    )
  )

  return yield* Effect.forever(sweep).pipe(
    Effect.onInterrupt(() => {
      ending = true
      return Effect.timeoutOption(FiberMap.awaitEmpty(driving), drain)
    })
  )
})

const isSuspended = (one: Recovered): boolean => one._tag === "Driven" && one.outcome._tag === "Suspended"
const isOver = (one: Recovered): boolean => one._tag === "Driven" && one.outcome._tag !== "Suspended"

/** It would only fail again. */
const isHopeless = (one: Recovered): boolean =>
  one._tag === "Died" || (one._tag === "Failed" && one.error._tag === "Fatal")

const logged = (one: Recovered): Effect.Effect<void> => {
  switch (one._tag) {
    case "Driven":
      return Effect.logDebug(`Run ${one.runId}: ${one.outcome._tag}`)
    case "Failed":
      return Effect.logWarning(`Run ${one.runId} failed: ${one.error.reason.message}`)
    case "Died":
      return Effect.logWarning(`Run ${one.runId} ended its Attempt with a bug`, one.defect)
  }
}
