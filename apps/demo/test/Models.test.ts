import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { readdirSync, readFileSync } from "node:fs"
import { vi } from "vitest"
import * as Script from "../../../packages/models/test/servers/Script.ts"
import { serve, type ServeOptions } from "../../../packages/models/test/servers/serve.ts"
import * as Wire from "../../../packages/models/test/servers/Wire.ts"
import * as Bugs from "../src/Bugs.ts"
import { answering, answeringInText } from "./Conversation.ts"
import { finished, own, standardFile, startWith } from "./process.ts"

vi.setConfig({ testTimeout: 240_000 })

type Protocol = ServeOptions["protocol"]

const key = "key-0f1e2d3c4b5a6978"
const idIn = (text: string) => /demo-[0-9a-f-]{36}/.exec(text)?.[0] ?? ""
const done = (env: Readonly<Record<string, string>>, ...args: ReadonlyArray<string>) =>
  Effect.promise(() => finished(startWith(env, ...args)))

/** How a user reaches a server of that protocol, without naming its address in the command. */
const ways: ReadonlyArray<{
  readonly protocol: Protocol
  readonly model: string
  readonly script?: Script.Script
  readonly env?: (url: string) => Readonly<Record<string, string>>
  readonly args?: (url: string) => ReadonlyArray<string>
}> = [
  {
    protocol: "openai-responses",
    model: "openai:gpt-5",
    env: (url) => ({ OPENAI_API_KEY: key, OPENAI_BASE_URL: `${url}/v1` })
  },
  {
    protocol: "anthropic",
    model: "anthropic:claude-sonnet-4-5",
    env: (url) => ({ ANTHROPIC_API_KEY: `${key}\n`, ANTHROPIC_BASE_URL: url })
  },
  {
    protocol: "openai-chat",
    model: "openai-compatible:llama",
    env: () => ({ OPENAI_COMPATIBLE_API_KEY: key, OPENAI_API_KEY: "another", OPENAI_BASE_URL: "http://127.0.0.1:9" }),
    args: (url) => ["--base-url", `${url}/v1`]
  },
  {
    protocol: "google",
    model: "google:gemini-3-pro-preview",
    env: () => ({ GEMINI_API_KEY: key }),
    args: (url) => ["--base-url", `${url}/v1beta`]
  },
  {
    protocol: "openai-chat",
    model: "ollama:gemma3",
    script: answeringInText,
    env: () => ({ OLLAMA_API_KEY: key }),
    args: (url) => ["--base-url", `${url}/v1/`, "--text-protocol"]
  }
]

describe.each(ways)("--model $model", ({ args = () => [], env = () => ({}), model, protocol, script }) => {
  it.live(`RI-059 drives the whole coding task over ${protocol}, streaming, and the server rejects nothing`, () =>
    Effect.gen(function* () {
      const server = yield* serve({ protocol, script: script ?? answering(protocol), apiKey: key })
      const ran = yield* done(env(server.url), "--model", model, ...args(server.url))
      const { code, err, out } = ran
      const rejected = yield* server.rejected
      expect({ rejected, err, code }, out).toEqual({ rejected: [], err: "", code: 0 })
      expect(ran.out).toContain(`+  return ${Bugs.bundled.right}`)
      const [provider, name] = model.split(":")
      const named = `${provider} ${name} at ${new URL(server.url).host}`
      expect(ran.out).toContain(`The model is ${named}.\n`)
      expect(ran.out).toContain(`Model: ${named}\n`)
      expect(ran.out).not.toContain("No key is needed")
      const streamed = (yield* server.requests).map(
        ({ body, path }) => Wire.object(body)["stream"] ?? path.includes(":streamGenerateContent")
      )
      expect(streamed.length).toBeGreaterThan(3)
      expect(streamed).toEqual(streamed.map(() => true))
      expect(readdirSync(own.temporary)).toEqual([])

      const shown = yield* done({}, "show", idIn(ran.out))
      expect(shown.out).toMatch(new RegExp(`^  model +${named}$`, "m"))
      expect(ran.out + shown.out + readFileSync(standardFile(), "latin1")).not.toContain(key)
    })
  )
})

/** An answer that repeats the key, as some servers do. */
const repeating = (status: number): Script.Fault =>
  Script.status(status, {}, JSON.stringify({ error: { message: `No such key: ${key}.`, type: "auth", code: null } }))

