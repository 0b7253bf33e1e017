/**
 * A model that does what a test says, behind a real server, and the demo that asks it.
 */
import * as Effect from "effect/Effect"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type * as Script from "../../../packages/models/test/servers/Script.ts"
import { serve } from "../../../packages/models/test/servers/serve.ts"
import * as Wire from "../../../packages/models/test/servers/Wire.ts"
import { bundle } from "./paths.ts"
import { finished, own, start, startWith } from "./process.ts"

export const program = join(bundle, "main.mjs")
/** The demo, to its end, without a model. */
export const done = (...args: ReadonlyArray<string>) => Effect.promise(() => finished(start(...args)))
export const idIn = (text: string) => /demo-[0-9a-f-]{36}/.exec(text)?.[0] ?? ""

/** A folder of the user's, whose tests pass; `test` is what they do besides. */
export const folder = (test = "", files: Readonly<Record<string, string>> = {}): string => {
  const path = join(own.temporary, "own")
  mkdirSync(path)
  writeFileSync(join(path, "package.json"), '{ "type": "module", "scripts": { "test": "node --test" } }')
  writeFileSync(join(path, "a.test.js"), `import test from "node:test"\ntest("a", () => {})\n${test}\n`)
  for (const [name, text] of Object.entries(files)) writeFileSync(join(path, name), text)
  return path
}

export type Call = Script.Call

/** A model that calls these, one reply after the other, and then says that it is done. */
export const calling =
  (...replies: ReadonlyArray<ReadonlyArray<Call>>): Script.Script =>
  (body) => {
    const said = Wire.objects(body["messages"]).filter(({ role }) => role === "assistant").length
    const calls = replies[said]
    return calls === undefined ? { text: "Done." } : { text: "", calls }
  }
export const shell = (command: string): Call => ({ name: "shell", args: { command } })
export const write = (path: string, content: string): Call => ({ name: "write_file", args: { path, text: content } })
export const read = (...paths: ReadonlyArray<string>): Call => ({
  name: "read_files",
  args: { files: paths.map((path) => ({ path })) }
})
export const tests: Call = { name: "run_tests" }

/** The model, and how the demo reaches it. */
export const model = Effect.fnUntraced(function* (
  script: Script.Script,
  more: Readonly<Record<string, string>> = {},
  apiKey = "key"
) {
  const server = yield* serve({ protocol: "openai-chat", script, apiKey })
  const flags = ["--model", "openai-compatible:llama", "--base-url", `${server.url}/v1`]
  const env = { OPENAI_COMPATIBLE_API_KEY: apiKey, ...more }
  const demo = (...args: ReadonlyArray<string>) => Effect.promise(() => finished(startWith(env, ...args, ...flags)))
  return { demo, env, flags, server }
})

/** The events of that kind. */
export const eventsOf = (runId: string, ...tags: ReadonlyArray<string>) =>
  Effect.map(done("events", runId, "--json"), ({ out }) =>
    out
      .trimEnd()
      .split("\n")
      .map((line) => Wire.object(Wire.object(Wire.parse(line))["event"]))
      .filter(({ _tag }) => tags.includes(String(_tag)))
  )
