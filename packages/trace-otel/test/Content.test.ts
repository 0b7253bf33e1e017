import { describe, expect, it } from "@effect/vitest"
import { ToolError } from "@waystone/core"
import { ScriptedModel } from "@waystone/core/testing"
import * as Effect from "effect/Effect"
import * as AiError from "effect/ai/AiError"
import * as Logger from "effect/Logger"
import * as Layer from "effect/Layer"
import type * as OtelTrace from "../src/OtelTrace.ts"
import * as RunLogs from "../src/RunLogs.ts"
import { makeExporter, start, traced, world } from "./support/Runs.ts"

const { call, calls, fail, reply, text } = ScriptedModel
const secret = "SENTINEL-123"

/** Everything that can hold content does. */
const script = [
  fail(new AiError.InternalProviderError({ description: secret })),
  reply([
    text(secret),
    calls([call("work", { n: secret }), call("nothing", { a: secret }), call("work", { wrong: { [secret]: 1 } })])
  ]),
  fail(new AiError.InvalidRequestError({ description: secret })),
  text(secret)
]

const told = (options: Partial<OtelTrace.JoinOptions>) =>
  Effect.gen(function* () {
    const { exporter, spans } = makeExporter()
    const lines: Array<string> = []
    const logger = Logger.make<unknown, void>((entry) => void lines.push(Logger.formatJson.log(entry)))
    const run = Effect.exit(
      Effect.provide(
        start("r", secret),
        world(script, () => ToolError.retryable(secret))
      )
    )
    const logging = Layer.merge(RunLogs.layer, Logger.layer([logger]))
    yield* Effect.provide(run, Layer.provideMerge(traced({ exporter, ...options }), logging))
    const all = spans.map(({ attributes, events, links, name, status }) => ({
      attributes,
      events,
      links,
      name,
      status
    }))
    return { all: JSON.stringify(all), spans, lines }
  })

describe("content", () => {
  it.live("RI-145 C1 is nowhere while the switch is off: not in attributes, events, status or logs", () =>
    Effect.gen(function* () {
      const { all, lines, spans } = yield* told({})
      expect(spans.length).toBeGreaterThan(4)
      expect(all).not.toContain(secret)
      const ours = lines.filter((line) => line.includes('"runId"'))
      expect(ours.length).toBeGreaterThan(5)
      expect(ours.join()).not.toContain(secret)
    })
  )

  it.live("RI-145 C1 is in prompts, answers, arguments, results and messages of errors when it is on", () =>
    Effect.gen(function* () {
      const { spans } = yield* told({ content: true })
      const found = spans.flatMap(({ attributes, status }) => [
        ...Object.entries(attributes)
          .filter(([, value]) => String(value).includes(secret))
          .map(([name]) => name),
        ...(status.message?.includes(secret) === true ? ["status"] : [])
      ])
      expect(new Set(found)).toEqual(
        new Set([
          "gen_ai.input.messages",
          "gen_ai.output.messages",
          "gen_ai.tool.call.arguments",
          "gen_ai.tool.call.result",
          "status"
        ])
      )
    })
  )

  it.live("RI-145 C2 goes through the redaction first", () =>
    Effect.gen(function* () {
      const { all } = yield* told({ content: { redact: (text) => text.replaceAll(secret, "***") } })
      expect(all).toContain("***")
      expect(all).not.toContain(secret)
    })
  )

  it.live("logs have time, run, step, event, latency and detail, and none are written without their Layer", () =>
    Effect.gen(function* () {
      const { lines } = yield* told({})
      const [first] = lines.filter((line) => line.includes('"ToolCallCompleted"') && line.includes("t1.0"))
      const { annotations, level } = JSON.parse(first ?? "{}")
      expect(level).toBe("INFO")
      expect(annotations).toMatchObject({ runId: "r", step: 1, event: "ToolCallCompleted" })
      expect(annotations.ts).toMatch(/^\d{4}-\d\d-\d\dT/)
      expect(annotations.latencyMs).toBeTypeOf("number")
      expect(JSON.parse(annotations.detail)).toMatchObject({ callId: "t1.0", ending: "executed", isFailure: true })
    })
  )
})
