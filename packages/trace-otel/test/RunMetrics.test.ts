import { describe, expect, it } from "@effect/vitest"
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader
} from "@opentelemetry/sdk-metrics"
import { Agent, Run } from "@waystone/core"
import { ScriptedModel } from "@waystone/core/testing"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { TestClock } from "effect/testing"
import * as Conventions from "../src/Conventions.ts"
import { facts, release } from "./support/Conventions.ts"
import { Act, agent, makeExporter, start, traced, Work, world } from "./support/Runs.ts"

const { call, calls, delta, stream, text, wait } = ScriptedModel

/** Meters that can be read. */
const makeMeters = () => {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 })
  const meterProvider = new MeterProvider({ readers: [reader] })
  const read = Effect.promise(async () => {
    await reader.forceFlush()
    return (
      exporter
        .getMetrics()
        .at(-1)
        ?.scopeMetrics.flatMap(({ metrics }) => metrics) ?? []
    )
  })
  return { meterProvider, read }
}

type Metrics = Effect.Success<ReturnType<typeof makeMeters>["read"]>
const valueOf = (metrics: Metrics, name: string): unknown =>
  metrics
    .find(({ descriptor }) => descriptor.name === name)
    ?.dataPoints.map(({ value }) => (typeof value === "object" && "sum" in value ? value.sum : value))

const streaming = Agent.make("worker", { instructions: "Work.", tools: [Work, Act], stream: true })
const usage = { input: 6, cacheRead: 3, cacheWrite: 1, output: 5, reasoning: 2 }
const parts = [wait("100 millis"), delta("a"), wait("100 millis"), delta("b"), wait("100 millis"), delta("c")]

/** Virtual time goes on while real promises are kept. */
const pass = (ms: number) =>
  Effect.gen(function* () {
    for (let i = 0; i < ms / 10; i++) {
      yield* Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve)))
      yield* TestClock.adjust("10 millis")
    }
  })

/** Lets time pass until it has ended: digests come from other threads, however busy the machine is. */
const joined = <A, E>(fiber: Fiber.Fiber<A, E>) =>
  Effect.gen(function* () {
    while (fiber.pollUnsafe() === undefined) yield* pass(50)
    return yield* Fiber.join(fiber)
  })

