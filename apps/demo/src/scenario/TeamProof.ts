/**
 * Proves what came of a Run of a team: two workers repaired two things at the same time, and, where their process died in the
 * middle of both, nothing was done twice. The journals of all three Runs say what was started, the files and the record of
 * writes say what happened.
 */
import { Usage } from "@waystone/core"
import { FileTools } from "@waystone/tools"
import * as Calls from "../Calls.ts"
import { type Claim, completed, ended, type Events, of, type Seen } from "./Claims.ts"
import type { Death } from "./CrashProof.ts"

const { EditFile } = FileTools

/** A worker's Run: the call of the planner that began it, and its events. */
interface Worker {
  readonly callId: string
  readonly runId: string
  readonly events: Events
}

const workersOf = (events: Events, { below = new Map() }: Seen): ReadonlyArray<Worker> => {
  const begun = new Map(
    of(events, "ToolCallStarted").flatMap(({ callId, child }) => (child === undefined ? [] : [[callId, child.runId]]))
  )
  return [...begun].map(([callId, runId]) => ({ callId, runId, events: below.get(runId) ?? [] }))
}

export const prove = (events: Events, seen: Seen): ReadonlyArray<Claim> => {
  const workers = workersOf(events, seen)
  const all = [events, ...workers.map(({ events }) => events)]
  const calls = all.flatMap((one) => Calls.asked(one))
  const results = all.flatMap(completed)
  return [
    {
      claim: `${workers.length} workers were asked in one reply (${workers.map(({ callId }) => callId).join(", ")})`,
      holds: workers.length === 2 && new Set(workers.map(({ callId }) => callId.split(".")[0])).size === 1
    },
    { claim: "they worked at the same time", holds: overlap(workers) },
    {
      claim: `each changed one file, and no other (${seen.changes.map(({ path }) => path).join(", ")})`,
      holds: seen.changes.length === 2 && workers.every((worker) => edited(worker).size === 1)
    },
    {
      claim: `each of the ${calls.length} calls of the ${all.length} runs has exactly one result`,
      holds: calls.length > 0 && calls.every(({ ending }) => ending !== undefined) && calls.length === results.length
    },
    {
      claim: `the planner's journal counts what they used (${workers.map((worker) => `${used(worker)} tokens`).join(", ")})`,
      holds: workers.every((worker) => used(worker) > 0 && used(worker) === counted(events, worker))
    },
    ...workers.map(({ events, runId }): Claim => ({ ...ended(events), claim: `${runId} is completed` })),
    ended(events)
  ]
}

/** With `--crash`: `death` is undefined in the process that is to die. */
export const proveCrash =
  (death: Death | undefined) =>
  (events: Events, seen: Seen): ReadonlyArray<Claim> => {
    const workers = workersOf(events, seen)
    const lives = [events, ...workers.map(({ events }) => events)].map(life)
    const killed = workers.map((worker) => ({ worker, ...life(worker.events) })).map(cut)
    const done = lives.flatMap(({ before }) => completed(before).map(({ callId, name }) => `${name} ${callId}`))
    const [again] = of(life(events).after, "AttemptStarted")
    const wait = again === undefined || death === undefined ? Number.NaN : again.at - death.at
    const paths = killed.map(({ path = "no file" }) => path)
    return [
      {
        claim: `the first process died by SIGKILL while both workers were inside ${killed.map(({ call, worker }) => `${call?.name ?? "no call"} (${worker.callId}/${call?.callId ?? "none"})`).join(" and ")}`,
        holds: death?.signal === "SIGKILL" && killed.length === 2 && killed.every(({ call }) => call !== undefined)
      },
      { claim: `a second attempt took the run over after ${wait} ms`, holds: again?.recovered === true },
      {
        claim: `none of the ${done.length} calls completed before was started again`,
        holds: done.length > 0 && lives.every(({ after, before }) => untouched(before, after))
      },
      {
        claim: "neither edit was started again: their results were read from the files (reconciled)",
        holds: killed.every(({ ending, startedAgain }) => ending === "reconciled" && !startedAgain)
      },
      {
        claim: `${paths.join(" and ")} were written exactly once each, by the process that died (pid ${death?.pid ?? "unknown"}), and by no other`,
        holds:
          seen.writes.length === 2 &&
          seen.writes.every(({ pid }) => pid === death?.pid) &&
          JSON.stringify(seen.writes.map(({ path }) => path).toSorted()) === JSON.stringify(paths.toSorted())
      },
      ...prove(events, seen)
    ]
  }

/** The parts of a journal that the first process wrote, and that came after. */
const life = (events: Events): { readonly before: Events; readonly after: Events } => {
  const second = events.findIndex((event) => event._tag === "AttemptStarted" && event.attempt === 2)
  return second === -1
    ? { before: events, after: [] }
    : { before: events.slice(0, second), after: events.slice(second) }
}

const untouched = (before: Events, after: Events): boolean => {
  const done = new Set(completed(before).map(({ callId }) => callId))
  return ![...of(after, "ToolCallStarted"), ...completed(after), ...of(after, "CallRequeued")].some(({ callId }) =>
    done.has(callId)
  )
}

interface Life {
  readonly worker: Worker
  readonly before: Events
  readonly after: Events
}

/** The call of a worker that had begun when its process died, and what came of it. */
const cut = ({ after, before, worker }: Life) => {
  const results = new Set(completed(before).map(({ callId }) => callId))
  const call = of(before, "ToolCallStarted").find(({ callId }) => !results.has(callId))
  const isIt = ({ callId }: { readonly callId: string }) => callId === call?.callId
  return {
    worker,
    call,
    path: [...edited(worker)][0],
    ending: completed(after).find(isIt)?.ending,
    startedAgain: of(after, "ToolCallStarted").some(isIt)
  }
}

/** The files that its edits changed. */
const edited = ({ events }: Worker): ReadonlySet<string> => {
  const succeeded = new Set(completed(events).flatMap(({ callId, isFailure }) => (isFailure ? [] : [callId])))
  return new Set(
    Calls.asked(events).flatMap(({ arguments: given, callId, name }) =>
      name === EditFile.name && succeeded.has(callId) && hasPath(given) ? [given.path] : []
    )
  )
}

const hasPath = (given: unknown): given is { readonly path: string } =>
  typeof given === "object" && given !== null && "path" in given && typeof given.path === "string"

const overlap = (workers: ReadonlyArray<Worker>): boolean => {
  const times = workers.map(({ events }) => ({ from: events[0]?.at ?? NaN, to: events.at(-1)?.at ?? NaN }))
  return times.length > 1 && Math.max(...times.map(({ from }) => from)) < Math.min(...times.map(({ to }) => to))
}

/** Tokens, as the worker's own journal has them. */
const used = ({ events }: Worker): number =>
  of(events, "TurnCompleted").reduce((sum, { usage }) => sum + Usage.total(usage), 0)

const counted = (events: Events, { callId }: Worker): number => {
  const child = completed(events).find((one) => one.callId === callId)?.child
  return child?.usage === undefined ? 0 : Usage.total(child.usage)
}
