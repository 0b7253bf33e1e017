import { describe, expect, it } from "@effect/vitest"
import { ModelInfo } from "@waystone/core"
import * as Effect from "effect/Effect"
import { execFile } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { lines, textual } from "./fixtures/readme-providers.ts"
import { serve } from "./servers/serve.ts"
import * as Wire from "./servers/Wire.ts"

const read = (path: string) => readFileSync(join(import.meta.dirname, path), "utf8")
const readme = read("../README.md")
const bare = (code: string) =>
  code
    .split("\n")
    .filter((line) => !line.startsWith("import "))
    .map((line) => line.replace(/(^|\s)\/\/.*$/, ""))
    .join("")
    .replace(/\s/g, "")
const blocks = [...readme.matchAll(/```ts\n([\s\S]*?)```/g)].map((match) => match[1] ?? "")
const compiled = bare(read("fixtures/readme-providers.ts"))

describe("README.md", () => {
  it("shows a program that is compiled, and one line for a model without tools", () => {
    expect(blocks).toHaveLength(2)
    const [poet = "", textProtocol = ""] = blocks
    expect(read("fixtures/readme-poet.ts")).toBe(poet)
    expect(compiled).toContain(bare(textProtocol))
  })

  it.live("shows a program that asks its model, with the settings that it names, and says how the Run ended", () =>
    Effect.gen(function* () {
      const server = yield* serve({ protocol: "anthropic", script: () => ({ text: "Grey veil on the fjord." }) })
      const env = { PATH: process.env["PATH"], ANTHROPIC_API_KEY: "test-key", ANTHROPIC_BASE_URL: `${server.url}/v1` }
      const file = join(import.meta.dirname, "fixtures/readme-poet.ts")
      const { stderr, stdout } = yield* Effect.promise(() =>
        promisify(execFile)(process.execPath, ["--conditions=@waystone/source", file], { env })
      )
      expect({ stderr, stdout }).toEqual({ stderr: "", stdout: "Completed\n" })
      expect(yield* server.rejected).toEqual([])
      const [request] = yield* server.requests
      expect(Wire.object(request?.body)).toMatchObject({ thinking: { type: "enabled", budget_tokens: 1024 } })
    })
  )

  const rows = readme.split("\n").flatMap((line) => {
    const [, name, , code] = /^\| (\S+) \| `(\S+)` \| `(AiSdk\..*)` \|$/.exec(line) ?? []
    return name === undefined || code === undefined ? [] : [{ name, code }]
  })

  it("has six providers in one table", () => {
    expect(rows.map(({ name }) => name)).toEqual(Object.keys(lines))
  })

  it.each(rows)("shows a line for $name that compiles", ({ code, name }) => {
    expect(compiled).toContain(`${name}:${bare(code)}`)
  })

  it.effect.each([...Object.entries(lines), ["Ollama", textual] as const].map(([name, layer]) => ({ name, layer })))(
    "the line for $name makes a model of that provider",
    ({ layer, name }) =>
      Effect.gen(function* () {
        const { provider = "" } = yield* ModelInfo.ModelInfo
        expect(name.toLowerCase()).toContain(provider)
      }).pipe(Effect.provide(layer))
  )
})