describe("RunMetrics", () => {
  it.effect("RI-033 a streamed call has its usage by class, its time to the first part and its whole length", () =>
    Effect.gen(function* () {
      const { exporter, spans } = makeExporter()
      const { meterProvider, read } = makeMeters()
      const run = Run.start(streaming, { runId: "r", task: "t" }).pipe(
        Effect.provide(world([stream(parts, { usage })]))
      )
      const fiber = yield* Effect.forkChild(
        Effect.provide(Effect.andThen(run, Effect.sleep("1 second")), traced({ exporter, meterProvider }))
      )
      yield* joined(fiber)
      const chat = spans.find(({ name }) => name.startsWith("chat"))
      expect(chat?.duration).toEqual([0, 300_000_000])
      expect(chat?.attributes).toMatchObject({
        "gen_ai.request.stream": true,
        "gen_ai.response.time_to_first_chunk": 0.1,
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 7,
        "gen_ai.usage.cache_read.input_tokens": 3,
        "gen_ai.usage.cache_write.input_tokens": 1,
        "gen_ai.usage.reasoning.output_tokens": 2
      })
      const metrics = yield* read
      expect(valueOf(metrics, "gen_ai.client.inference.duration")).toEqual([0.3])
      expect(valueOf(metrics, "gen_ai.client.inference.time_to_first_chunk")).toEqual([0.1])
      expect(valueOf(metrics, "gen_ai.client.inference.usage.input_tokens")).toEqual([10])
      expect(valueOf(metrics, "gen_ai.client.inference.usage.reasoning.output_tokens")).toEqual([2])
    })
  )

  it.effect("RI-033 one that is aborted at 150 ms has that length, its code and the usage so far", () =>
    Effect.gen(function* () {
      const { exporter, spans } = makeExporter()
      const run = Run.start(streaming, { runId: "r", task: "t" }).pipe(
        Effect.provide(world([stream(parts, { usage })]))
      )
      const aborted = Effect.gen(function* () {
        const fiber = yield* Effect.forkChild(run)
        yield* Effect.sleep("150 millis")
        yield* Fiber.interrupt(fiber)
        yield* Run.start(streaming, { runId: "r", task: "t" }).pipe(Effect.provide(world([stream([delta("done")])])))
      })
      const fiber = yield* Effect.forkChild(Effect.provide(aborted, traced({ exporter })))
      yield* joined(fiber)
      const chat = spans.find(({ name }) => name.startsWith("chat"))
      expect(chat?.duration).toEqual([0, 150_000_000])
      expect(chat?.attributes).toMatchObject({
        "error.type": "Interrupted",
        "gen_ai.response.time_to_first_chunk": 0.1,
        "gen_ai.response.finish_reasons": ["error"],
        "waystone.usage.estimated": true
      })
      expect(chat?.attributes["gen_ai.usage.output_tokens"]).toBe(1)
    })
  )

  it.live("counts every Run by outcome, every token and every call whatever is sampled", () =>
    Effect.gen(function* () {
      const { exporter, spans } = makeExporter()
      const { meterProvider, read } = makeMeters()
      const script = [calls([call("work", {}), call("work", { n: 1 })]), text("done")]
      const runs = Effect.gen(function* () {
        for (let i = 0; i < 5; i++) yield* Effect.provide(start(`r${i}`), world(script))
      })
      yield* Effect.provide(runs, traced({ exporter, meterProvider, sampling: { ratio: 0 } }))
      expect(spans).toEqual([])
      const metrics = yield* read
      expect(valueOf(metrics, "waystone.runs")).toEqual([5])
      expect(valueOf(metrics, "gen_ai.invoke_agent.inference_calls")).toEqual([10])
      expect(valueOf(metrics, "gen_ai.invoke_agent.tool_calls")).toEqual([10])
      expect(valueOf(metrics, "gen_ai.client.inference.usage.input_tokens")).toEqual([100])
    })
  )

  it.live("a Run that waits is counted by the kind of its wait, with the age of the oldest", () =>
    Effect.gen(function* () {
      const { exporter } = makeExporter()
      const { meterProvider, read } = makeMeters()
      const metrics = yield* Effect.provide(
        Effect.gen(function* () {
          yield* Effect.provide(Run.start(agent, { runId: "r", task: "t" }), world([call("act", {})]))
          const looked = Effect.map(read, (metrics) =>
            metrics.find(({ descriptor }) => descriptor.name === "waystone.runs.waiting")
          )
          const counted = Effect.map(looked, (metric) =>
            metric?.dataPoints.map(({ attributes, value }) => [attributes["waystone.wait.kind"], value])
          )
          return yield* Effect.repeat(counted, { until: (found) => found?.some(([, count]) => count === 1) === true })
        }),
        traced({ exporter, meterProvider, waitingEvery: "20 millis" })
      )
      expect(metrics).toContainEqual(["approval", 1])
      expect(metrics).toContainEqual(["retry", 0])
    })
  )

  it.live.each(["latest", "v1.41"] as const)(
    "every metric and attribute is one that the conventions allow: %s",
    (semconv) =>
      Effect.gen(function* () {
        const { exporter } = makeExporter()
        const { meterProvider, read } = makeMeters()
        const fail = () => Effect.fail("no")
        const runs = Effect.provide(start("r"), world([call("work", {}), text("done")], fail))
        yield* Effect.provide(runs, traced({ exporter, meterProvider, semconv }))
        const known = release(semconv).metrics
        const metrics = yield* read
        expect(metrics.length).toBeGreaterThan(6)
        for (const { dataPoints, descriptor } of metrics) {
          const metric = known.find(({ name }) => name === descriptor.name)
          if (!descriptor.name.startsWith("gen_ai.")) continue
          expect(metric?.unit, descriptor.name).toBe(descriptor.unit)
          for (const { attributes } of dataPoints) {
            for (const name of Object.keys(attributes)) {
              expect(Object.keys(metric?.attributes ?? {}), descriptor.name).toContain(name)
              expect(facts.highCardinality).not.toContain(name)
              expect(name).not.toBe(Conventions.own.runId)
            }
            for (const [name, requirement] of Object.entries(metric?.attributes ?? {}))
              if (requirement === "required") expect(attributes, descriptor.name).toHaveProperty([name])
          }
        }
      })
  )
})
