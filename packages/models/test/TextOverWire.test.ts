import { expect, it } from "@effect/vitest"
import { MemoryStore, Run } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as AiSdk from "../src/AiSdk.ts"
import * as TextProtocol from "../src/TextProtocol.ts"
import * as Kit from "./Kit.ts"
import { serve } from "./servers/serve.ts"
import * as Wire from "./servers/Wire.ts"
import { compatible } from "./Spoken.ts"

const weather = '```tool\n{"name":"weather","arguments":{"city":"Oslo"}}\n```'
const now = '```tool\n{"name":"now","arguments":{}}\n```'

/** What a model reads: a template puts the texts of a message together as they are. */
const textOf = (content: unknown): string =>
  Wire.string(content) ??
  Wire.objects(content)
    .map(({ text }) => Wire.string(text) ?? "")
    .join("")

it.live.each([true, false])(
  "a compatible server without tools is told of them and calls them in text, each block in lines of its own (stream: %s)",
  (stream) =>
    Effect.gen(function* () {
      const replies = [`I look.\n${weather}\n${now}`, "```tool\n{oops\n```", "4 degrees."]
      const server = yield* serve({
        protocol: "openai-chat",
        script: (_, number) => ({ text: replies[number] ?? "?" })
      })
      const model = TextProtocol.layer(AiSdk.layer(compatible(server.url)))
      const outcome = yield* Run.start(Kit.agentOf(stream), { runId: "r", task: Kit.task }).pipe(
        Effect.provide(Layer.mergeAll(model, MemoryStore.layer, Kit.handlers))
      )
      expect(outcome).toMatchObject({ _tag: "Completed", output: "4 degrees." })
      expect(yield* server.rejected).toEqual([])
      const bodies = (yield* server.requests).map(({ body }) => Wire.object(body))
      expect(bodies.map(({ tool_choice, tools }) => [tools, tool_choice])).toEqual(
        bodies.map(() => [undefined, undefined])
      )
      const messages = bodies.map((body) => Wire.objects(body["messages"]))
      expect(messages.map((all) => all.map(({ role }) => role))).toEqual([
        ["system", "user"],
        ["system", "user", "assistant", "user"],
        // Nothing is left of a reply that could not be read; what is wrong with it quotes it.
        ["system", "user", "assistant", "user"]
      ])
      const [, , assistant, results] = messages[1] ?? []
      expect(textOf(assistant?.["content"])).toBe(`I look.\n\n${weather}\n${now}`)
      expect(textOf(results?.["content"])).toBe(
        'Result of weather:\n```result\n{"celsius":4}\n```\nResult of now:\n```result\n"noon"\n```'
      )
      expect(textOf(messages[2]?.at(-1)?.["content"])).toContain("{oops")
    })
)
