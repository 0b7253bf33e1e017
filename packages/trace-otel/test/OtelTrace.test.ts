import { expect, it } from "@effect/vitest"
import { MemoryStore, Run } from "@waystone/core"
import { ScriptedModel } from "@waystone/core/testing"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import * as OtelTrace from "../src/OtelTrace.ts"
import * as Trace from "../src/Trace.ts"
import { spansOf, violations } from "./support/Conventions.ts"
import { receiver, refusing, tracesOf } from "./support/Receiver.ts"
import { agent, start, world } from "./support/Runs.ts"

const { call, text } = ScriptedModel

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

it.live.each([
  [{ OTEL_RESOURCE_ATTRIBUTES: "service.name=my%20shop,a=b" }, "my shop"],
  [{ OTEL_RESOURCE_ATTRIBUTES: "service.name=shop", OTEL_SERVICE_NAME: "till" }, "till"],
  [{}, "unknown_service:node"]
] as const)("with %j the service is called %j, and what the program says of it goes out", ([variables, name]) =>
  Effect.scoped(
    Effect.gen(function* () {
      const { got, port } = yield* receiver
      yield* environment({
        OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
        OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
        ...variables
      })
      const tracing = OtelTrace.layer({ serviceVersion: "7", attributes: { where: "here" }, waitingEvery: "1 hour" })
      const all = Layer.merge(world([text("done")]), Layer.provideMerge(tracing, MemoryStore.layer))
      yield* Effect.provide(start("r"), all)
      const sent = got.find(({ path }) => path === "/v1/traces")?.body.toString() ?? ""
      const said = (key: string, value: string) => JSON.stringify({ key, value: { stringValue: value } })
      for (const one of [said("service.name", name), said("service.version", "7"), said("where", "here")])
        expect(sent).toContain(one)
    })
  )
)

it.effect.each([
  ["OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318"],
  ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "no address"],
  ["OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "grpc://collector:4317"],
  ["OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"]
] as const)("%s cannot be %j: nothing would ever arrive, so the Layer fails with its name", ([name, value]) =>
  Effect.gen(function* () {
    yield* environment({ [name]: value })
    const built = Layer.build(Layer.provide(OtelTrace.layer(), MemoryStore.layer))
    expect(yield* Effect.flip(built)).toMatchObject({ _tag: "SettingInvalid", name })
    yield* environment({ OTEL_SDK_DISABLED: "true" })
    yield* built
  }).pipe(Effect.scoped)
)

it.effect.each([
  [{ sampling: { ratio: "abc" } }, "sampling.ratio"],
  [{ sampling: { ratio: 1.5 } }, "sampling.ratio"],
  [{ sampling: { dearerThanUsd: NaN } }, "sampling.dearerThanUsd"],
  [{ maxSpans: "x" }, "maxSpans"],
  [{ maxHeld: 0 }, "maxHeld"],
  [{ content: { maxBytes: NaN } }, "content.maxBytes"]
] as const)("the options %j are refused by the name of the field", ([options, name]) =>
  Effect.gen(function* () {
    yield* environment({ OTEL_SDK_DISABLED: "true" })
    const built = Layer.build(Layer.provide(OtelTrace.layer(options as never), MemoryStore.layer))
    expect(yield* Effect.flip(built)).toMatchObject({ _tag: "SettingInvalid", name })
  }).pipe(Effect.scoped)
)

it.effect("X2 a back end over HTTP that refuses 30 requests in a row gets every span in the end, once", () =>
  Effect.scoped(
    Effect.gen(function* () {
      const { got, port, state } = yield* refusing(30)
      yield* environment({
        OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
        OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
        OTEL_METRICS_EXPORTER: "none"
      })
      const tracing = OtelTrace.layer({ serviceName: "shop", waitingEvery: "1 hour", patience: "1 hour" })
      const program = Effect.provide(
        Effect.andThen(runs, Effect.all([Trace.tree("r"), Trace.tree("bad"), Trace.tree("asks")])),
        Layer.provideMerge(tracing, MemoryStore.layer)
      )
      const fiber = yield* Effect.forkChild(program)
      while (fiber.pollUnsafe() === undefined) {
        yield* Effect.promise(() => new Promise<void>((resolve) => setTimeout(resolve, 1)))
        yield* TestClock.adjust("200 millis")
      }
      const stored = (yield* Fiber.join(fiber)).flat().map(({ spanId }) => spanId)
      const sent = spansOf(tracesOf(got)).filter(({ attributes }) => attributes.has("waystone.run.id"))
      expect(state.refused).toBe(30)
      expect(sent.map(({ spanId }) => spanId).toSorted()).toEqual(stored.toSorted())
    })
  )
)
