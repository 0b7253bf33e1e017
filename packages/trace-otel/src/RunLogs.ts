/**
 * Logs every event of a Run, through effect's Logger: switched on by a Layer, off without it.
 *
 * Each entry has `ts`, `runId`, `step` (the turn), `seq`, `event`, `latencyMs` (since the event before, in the same attempt) and
 * `detail`: codes and numbers. What a person, a model or a tool wrote is not in it.
 *
 * @since 0.1.0
 */
import { type Observer, Plugin, type RunEvent, Usage } from "@waystone/core"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import { code, failureCode } from "./Writing.ts"

/** Logs of Runs, switched on. */
export class RunLogs extends Context.Service<RunLogs, Plugin.Plugin>()("@waystone/trace-otel/RunLogs") {}

type Detail = Readonly<Record<string, string | number | boolean | undefined>>

/** What an event says beyond its kind, without any content. */
const detailOf = (event: RunEvent.RunEvent): Detail => {
  switch (event._tag) {
    case "AttemptStarted":
      return { attempt: event.attempt, owner: event.owner, recovered: event.recovered }
    case "TurnStarted":
      return { provider: event.provider, model: event.model, stream: event.stream }
    case "TurnCompleted":
      return {
        finish: event.finish,
        tokens: Usage.total(event.usage),
        costNanoUsd: event.costNanoUsd,
        tries: event.tries?.length
      }
    case "TurnFailed":
      return { failure: failureCode(event.failure), tokens: Usage.total(event.usage), tries: event.tries.length }
    case "ToolCallStarted":
      return { callId: event.callId, effect: event.effect }
    case "ToolCallCompleted":
      return { callId: event.callId, ending: event.ending, isFailure: event.isFailure, ...errorOf(event.error) }
    case "VerdictGiven":
      return { guard: event.guard, verdict: event.verdict, on: event.on }
    case "CallAnswered":
      return { callId: event.callId, answer: event.answer._tag, by: event.by }
    case "RunFinished":
      return { outcome: event.outcome._tag }
    default:
      return "callId" in event ? { callId: event.callId } : {}
  }
}

const errorOf = (error: string | undefined): Detail => (error === undefined ? {} : { error: code(error) })

const observer: Observer.Observer = {
  name: "waystone-logs",
  attempt: ({ agent, attempt, runId }) =>
    Effect.sync(() => {
      let step = 0
      let before: number | undefined
      return ({ event, seq }: Observer.Entry) =>
        Effect.suspend(() => {
          if (event._tag === "TurnStarted") step = event.turn
          const { at } = event
          const latencyMs = before === undefined ? 0 : Math.max(0, at - before)
          before = at
          const about = {
            ts: new Date(at).toISOString(),
            runId,
            agent,
            attempt,
            step,
            seq,
            event: event._tag,
            latencyMs
          }
          return Effect.annotateLogs(Effect.logInfo(event._tag), { ...about, detail: JSON.stringify(detailOf(event)) })
        })
    })
}

const plugin = { [Plugin.PluginId]: { name: "run-logs", optional: true, observers: [observer] } }

/** Logs events with the loggers that there are. */
export const layer: Layer.Layer<RunLogs> = Layer.succeed(RunLogs, plugin)

/** Logs events as one JSON object a line, on the console, as does everything else that is logged. */
export const layerJson: Layer.Layer<RunLogs> = Layer.merge(layer, Logger.layer([Logger.consoleJson]))
