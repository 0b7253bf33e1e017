import { expect, it } from "@effect/vitest"
import { once } from "node:events"
import { createServer } from "node:http"
import { gunzipSync } from "node:zlib"
import { MemoryStore, Run } from "@waystone/core"
import { ScriptedModel } from "@waystone/core/testing"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as OtelTrace from "../src/OtelTrace.ts"
import { spansOf, violations } from "./support/Conventions.ts"
import { agent, start, world } from "./support/Runs.ts"

const { call, text } = ScriptedModel

/** An OTLP receiver, and the environment that leads to it. */
const receiver = Effect.acquireRelease(
  Effect.promise(async () => {
    const got: Array<{ readonly path: string; readonly type: string; readonly body: Buffer }> = []
    const server = createServer((request, response) => {
      const chunks: Array<Buffer> = []
      request.on("data", (chunk: Buffer) => chunks.push(chunk))
      request.on("end", () => {
        const raw = Buffer.concat(chunks)
        const body = request.headers["content-encoding"] === "gzip" ? gunzipSync(raw) : raw
        got.push({ path: request.url ?? "", type: request.headers["content-type"] ?? "", body })
        response.end()
      })
    }).listen(0, "127.0.0.1")
    await once(server, "listening")
    const address = server.address()
    return { got, server, port: typeof address === "object" ? address?.port : undefined }
  }),
  ({ server }) => Effect.sync(() => server.close())
)

const environment = (variables: Readonly<Record<string, string>>) =>
  Effect.acquireRelease(
    Effect.sync(() => Object.assign(process.env, variables)),
    () =>
      Effect.sync(() => {
        for (const name of Object.keys(variables)) delete process.env[name]
      })
  )

const runs = Effect.gen(function* () {
  const inside = () => Effect.withSpan(Effect.succeed("ok"), "query")
  yield* Effect.provide(Effect.withSpan(start("r"), "request"), world([call("work", {}), text("done")], inside))
  yield* Effect.provide(
    start("bad"),
    world([call("work", {}), text("done")], () => Effect.fail("no"))
  )
  yield* Effect.provide(Run.start(agent, { runId: "asks", task: "t" }), world([call("act", {})]))
  const { waiting } = yield* Run.get("asks")
  for (const { digest = "", id } of waiting)
    yield* Run.answer(agent, { runId: "asks", callId: id, by: "ann", answer: { _tag: "Approve", digest } })
  yield* Effect.provide(Run.resume(agent, { runId: "asks" }), world([text("done")]))
})

it.live.each(["latest", "v1.41"] as const)(
  "the whole of a program keeps to the conventions over OTLP, with the application's spans where they belong: %s",
  (semconv) =>
    Effect.scoped(
      Effect.gen(function* () {
        const { got, port } = yield* receiver
        yield* environment({
          OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
          OTEL_EXPORTER_OTLP_PROTOCOL: "http/json"
        })
        const tracing = OtelTrace.layer({ serviceName: "shop", semconv, waitingEvery: "1 hour" })
        yield* Effect.provide(runs, Layer.provideMerge(tracing, MemoryStore.layer))
        const exports = got.filter(({ path }) => path === "/v1/traces").map(({ body }) => JSON.parse(body.toString()))
        expect(violations(exports, { semconv })).toEqual([])
        const spans = spansOf(exports)
        const parent = (name: string) => {
          const id = spans.find((span) => span.name === name)?.parentId
          return spans.find(({ spanId }) => spanId === id)?.name
        }
        expect(parent("query")).toBe("execute_tool work")
        expect(
          spans
            .filter(({ parentId }) => parentId === "")
            .map(({ name }) => name)
            .toSorted()
        ).toEqual(["invoke_agent worker", "invoke_agent worker", "request"])
        expect(JSON.stringify(exports)).toContain('"shop"')
        expect(got.some(({ path }) => path === "/v1/metrics")).toBe(true)
      })
    )
)

it.live("protobuf is what goes out unless the environment says otherwise, and nothing does where it is disabled", () =>
  Effect.scoped(
    Effect.gen(function* () {
      const { got, port } = yield* receiver
      yield* environment({ OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}` })
      const program = Effect.suspend(() =>
        Effect.provide(runs, Layer.provideMerge(OtelTrace.layer({ serviceName: "shop" }), MemoryStore.layer))
      )
      yield* program
      expect(got.length).toBeGreaterThan(1)
      expect(new Set(got.map(({ type }) => type))).toEqual(new Set(["application/x-protobuf"]))
      got.length = 0
      yield* environment({ OTEL_SDK_DISABLED: "true" })
      yield* program
      expect(got).toEqual([])
    })
  )
)
