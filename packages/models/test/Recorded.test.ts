import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { describe, expect, it } from "@effect/vitest"
import { MemoryStore, Run, type RunEvent } from "@waystone/core"
import { RecordedModel } from "@waystone/core/testing"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as AiSdk from "../src/AiSdk.ts"
import * as Kit from "./Kit.ts"
import * as Script from "./servers/Script.ts"
import { serve } from "./servers/serve.ts"
import { spoken } from "./Spoken.ts"

/** Everything of a journal but times and who owned the Run. */
const timeless = (events: ReadonlyArray<RunEvent.RunEvent>) =>
  JSON.parse(
    JSON.stringify(events, (key, value) =>
      ["at", "endedAt", "firstPartAt", "startedAt", "owner"].includes(key) ? undefined : value
    )
  )

const replies: ReadonlyArray<Script.Reply | Script.Fault> = [
  { text: "Let me see.", calls: [{ name: "weather", args: { city: "Oslo" } }, { name: "now" }] },
  Script.status(503, { "retry-after-ms": "3", "set-cookie": "session=secret" }),
  { calls: [{ name: "weather", args: { city: "Rome" } }] },
  { text: "4 degrees.", usage: { input: 3, cacheRead: 4, output: 5 } }
]

describe.each(spoken.flatMap((one) => [true, false].map((stream) => ({ ...one, stream }))))(
  "$protocol (stream: $stream)",
  ({ model, protocol, stream, thinking }) => {
    it.live(
      "a cassette that was recorded through the adapter is replayed twice with equal journals, asking nobody",
      () =>
        Effect.gen(function* () {
          const fs = yield* FileSystem.FileSystem
          const file = `${yield* fs.makeTempDirectoryScoped({ prefix: "waystone-models-" })}/oslo.jsonl`
          const thought = (reply: Script.Reply | Script.Fault) =>
            "fault" in reply || protocol === "openai-chat" ? reply : { ...reply, reasoning: { text: "Hm." } }
          const server = yield* serve({ protocol, script: (_, number) => thought(replies[number] ?? { text: "?" }) })
          const run = (mode: RecordedModel.Mode) =>
            Effect.scoped(
              Effect.gen(function* () {
                const real = AiSdk.layer(model(server.url), { settings: thinking })
                const recorded = yield* RecordedModel.make({ file, mode, model: real })
                const layer = Layer.mergeAll(recorded.layer, MemoryStore.layer, Kit.handlers)
                const entries = yield* Run.start(Kit.agentOf(stream), { runId: "r", task: Kit.task }).pipe(
                  Effect.andThen(Stream.runCollect(Run.events("r"))),
                  Effect.provide(layer)
                )
                yield* recorded.assertConsumed
                return timeless(entries.map(({ event }) => event))
              })
            )
          const first = yield* run("record")
          expect(yield* server.rejected).toEqual([])
          expect(first.at(-1)).toMatchObject({ outcome: { _tag: "Completed", output: "4 degrees." } })
          const asked = (yield* server.requests).length
          expect(asked).toBe(replies.length)
          const [second, third] = [yield* run("replay"), yield* run("replay")]
          expect((yield* server.requests).length).toBe(asked)
          expect(third).toEqual(second)
          expect(second).toEqual(first)
          const text = yield* fs.readFileString(file)
          for (const secret of ["test-key", "session=secret"]) expect(text).not.toContain(secret)
        }).pipe(Effect.provide(NodeFileSystem.layer))
    )
  }
)
