/**
 * Counts and measures Runs: the conventions' metrics, and our own of outcomes, waits, doubts, leases and money.
 *
 * They come from the same spans as traces do, before anything is sampled or cut, so they are complete. No attribute is an id.
 *
 * @since 0.1.0
 */
import type { Counter, Histogram, Meter } from "@opentelemetry/api"
import type { Observer } from "@waystone/core"
import * as Conventions from "./Conventions.ts"
import type { FinishedSpan, Value } from "./FinishedSpan.ts"
import type { Folding, Taken } from "./Folding.ts"

const { own } = Conventions

const histogram = (meter: Meter, { buckets, description, name, unit }: Conventions.Instrument): Histogram =>
  meter.createHistogram(name, {
    unit,
    description,
    ...(buckets === undefined ? undefined : { advice: { explicitBucketBoundaries: [...buckets] } })
  })

const counter = (meter: Meter, { description, name, unit }: Conventions.Instrument): Counter =>
  meter.createCounter(name, { unit, description })

/** Takes what one event made. */
export type Measure = (entry: Observer.Entry, folding: Folding, taken: Taken) => void

type Picked = Readonly<Record<string, Exclude<Value, ReadonlyArray<string>>>>

/** Those of a span's attributes that a metric may have. */
const pick = ({ attributes }: FinishedSpan, names: ReadonlyArray<string>): Picked =>
  Object.fromEntries(
    names.flatMap((name) => {
      const value = attributes[name]
      return value === undefined || typeof value === "object" ? [] : [[name, value]]
    })
  )

const number = ({ attributes }: FinishedSpan, name: string): number => {
  const value = attributes[name]
  return typeof value === "number" ? value : 0
}

const seconds = ({ end, start }: FinishedSpan): number => (end - start) / 1000

/** Measures through `meter`. */
export const make = (meter: Meter, semconv: Conventions.Semconv): Measure => {
  const { attributes: names, metrics } = Conventions.of(semconv)
  const chat = chats(meter, Conventions.of(semconv))
  const agentDuration = histogram(meter, metrics.agentDuration)
  const agentCalls = histogram(meter, metrics.agentCalls)
  const agentTools = histogram(meter, metrics.agentTools)
  const toolDuration = histogram(meter, metrics.toolDuration)
  const count = counts(meter)
  const span = (one: FinishedSpan): void => {
    switch (one.attributes[names.operation]) {
      case "chat":
        return chat(one)
      case "execute_tool":
        return toolDuration.record(
          seconds(one),
          pick(one, [names.toolName, names.toolType, names.agentName, names.errorType])
        )
      case "invoke_agent": {
        // The span above several attempts is no invocation of its own.
        if (!(own.attempt in one.attributes)) return
        const agent = pick(one, [names.agentName])
        agentDuration.record(seconds(one), { ...agent, ...pick(one, [names.operation, names.errorType]) })
        agentCalls.record(number(one, own.turns), agent)
        agentTools.record(number(one, own.toolCalls), agent)
      }
    }
  }
  return (entry, { head }, { cut, spans }) => {
    for (const one of spans) span(one)
    for (const one of cut) span(one)
    count(entry, head.agent)
  }
}

const chats = (meter: Meter, { attributes: names, metrics }: Conventions.Conventions) => {
  const duration = histogram(meter, metrics.inferenceDuration)
  const firstChunk = histogram(meter, metrics.firstChunk)
  const input = histogram(meter, metrics.sizes.input)
  const output = metrics.sizes.input === metrics.sizes.output ? input : histogram(meter, metrics.sizes.output)
  const money = meter.createCounter("waystone.cost", { unit: "{USD}", description: "What model calls cost, as known." })
  const fields = {
    input: names.inputTokens,
    output: names.outputTokens,
    cacheRead: names.cacheRead,
    cacheWrite: names.cacheWrite,
    reasoning: names.reasoningTokens
  } as const
  const totals = Object.entries(metrics.totals ?? {}).map(([kind, instrument]) => ({
    counter: counter(meter, instrument),
    field: Object.entries(fields).find(([name]) => name === kind)?.[1] ?? "",
    always: kind === "input" || kind === "output"
  }))
  const common = [
    names.operation,
    names.provider,
    names.requestModel,
    names.responseModel,
    names.serverAddress,
    names.serverPort
  ]
  return (one: FinishedSpan): void => {
    const about = pick(one, common)
    const error = pick(one, [names.errorType])
    duration.record(seconds(one), { ...about, ...error })
    if (names.firstChunk in one.attributes) firstChunk.record(number(one, names.firstChunk), about)
    if (own.cost in one.attributes) money.add(number(one, own.cost), about)
    const used = names.inputTokens in one.attributes
    const { modality, sizes } = metrics
    const kind = (type: string) => (sizes.type === undefined ? error : { [sizes.type]: type })
    if (used) input.record(number(one, names.inputTokens), { ...about, ...kind("input") })
    if (used) output.record(number(one, names.outputTokens), { ...about, ...kind("output") })
    for (const { always, counter, field } of totals) {
      const tokens = number(one, field)
      const of = modality === undefined ? {} : { [modality]: used ? "text" : "unknown" }
      if (always || tokens > 0) counter.add(tokens, { ...about, ...of })
    }
  }
}

const counts = (meter: Meter) => {
  const create = (name: string, unit: string, description: string) =>
    meter.createCounter(`waystone.${name}`, { unit, description })
  const runs = create("runs", "{run}", "Runs that ended, by outcome.")
  const rests = create("runs.suspended", "{rest}", "How often Runs came to rest.")
  const doubts = create("calls.in_doubt", "{call}", "Calls of which nobody knew whether they had happened.")
  const leases = create(
    "leases.lost",
    "{lease}",
    "Attempts whose owner died or lost its lease, as its successor sees it."
  )
  return ({ event }: Observer.Entry, agent: string): void => {
    const about = { "gen_ai.agent.name": agent }
    switch (event._tag) {
      case "RunFinished":
        return runs.add(1, { ...about, [own.outcome]: event.outcome._tag })
      case "RunSuspended":
        return rests.add(1, about)
      case "CallInDoubt":
        return doubts.add(1, about)
      case "AttemptStarted":
        return event.recovered ? leases.add(1, about) : undefined
      default:
        return undefined
    }
  }
}
