/** The fake servers over several requests: conversations, bookkeeping and the end. */
import { execFile } from "node:child_process"
import { join } from "node:path"
import { promisify } from "node:util"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Client from "./servers/client.ts"
import { next, protocols, short } from "./servers/requests.ts"
import type * as Script from "./servers/Script.ts"
import { serve } from "./servers/serve.ts"
import * as Wire from "./servers/Wire.ts"

const calling: Script.Reply = { reasoning: { text: "Let me look." }, calls: [{ name: "f" }, { name: "f" }] }
const done: Script.Reply = { text: "Done." }
const answers = (...replies: ReadonlyArray<Script.Reply>) => ({
  script: (_: unknown, number: number) => replies[number] ?? done
})

describe("a conversation of two turns with tools", () => {
  for (const protocol of protocols)
    it.live(`goes through when ${protocol}'s answer comes back as it was`, () =>
      Effect.gen(function* () {
        const server = yield* serve({ protocol, ...answers(calling, done) })
        const first = yield* Client.post(server, protocol, short[protocol])
        const second = yield* Client.post(server, protocol, next[protocol](Wire.object(first.json)))
        expect(yield* server.rejected).toEqual([])
        expect([second.status, second.text.includes("Done.")]).toEqual([200, true])
      })
    )
})

describe("the server", () => {
  it.live("counts the requests that break no rule, and keeps them all", () =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      const server = yield* serve({
        protocol: "anthropic",
        script: (body, number) => {
          seen.push([body["model"], number])
          return done
        }
      })
      yield* Client.post(server, "anthropic", short.anthropic)
      yield* Client.post(server, "anthropic", {})
      yield* Client.post(server, "anthropic", { ...short.anthropic, model: "b" })
      expect(seen).toEqual([
        ["claude-test", 0],
        ["b", 1]
      ])
      expect(yield* server.rejected).toEqual(["400 invalid_request_error: model: Field required"])
      const requests = yield* server.requests
      expect(requests.map(({ method, path, body }) => [method, path, Wire.object(body)["model"]])).toEqual([
        ["POST", "/v1/messages", "claude-test"],
        ["POST", "/v1/messages", undefined],
        ["POST", "/v1/messages", "b"]
      ])
      expect(requests[0]?.headers["anthropic-version"]).toBe("2023-06-01")
    })
  )

  it.live("has nothing at another path and takes only POST", () =>
    Effect.gen(function* () {
      const server = yield* serve({ protocol: "openai-chat", ...answers() })
      const status = (path: string, method: string) =>
        Effect.promise(() =>
          fetch(server.url + path, { method, headers: Client.headersOf("openai-chat") }).then((got) => got.status)
        )
      expect(yield* status("/v1/responses", "POST")).toBe(404)
      expect(yield* status("/v1/chat/completions", "GET")).toBe(405)
    })
  )

  it.live("answers 500 and says so when the script throws", () =>
    Effect.gen(function* () {
      const script = (): Script.Reply => {
        throw new Error("no more replies")
      }
      const server = yield* serve({ protocol: "openai-chat", script })
      expect((yield* Client.post(server, "openai-chat", short["openai-chat"])).status).toBe(500)
      expect(yield* server.rejected).toEqual(["500 script: Error: no more replies"])
    })
  )

  it.live("is gone when its scope closes", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const server = yield* Scope.provide(serve({ protocol: "openai-chat", ...answers() }), scope)
      yield* Client.post(server, "openai-chat", short["openai-chat"])
      yield* Scope.close(scope, Exit.void)
      const failure = yield* Effect.promise(() =>
        fetch(server.url).then(
          () => undefined,
          (error: unknown) => error
        )
      )
      expect(failure).toMatchObject({ cause: { code: "ECONNREFUSED" } })
    })
  )

  // Starts a process of its own, which a busy machine lets wait.
  it.live(
    "leaves no connection and no timer: the process that had it ends by itself",
    () =>
      Effect.gen(function* () {
        const file = join(import.meta.dirname, "fixtures/leaves-nothing.ts")
        const { stdout } = yield* Effect.promise((signal) => promisify(execFile)(process.execPath, [file], { signal }))
        expect(stdout).toBe("closed")
      }),
    60_000
  )
})
