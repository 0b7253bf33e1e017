/**
 * `show` tells of one Run what it waits for, and what came of every call.
 */
import { type ModelInfo, Run, type RunEvent } from "@waystone/core"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Terminal from "effect/Terminal"
import * as Command from "effect/cli/Command"
import * as Calls from "../Calls.ts"
import { spoken } from "../Complaint.ts"
import * as Layers from "../Layers.ts"
import * as Drive from "../Drive.ts"
import * as OfflineModel from "../model/OfflineModel.ts"
import * as Rejected from "../Rejected.ts"
import * as Status from "../Status.ts"
import { Keeping } from "../Stores.ts"
import * as Waterfall from "../Waterfall.ts"
import { printer } from "./Print.ts"
import * as Options from "./Options.ts"
import * as WayOut from "./WayOut.ts"
import * as Words from "./Words.ts"

export const show = Command.make("show", { run: Options.run }, ({ run }) =>
  Effect.gen(function* () {
    const { json, store } = yield* Options.kept
    const columns = yield* width
    const print = yield* printer(json)
    const found = yield* Effect.provide(details(run), Layers.looking(store))
    const spans = json ? [] : yield* Effect.provide(traced(run), Layers.looking(store))
    const now = yield* Clock.currentTimeMillis
    const { below, calls, goOn, info, model, task, waits } = found
    yield* print({
      json: { _tag: "Run", ...info, waiting: waits, task, model, goOn, calls, below: below.map(({ info }) => info) },
      lines: (style) => [...Words.detailed(found, now)(style), ...Waterfall.lines(spans, { columns, style })]
    })
  }).pipe(spoken)
).pipe(
  Command.withDescription(
    "Show one Run: its task, what it waits for and since when, what came of every call, and where the time went"
  )
)

const details = Effect.fnUntraced(function* (runId: string) {
  const info = yield* Run.get(runId)
  const entries = yield* Stream.runCollect(Run.events(runId, { follow: false }))
  const task = Status.taskOf((yield* Drive.accepted(runId)).task)
  const calls = Calls.asked(entries.map(({ event }) => event))
  const below = yield* Run.list({ parent: runId })
  const { command } = yield* Keeping
  const last = entries.map(({ event }) => event).findLast((event) => event._tag === "TurnStarted")
  // Without --model the scripted model would go on with what a real one has begun.
  const asked = last === undefined || OfflineModel.is(modelOf(last)) ? "" : " --model …"
  const checkpoints = yield* Run.checkpoints(runId)
  const known = { runId, entries, checkpoints, command, goOn: command(`resume ${runId}${asked}`) }
  const waits = info.waiting.map((wait) => ({ ...wait, wayOut: WayOut.of(known, wait) }))
  const rejected = info.status === "failed" && Rejected.is(entries.at(-1)?.event)
  const goOn = rejected ? { goOn: command(`resume ${runId} --model …`) } : undefined
  const found: Words.Detailed = {
    info,
    status: yield* Status.worded(info),
    task,
    calls,
    below: yield* Effect.forEach(below, (info) =>
      Effect.map(Status.worded(info), (status): Words.Listed => ({ info, status }))
    ),
    waits,
    ...(last === undefined ? undefined : { model: modelOf(last) }),
    ...goOn
  }
  return found
})

/** Where nobody says how wide lines are, as in a pipe, they are as long as they are in a usual terminal. */
const usual = 100
const width = Effect.flatMap(Terminal.Terminal, ({ columns }) =>
  Effect.map(columns, (known) => (known > 0 ? known : usual))
)

/** The trace of the Run and of all below it, from the journal; loaded only where it is shown. */
const traced = (runId: string) =>
  Effect.flatMap(
    Effect.promise(() => import("@waystone/trace-otel/Trace")),
    (Trace) => Trace.tree(runId)
  )

const modelOf = ({ model, provider, server }: RunEvent.Of<"TurnStarted">): ModelInfo.ModelInfo => ({
  ...(provider === undefined ? undefined : { provider }),
  ...(model === undefined ? undefined : { model }),
  ...(server === undefined ? undefined : { server })
})