describe("a key", () => {
  it.live.each([
    { model: "anthropic:claude-sonnet-4-5", variable: "ANTHROPIC_API_KEY" },
    { model: "openai:gpt-5", variable: "OPENAI_API_KEY" },
    { model: "google:gemini-2.5-flash", variable: "GOOGLE_GENERATIVE_AI_API_KEY or GEMINI_API_KEY" }
  ])("that is missing for $model is one line that names $variable, and nothing is begun", ({ model, variable }) =>
    Effect.gen(function* () {
      const ran = yield* done({ [variable]: "  " }, "--model", model)
      expect(ran).toMatchObject({ code: 1, out: "" })
      expect(ran.err).toMatch(new RegExp(`^demo: set ${variable} to your key: .*\n$`))
      expect(readdirSync(own.temporary)).toEqual([])
    })
  )

  it.live("that cannot be one is not shown", () =>
    Effect.gen(function* () {
      const ran = yield* done({ OPENAI_API_KEY: `${key}\n${key}` }, "--model", "openai:gpt-5")
      expect(ran).toMatchObject({ code: 1, out: "" })
      expect(ran.err).toMatch(/^demo: set OPENAI_API_KEY to your key: .*\n$/)
      expect(ran.err).not.toContain(key)
    })
  )

  it.live(
    "that the provider does not take: the variable is named, the folder kept, and resume goes on with a right one",
    () =>
      Effect.gen(function* () {
        const server = yield* serve({
          protocol: "openai-responses",
          script: (body, number) => (number === 0 ? repeating(401) : answering("openai-responses")(body, number)),
          apiKey: key
        })
        const openai = { OPENAI_API_KEY: key, OPENAI_BASE_URL: `${server.url}/v1` }
        const ran = yield* done(openai, "--model", "openai:gpt-5")
        const runId = idIn(ran.out)
        expect({ code: ran.code, err: ran.err }).toEqual({ code: 1, err: "" })
        const advice = `openai does not take the key: set OPENAI_API_KEY to one that may use gpt-5. Then the run can go on: npm run demo -- resume ${runId} --model openai:gpt-5\n`
        expect(ran.out).toContain(advice)
        expect(ran.out).toContain("No such key: ….")
        expect(readdirSync(own.temporary)).toHaveLength(1)
        expect((yield* server.requests).length).toBe(1)

        const keyless = yield* done({}, "resume", runId, "--model", "openai:gpt-5")
        expect(keyless).toMatchObject({ code: 1, out: "" })
        expect(keyless.err).toMatch(
          /^demo: set OPENAI_API_KEY to your key: .* npm run demo -- resume .* --model openai:gpt-5\n$/
        )
        expect(readdirSync(own.temporary)).toHaveLength(1)

        const again = yield* done(openai, "resume", runId, "--model", "openai:gpt-5")
        expect({ code: again.code, err: again.err, rejected: yield* server.rejected }).toEqual({
          code: 0,
          err: "",
          rejected: []
        })
        expect(again.out).toContain(`+  return ${Bugs.bundled.right}`)
        const events = yield* done({}, "events", runId, "--json")
        expect(events.out).toContain('"_tag":"RunReopened"')
        for (const text of [ran.out, again.out, events.out, readFileSync(standardFile(), "latin1")]) {
          expect(text).not.toContain(key)
        }
      })
  )

  it.live("that was refused for one model is not needed for another: resume uses the model that is named then", () =>
    Effect.gen(function* () {
      const server = yield* serve({ protocol: "anthropic", script: () => ({ text: "?" }), apiKey: key })
      const env = { ANTHROPIC_API_KEY: "wrong", ANTHROPIC_BASE_URL: server.url }
      const ran = yield* done(env, "--model", "anthropic:claude-sonnet-4-5")
      expect(ran.code).toBe(1)
      expect(ran.out).toContain("anthropic does not take the key: set ANTHROPIC_API_KEY")
      const again = yield* done(env, "resume", idIn(ran.out))
      expect({ code: again.code, err: again.err }).toEqual({ code: 0, err: "" })
      expect(again.out).toContain("Model: waystone scripted-repairer\n")
      expect((yield* server.requests).length).toBe(1)
    })
  )
})

describe.skipIf(process.platform === "win32")("a process that is killed", () => {
  it.live("RI-092 leaves in SQLite what the model signed, and another process sends it on unchanged", () =>
    Effect.gen(function* () {
      const protocol = "openai-responses"
      const hanging = { at: 2 }
      const server = yield* serve({
        protocol,
        script: (body, number) => (number === hanging.at ? Script.hang : answering(protocol)(body, number)),
        apiKey: key
      })
      const env = { OPENAI_API_KEY: key, OPENAI_BASE_URL: `${server.url}/v1` }
      const child = startWith(env, "--model", "openai:gpt-5")
      const first = finished(child)
      yield* Effect.repeat(Effect.sleep("20 millis"), {
        until: () => Effect.map(server.requests, ({ length }) => length > hanging.at)
      })
      child.kill("SIGKILL")
      const { out } = yield* Effect.promise(() => first)
      const before = (yield* server.requests).length
      const again = yield* done(env, "resume", idIn(out), "--model", "openai:gpt-5")
      const rejected = yield* server.rejected
      expect({ rejected, err: again.err, code: again.code }, again.out).toEqual({ rejected: [], err: "", code: 0 })
      const signed = (yield* server.requests).map(({ body }) =>
        Wire.objects(Wire.object(body)["input"])
          .filter(({ type }) => type === "reasoning")
          .map((item) => item["encrypted_content"])
      )
      expect(signed[before]).toHaveLength(hanging.at)
      expect(signed[before]).toEqual(signed[before - 1])
      for (const one of signed[before] ?? []) expect(one).toEqual(expect.stringMatching(/^\S{20,}$/))
    })
  )
})

describe("what is asked for wrongly is said, and nothing is begun", () => {
  it.live.each([
    { args: ["--model", "gpt-5"], said: '--model "gpt-5" names no model' },
    { args: ["--model", "openai:"], said: "names no model" },
    { args: ["--model", "nobody:x"], said: "anthropic:<name> | openai:<name>" },
    { args: ["--model", "openai-compatible:x"], said: "needs --base-url" },
    { args: ["--base-url", "http://127.0.0.1/v1"], said: "--base-url goes with --model" },
    { args: ["--text-protocol"], said: "--text-protocol goes with --model" },
    { args: ["--model", "ollama:x", "--base-url", "127.0.0.1:11434"], said: "--base-url is no address" },
    {
      args: ["--model", "ollama:x", "--base-url", `http://me:${key}@127.0.0.1/v1`],
      said: "--base-url holds a name or password"
    },
    { args: ["--model", "ollama:x", "--scenario", "normal"], said: "leave out --model" }
  ])("$args", ({ args, said }) =>
    Effect.gen(function* () {
      const ran = yield* done({}, ...args)
      expect(ran).toMatchObject({ code: 1, out: "" })
      expect(ran.err).toContain(said)
      expect(ran.err).not.toContain(key)
      expect(readdirSync(own.temporary)).toEqual([])
    })
  )
})
