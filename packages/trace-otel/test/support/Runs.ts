/** Real Runs of a scripted model, traced to an exporter in memory that can refuse. */
import * as Resource from "@effect/opentelemetry/Resource"
import type { ReadableSpan, SpanExporter } from "@opentelemetry/sdk-trace-base"
import { Agent, MemoryStore, ModelInfo, Run } from "@waystone/core"
import { ScriptedModel } from "@waystone/core/testing"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import type { FinishedSpan } from "../../src/FinishedSpan.ts"
import * as OtelTrace from "../../src/OtelTrace.ts"

/** Keeps what it takes; refuses the first `refuse` requests. */
export const makeExporter = (refuse = 0) => {
  const spans: Array<ReadableSpan> = []
  const state = { refuse, requests: 0 }
  const exporter: SpanExporter = {
    export: (batch, done) => {
      state.requests++
      if (state.requests <= state.refuse) return done({ code: 1, error: new Error("503") })
      spans.push(...batch)
      done({ code: 0 })
    },
    shutdown: () => Promise.resolve()
  }
  return { exporter, spans, state }
}

export const Work = Tool.make("work", {
  parameters: Schema.Struct({ n: Schema.optionalKey(Schema.Unknown) }),
  success: Schema.Unknown,
  failure: Schema.Unknown
}).annotate(Tool.Readonly, true)
export const Act = Tool.make("act", { success: Schema.Unknown, failure: Schema.Unknown, needsApproval: true })
const toolkit = Toolkit.make(Work, Act)

export const agent = Agent.make("worker", { instructions: "Work.", tools: [Work, Act] })

type Handler = () => Effect.Effect<unknown, unknown>

/** The same form as `Trace.spans` gives, of what an exporter got. */
export const plain = (span: ReadableSpan) => ({
  name: span.name,
  traceId: span.spanContext().traceId,
  spanId: span.spanContext().spanId,
  parentId: span.parentSpanContext?.spanId,
  start: Math.round(span.startTime[0] * 1000 + span.startTime[1] / 1e6),
  end: Math.round(span.endTime[0] * 1000 + span.endTime[1] / 1e6),
  attributes: span.attributes,
  events: span.events.map(({ name }) => name),
  links: span.links.map(({ context }) => context.spanId),
  failed: span.status.code === 2
})

export const plainOf = (span: FinishedSpan): ReturnType<typeof plain> => ({
  name: span.name,
  traceId: span.traceId,
  spanId: span.spanId,
  parentId: span.parentId,
  start: Math.round(span.start),
  end: Math.round(span.end),
  attributes: { ...span.attributes } as ReturnType<typeof plain>["attributes"],
  events: span.events.map(({ name }) => name),
  links: span.links.map(({ spanId }) => spanId),
  failed: span.failed !== undefined
})

/** The model, its name, and the handlers of both tools. */
export const world = (script: ScriptedModel.Script, handler: Handler = () => Effect.succeed("ok")) =>
  Layer.unwrap(
    Effect.map(ScriptedModel.make(script), (model) =>
      Layer.mergeAll(
        model.layer,
        Layer.succeed(ModelInfo.ModelInfo, { provider: "openai", model: "gpt", server: "api.example.com" }),
        toolkit.toLayer({ work: handler, act: handler })
      )
    )
  )

const resource = Resource.layer({ serviceName: "test" })

/** A store, and tracing into `exporter`. */
export const traced = (options: OtelTrace.JoinOptions) => Layer.provideMerge(tracing(options), MemoryStore.layer)

/** The same, over a store that is there. */
export const tracing = (options: OtelTrace.JoinOptions) =>
  Layer.provide(OtelTrace.join({ waitingEvery: "1 hour", ...options }), resource)

export const start = (runId: string, task = "do it") => Run.start(agent, { runId, task })
