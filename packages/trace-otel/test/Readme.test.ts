import { expect, it } from "@effect/vitest"
import { execFile } from "node:child_process"
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"

const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8")
const fixture = new URL("./fixtures/readme-trace.ts", import.meta.url)

it("README shows code that compiles, with its imports, and what comes of it", async () => {
  expect(readme).toContain(`\`\`\`ts\n${readFileSync(fixture, "utf8").trim()}\n\`\`\``)
  const run = promisify(execFile)(process.execPath, ["--conditions=@waystone/source", fileURLToPath(fixture)])
  expect(await run).toEqual({ stdout: "client chat unknown\ninternal invoke_agent greeter\n", stderr: "" })
})
