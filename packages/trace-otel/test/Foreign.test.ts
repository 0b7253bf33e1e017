import { expect, it } from "@effect/vitest"
import { BasicTracerProvider, type ReadableSpan, type SpanProcessor } from "@opentelemetry/sdk-trace-base"
import { Foreign } from "../src/Foreign.ts"
import { Held } from "../src/Held.ts"

const processor = (shutdown: () => Promise<void> = async () => {}) => {
  const ended: Array<string> = []
  const inner: SpanProcessor = {
    onStart: () => {},
    onEnd: ({ name }: ReadableSpan) => void ended.push(name),
    forceFlush: shutdown,
    shutdown
  }
  return { ended, foreign: new Foreign(new Held(100), inner) }
}

it.each([
  ["a Run that is kept, then one that is not", [true, false], true],
  ["none that is kept", [false, false], false]
] as const)("a span around %s", (_, decisions, isSent) => {
  const { ended, foreign } = processor()
  const around = new BasicTracerProvider({ spanProcessors: [foreign] }).getTracer("test").startSpan("request")
  const { traceId } = around.spanContext()
  for (const kept of decisions) {
    foreign.open(traceId)
    foreign.close(traceId, kept)
  }
  around.end()
  expect(ended).toEqual(isSent ? ["request"] : [])
})

it("a back end that takes nothing at the end is no failure of the program", async () => {
  const { foreign } = processor(() => Promise.reject(new Error("400")))
  await foreign.forceFlush()
  await foreign.shutdown()
})
