/**
 * Switches tracing on: a Layer that brings an OpenTelemetry set-up of its own, and one that joins an application's.
 *
 * Both need the store in which the Runs are: what a back end refused is read from there again.
 *
 * @since 0.1.0
 */
import { metrics as globalMetrics, type MeterProvider as MeterProviders } from "@opentelemetry/api"
import * as NodeSdk from "@effect/opentelemetry/NodeSdk"
import * as Resource from "@effect/opentelemetry/Resource"
import { MeterProvider, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics"
import { BatchSpanProcessor, type SpanExporter } from "@opentelemetry/sdk-trace-base"
import { Caller, CheckpointStore, Plugin } from "@waystone/core"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as KeyValueStore from "effect/persistence/KeyValueStore"
import { Foreign } from "./Foreign.ts"
import { Held } from "./Held.ts"
import * as Inside from "./Inside.ts"
import * as Live from "./Live.ts"
import * as Otlp from "./Otlp.ts"
import * as Readable from "./Readable.ts"
import * as RunMetrics from "./RunMetrics.ts"
import * as Sampling from "./Sampling.ts"
import * as Segments from "./Segments.ts"
import * as Sender from "./Sender.ts"
import { SettingInvalid } from "./SettingInvalid.ts"
import { TraceDestination } from "./Trace.ts"
import { Traces } from "./Traces.ts"
import * as Unsent from "./Unsent.ts"
import * as WaitingRuns from "./WaitingRuns.ts"
import * as Writing from "./Writing.ts"

/** What is told of Runs, and how much of it is kept. */
export interface Options extends Writing.Options {
  /** Which traces are kept. Default: all. */
  readonly sampling?: Sampling.Options
  /** Spans in memory, of all Runs together. Default 20,000, some 40 MB; what is more is read from the journal again. */
  readonly maxHeld?: number
  /** How long the end of the program waits for spans that were not taken yet. Default 10 s. */
  readonly patience?: Duration.Input
  /**
   * Notes which Runs have something that was not taken yet, so that a later process that drives one of them sends it. It must
   * outlive the process, and be the same for all that drive those Runs. Default: nothing is noted, and `Trace.export` is for it.
   */
  readonly unsent?: KeyValueStore.KeyValueStore
  /** How often waiting Runs are counted. Default 30 s; with Duration.infinity, never. */
  readonly waitingEvery?: Duration.Input
}

/** An OpenTelemetry set-up of one's own. */
export interface OwnOptions extends Options {
  /** Default: what `OTEL_SERVICE_NAME` or `OTEL_RESOURCE_ATTRIBUTES` say, else `unknown_service:node`. */
  readonly serviceName?: string
  readonly serviceVersion?: string
  /** More about this process. */
  readonly attributes?: Readonly<Record<string, string | number | boolean>>
}

/** The set-up of an application. */
export interface JoinOptions extends Options {
  /** Takes the spans of Runs; where it says that it failed, they come again. */
  readonly exporter: SpanExporter
  /** Makes the metrics. Default: the global one of `@opentelemetry/api`. */
  readonly meterProvider?: MeterProviders
}

const defaults = { maxHeld: 20_000, patience: "10 seconds", waitingEvery: "30 seconds" } as const

/** Tracing, switched on. */
export class OtelTrace extends Context.Service<
  OtelTrace,
  Plugin.Plugin & {
    /** What is in memory, and what there was no room for. */
    readonly held: { readonly size: number; readonly cutRuns: number; readonly lostSpans: number }
  }
>()("@waystone/trace-otel/OtelTrace") {}

type Provided = OtelTrace | TraceDestination

/**
 * Brings everything: spans and metrics by OTLP over HTTP, as the standard `OTEL_*` variables say, and a tracer for the spans
 * of effects, which stand under the calls of Runs. Fails where one of them is no address, or names a protocol that is not here.
 */
export const layer = (
  options: OwnOptions = {}
): Layer.Layer<Provided, SettingInvalid, CheckpointStore.CheckpointStore> =>
  Layer.unwrap(
    Effect.gen(function* () {
      const held = new Held(options.maxHeld ?? defaults.maxHeld)
      const exports = yield* Otlp.isOn("TRACES")
      if (exports) yield* Otlp.check("TRACES")
      if (yield* Otlp.isOn("METRICS")) yield* Otlp.check("METRICS")
      const exporter = exports ? yield* Otlp.traces : nowhere
      const foreign = new Foreign(held, exports ? new BatchSpanProcessor(exporter) : undefined)
      const { attributes, serviceName, serviceVersion } = options
      const named = serviceName ?? (yield* Otlp.serviceName)
      const sdk = NodeSdk.layer(() => ({
        resource: {
          serviceName: named,
          ...(serviceVersion === undefined ? undefined : { serviceVersion }),
          ...(attributes === undefined ? undefined : { attributes: { ...attributes } })
        },
        ...(exports ? { spanProcessor: foreign } : undefined)
      }))
      const own = Layer.unwrap(
        Effect.map(meters, (meterProvider) => made({ ...options, exporter, meterProvider }, held, foreign))
      )
      return Layer.provideMerge(own, sdk)
    })
  )

/**
 * Joins a set-up that is there: its exporter, its meters, its `Resource` and its tracer. Spans that others make stand under
 * the calls of Runs, but are sampled by that set-up alone.
 */
export const join = (
  options: JoinOptions
): Layer.Layer<Provided, SettingInvalid, CheckpointStore.CheckpointStore | Resource.Resource> =>
  Layer.suspend(() => {
    const held = new Held(options.maxHeld ?? defaults.maxHeld)
    return made(options, held, new Foreign(held))
  })

const whole = (value: number): boolean => Number.isInteger(value) && value >= 1

/** Callers without types exist, and a limit that is no number would keep nothing, or everything. */
const checked = ({
  content,
  maxHeld = 1,
  maxSpans = 1,
  sampling = {}
}: Options): Effect.Effect<void, SettingInvalid> => {
  const { dearerThanUsd = 0, ratio = 1 } = sampling
  const { maxBytes = 1 } = typeof content === "object" ? content : {}
  const rules = [
    ["sampling.ratio", "must be a number from 0 to 1", ratio >= 0 && ratio <= 1],
    ["sampling.dearerThanUsd", "must be a number from 0", dearerThanUsd >= 0],
    ["maxHeld", "must be a whole number from 1", whole(maxHeld)],
    ["maxSpans", "must be a whole number from 1", whole(maxSpans)],
    ["content.maxBytes", "must be a whole number from 1", whole(maxBytes)]
  ] as const
  const [name, detail] = rules.find(([, , holds]) => !holds) ?? []
  return name === undefined ? Effect.void : Effect.fail(new SettingInvalid({ name, detail: detail ?? "" }))
}

const nowhere: SpanExporter = { export: (_, done) => done({ code: 0 }), shutdown: () => Promise.resolve() }

const meters = Effect.gen(function* () {
  const resource = yield* Resource.Resource
  const readers = (yield* Otlp.isOn("METRICS"))
    ? [
        new PeriodicExportingMetricReader({
          exporter: yield* Otlp.metrics,
          exportIntervalMillis: yield* Otlp.metricInterval
        })
      ]
    : []
  return yield* Effect.acquireRelease(
    Effect.sync(() => new MeterProvider({ resource, readers })),
    (provider) =>
      Effect.ignore(
        Effect.timeoutOption(
          Effect.tryPromise(() => provider.shutdown()),
          "3 seconds"
        )
      )
  )
})

const made = (
  options: JoinOptions,
  held: Held,
  foreign: Foreign
): Layer.Layer<Provided, SettingInvalid, CheckpointStore.CheckpointStore | Resource.Resource> =>
  Layer.effectContext(
    Effect.gen(function* () {
      yield* checked(options)
      const { exporter, meterProvider = globalMetrics.getMeterProvider(), patience = defaults.patience } = options
      const store = yield* CheckpointStore.CheckpointStore
      const readable = Readable.make(yield* Resource.Resource)
      const writing = Writing.make(options)
      const source = { store, writing, sampler: Sampling.make(options.sampling ?? {}) }
      const meter = meterProvider.getMeter(Readable.scope.name)
      const send = (spans: Parameters<Sender.Options["send"]>[0]) => Otlp.send(exporter, spans.map(readable))
      const read = ({ after, runId, upTo }: Sender.Parcel) => Segments.unsent(source, runId, upTo, after)
      const unsent = options.unsent === undefined ? Unsent.nowhere : Unsent.make(options.unsent)
      const taken = ({ runId, upTo }: Sender.Parcel) => unsent.taken(runId, upTo)
      const notes = options.unsent !== undefined
      const deliver = yield* Sender.make({ send, read, held, patience, ...(notes ? { taken } : undefined) })
      const dropped = (runId: string, upTo: number) => deliver({ runId, upTo, spans: [] })
      const { sampler } = source
      const traces = new Traces({ foreign, held, sampler, deliver, ...(notes ? { dropped } : undefined) })
      const every = options.waitingEvery ?? defaults.waitingEvery
      if (Duration.isFinite(Duration.fromInputUnsafe(every))) yield* Effect.forkScoped(WaitingRuns.watch(meter, every))
      const observer = Live.observer({
        ...source,
        traces,
        held,
        unsent,
        measure: RunMetrics.make(meter, options.semconv ?? "latest")
      })
      const interceptor = Inside.interceptor((runId) => traces.of(runId))
      const plugin = { name: "trace-otel", optional: true, observers: [observer], interceptors: [interceptor] }
      return Context.mergeAll(
        Context.make(OtelTrace, { [Plugin.PluginId]: plugin, held }),
        Context.make(TraceDestination, { writing, send }),
        Context.make(
          Caller.Callers,
          Inside.callOf((runId) => traces.of(runId))
        )
      )
    })
  )
