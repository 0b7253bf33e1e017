import type { LanguageModelV4 } from "@ai-sdk/provider"
import { describe, expect, it } from "@effect/vitest"
import { ModelRetry } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Redirects from "../src/Redirects.ts"
import * as Fake from "./Fake.ts"
import * as Kit from "./Kit.ts"
import * as Wire from "./Wire.ts"

/** The same model in a form that hides where its fetch is, as a middleware around it does. */
const wrapped = (model: LanguageModelV4): LanguageModelV4 => ({
  specificationVersion: "v4",
  provider: model.provider,
  modelId: model.modelId,
  supportedUrls: {},
  doGenerate: (call) => model.doGenerate(call),
  doStream: (call) => model.doStream(call)
})

const forms = Wire.protocols.flatMap((protocol) => [true, false].map((stream) => ({ protocol, stream })))

const redirect = (location: string, status = 307): Fake.Answer => ({ status, headers: { location } })

/** The failure that a Run with two retries ends with, and how often the server was asked for it. */
const failing = (model: LanguageModelV4, server: Fake.Fake, stream: boolean) =>
  Effect.gen(function* () {
    const { events, outcome } = yield* Kit.run(model, { stream }).pipe(Effect.provide(Kit.fast))
    expect(outcome).toMatchObject({ _tag: "Failed", error: { _tag: "Fatal", reason: { _tag: "ModelRejected" } } })
    const failure = events.flatMap(({ event }) => (event._tag === "TurnFailed" ? [event.failure] : []))[0]
    return { asked: server.asked.length, message: failure?.message ?? "", status: failure?.status }
  })

describe.each(forms)("$protocol.name, stream: $stream", ({ protocol, stream }) => {
  it.live.each([301, 302, 303, 307, 308])(
    "R1 a redirect (%i) carries neither key nor prompt away, is not tried again, and its origin is named",
    (status) =>
      Effect.gen(function* () {
        const other = yield* Fake.serve([stream ? protocol.streamed({ text: "x" }) : protocol.whole({ text: "x" })])
        const to = other.url.replace("127.0.0.1", "localhost")
        const server = yield* Fake.serve([redirect(`${to}/stolen?token=t`, status)])
        const got = yield* failing(protocol.model(server.url), server, stream)
        expect(other.asked).toEqual([])
        expect(got).toMatchObject({ asked: 1, status })
        expect(got.message).toContain(`redirects (${status}) to ${to}, and nothing was sent there`)
        expect(got.message).toContain("the base URL is wrong")
        expect(got.message).not.toContain("stolen")
      })
  )

  it.live("R1 a redirect to the same server costs one request, not twenty for each try", () =>
    Effect.gen(function* () {
      const server = yield* Fake.serve([redirect("/again")])
      const got = yield* failing(protocol.model(server.url), server, stream)
      expect(got).toMatchObject({ asked: 1, status: 307 })
      expect(got.message).toContain(`to ${server.url},`)
    })
  )

  it.live("R1 what a fetch of one's own followed all the same is refused", () =>
    Effect.gen(function* () {
      const other = yield* Fake.serve([stream ? protocol.streamed({ text: "x" }) : protocol.whole({ text: "x" })])
      const server = yield* Fake.serve([redirect(other.url)])
      const follows: typeof fetch = (input, init) => fetch(input, { ...init, redirect: "follow" })
      const got = yield* failing(protocol.model(server.url, { fetch: follows }), server, stream)
      expect(got).toMatchObject({ asked: 1, status: 307 })
      expect(got.message).toContain(`was carried to ${other.url}`)
    })
  )

  it.live("R1 a model that hides its fetch is not tried again at a redirect without an end", () =>
    Effect.gen(function* () {
      const server = yield* Fake.serve([redirect("/again")])
      const got = yield* failing(wrapped(protocol.model(server.url)), server, stream)
      expect(got.asked).toBeLessThanOrEqual(21) // what `fetch` follows by itself, once
    })
  )

  it.live("R1 a model that hides its fetch is kept from redirects by Redirects.refusing", () =>
    Effect.gen(function* () {
      const other = yield* Fake.serve([{}])
      const server = yield* Fake.serve([redirect(other.url)])
      const model = wrapped(protocol.model(server.url, { fetch: Redirects.refusing() }))
      expect(yield* failing(model, server, stream)).toMatchObject({ asked: 1, status: 307 })
      expect(other.asked).toEqual([])
    })
  )

  it.live("a page with status 200 is no trouble of the network: asked once, with its type and its address", () =>
    Effect.gen(function* () {
      const headers = { "content-type": "text/html; charset=utf-8" }
      const server = yield* Fake.serve([{ body: "\n <html>gateway</html>", headers }])
      const got = yield* failing(protocol.model(server.url), server, stream)
      expect(got).toMatchObject({ asked: 1, status: 200 })
      expect(got.message).toMatch(/http:\/\/127\.0\.0\.1:\d+\/\S+ answered with text\/html; charset=utf-8: a page/)
    })
  )

  it.live("an error of JSON with status 200 is read like any other, and asked once", () =>
    Effect.gen(function* () {
      const error = { message: "no such model", type: "invalid_request_error", code: 400 }
      const server = yield* Fake.serve([Fake.json({ error })])
      const got = yield* failing(protocol.model(server.url), server, stream)
      expect(got).toMatchObject({ asked: 1, status: 400 })
      expect(got.message).toContain("no such model")
    })
  )

  it.live("an error of JSON with status 200 that says it is for a while is tried again", () =>
    Effect.gen(function* () {
      const busy = Fake.json({ error: { message: "busy", type: "overloaded_error", code: 503 } })
      const reply = stream ? protocol.streamed({ text: "ok" }) : protocol.whole({ text: "ok" })
      const server = yield* Fake.serve([busy, reply])
      const { outcome } = yield* Kit.run(protocol.model(server.url), { stream }).pipe(Effect.provide(Kit.fast))
      expect(outcome).toMatchObject({ _tag: "Completed", output: "ok" })
      expect(server.asked.length).toBe(2)
    })
  )
})

describe.each(Wire.protocols)("a stream of $name", (protocol) => {
  it.live("that is a whole reply of JSON is said to be no stream, and asked for once", () =>
    Effect.gen(function* () {
      const server = yield* Fake.serve([protocol.whole({ text: "x" })])
      const got = yield* failing(protocol.model(server.url), server, true)
      expect(got).toMatchObject({ asked: 1, status: 200 })
      expect(got.message).toContain("answered with application/json: no stream, which was asked for")
    })
  )

  it.live.each(["application/json", "text/html", "text/plain", ""])("that bears a wrong type (%j) is read", (type) =>
    Effect.gen(function* () {
      const answer = protocol.streamed({ text: "Grüße 🙂" })
      const server = yield* Fake.serve([{ body: `\n\n${answer.body ?? ""}`, headers: { "content-type": type } }])
      const { outcome } = yield* Kit.run(protocol.model(server.url), { stream: true })
      expect(outcome).toMatchObject({ _tag: "Completed", output: "Grüße 🙂" })
    })
  )
})

it.live("R1 a wrong address is worth another model, and no other try", () =>
  Effect.gen(function* () {
    const server = yield* Fake.serve([redirect("https://other.test/v1")])
    const error = yield* Effect.flip(
      Kit.withModel(Wire.anthropic.model(server.url), (model) => model.generateText({ prompt: "go" }))
    )
    expect(error.reason._tag).toBe("InvalidRequestError")
    expect(ModelRetry.failureOf(error, ModelRetry.table, 0)).toMatchObject({ class: "elsewhere", status: 307 })
  })
)
