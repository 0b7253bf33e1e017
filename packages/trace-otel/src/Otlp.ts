/**
 * Makes the exporters that the standard variables ask for: OTLP over HTTP, as protobuf or as JSON.
 *
 * They read `OTEL_EXPORTER_OTLP_ENDPOINT`, `…_HEADERS`, `…_TIMEOUT`, `…_COMPRESSION` and their kin themselves.
 *
 * @since 0.1.0
 */
import * as Resource from "@effect/opentelemetry/Resource"
import { context } from "@opentelemetry/api"
import { ExportResultCode, suppressTracing } from "@opentelemetry/core"
import { OTLPMetricExporter as JsonMetrics } from "@opentelemetry/exporter-metrics-otlp-http"
import { OTLPMetricExporter as ProtoMetrics } from "@opentelemetry/exporter-metrics-otlp-proto"
import { OTLPTraceExporter as JsonTraces } from "@opentelemetry/exporter-trace-otlp-http"
import { OTLPTraceExporter as ProtoTraces } from "@opentelemetry/exporter-trace-otlp-proto"
import type { PushMetricExporter } from "@opentelemetry/sdk-metrics"
import type { ReadableSpan, SpanExporter } from "@opentelemetry/sdk-trace-base"
import * as Config from "effect/Config"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import { ExportFailed } from "./ExportFailed.ts"
import { SettingInvalid } from "./SettingInvalid.ts"

type Signal = "TRACES" | "METRICS"

/** From the environment itself, as the exporters read theirs. */
const setting = (name: string, fallback: string): Effect.Effect<string> =>
  Effect.suspend(() => Config.withDefault(Config.String(name), fallback).parse(ConfigProvider.fromEnv())).pipe(
    Effect.orElseSucceed(() => fallback)
  )

/** Whether that signal is exported: `OTEL_SDK_DISABLED` and `OTEL_…_EXPORTER=none` switch it off. */
export const isOn = (signal: Signal): Effect.Effect<boolean> =>
  Effect.zipWith(
    setting("OTEL_SDK_DISABLED", "false"),
    setting(`OTEL_${signal}_EXPORTER`, "otlp"),
    (disabled, exporter) => disabled !== "true" && exporter !== "none"
  )

/** Fails where a variable of a signal that is on says what the exporters would take and could do nothing with. */
export const check = (signal: Signal): Effect.Effect<void, SettingInvalid> =>
  Effect.forEach(
    ["OTEL_EXPORTER_OTLP", `OTEL_EXPORTER_OTLP_${signal}`],
    (prefix) =>
      Effect.gen(function* () {
        const endpoint = yield* setting(`${prefix}_ENDPOINT`, "")
        if (endpoint !== "" && !isHttp(endpoint)) {
          return yield* new SettingInvalid({
            name: `${prefix}_ENDPOINT`,
            detail: "must be an http:// or https:// address"
          })
        }
        const protocol = yield* setting(`${prefix}_PROTOCOL`, "")
        if (!protocols.has(protocol)) {
          return yield* new SettingInvalid({
            name: `${prefix}_PROTOCOL`,
            detail: "must be http/protobuf or http/json: there is no exporter for gRPC here"
          })
        }
      }),
    { discard: true }
  )

const protocols: ReadonlySet<string> = new Set(["", "http/protobuf", "http/json"])

const isHttp = (text: string): boolean => {
  try {
    return /^https?:$/.test(new URL(text).protocol)
  } catch {
    return false
  }
}

/** As the environment names this service; with the default that OpenTelemetry asks for. */
export const serviceName: Effect.Effect<string> = Effect.suspend(() =>
  Resource.Resource.use(({ attributes }) =>
    Effect.succeed(String(attributes["service.name"] ?? "unknown_service:node"))
  ).pipe(
    Effect.provide(Resource.layerFromEnv()),
    Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnv())
  )
)

/** `http/json`, or `http/protobuf`, which is OpenTelemetry's default. */
const isJson = (signal: Signal): Effect.Effect<boolean> =>
  Effect.flatMap(setting("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"), (general) =>
    Effect.map(setting(`OTEL_EXPORTER_OTLP_${signal}_PROTOCOL`, general), (protocol) => protocol === "http/json")
  )

export const traces: Effect.Effect<SpanExporter> = Effect.map(isJson("TRACES"), (json) =>
  json ? new JsonTraces() : new ProtoTraces()
)

export const metrics: Effect.Effect<PushMetricExporter> = Effect.map(isJson("METRICS"), (json) =>
  json ? new JsonMetrics() : new ProtoMetrics()
)

/** What a timer of JavaScript can wait at most; beyond that it does not wait at all. */
const longestTimer = 2 ** 31 - 1

/** How often metrics go out, in ms: `OTEL_METRIC_EXPORT_INTERVAL`, 60,000 by default. */
export const metricInterval: Effect.Effect<number> = Effect.map(
  setting("OTEL_METRIC_EXPORT_INTERVAL", "60000"),
  (value) => (Number(value) > 0 && Number(value) <= longestTimer ? Number(value) : 60_000)
)

/** Exports once; succeeds when the back end has taken the spans. What the request itself does is not traced. */
export const send = (exporter: SpanExporter, spans: ReadonlyArray<ReadableSpan>): Effect.Effect<void, ExportFailed> =>
  Effect.callback<void, ExportFailed>((resume) => {
    const failed = (error: unknown) => {
      const detail = error instanceof Error ? error.message : "no reason was given"
      const status = error instanceof Error && "code" in error ? Number(error.code) : NaN
      resume(Effect.fail(new ExportFailed({ detail, ...(Number.isNaN(status) ? undefined : { status }) })))
    }
    try {
      context.with(suppressTracing(context.active()), () =>
        exporter.export([...spans], ({ code, error }) =>
          code === ExportResultCode.SUCCESS ? resume(Effect.void) : failed(error)
        )
      )
    } catch (error) {
      failed(error)
    }
  })
