import { describe, expect, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { cwd, linux, watched } from "./support/commands.ts"

const fixture = (name: string) => new URL(`./fixtures/${name}.ts`, import.meta.url)
const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8")

describe.skipIf(!linux)("README, commands and the shell", () => {
  watched()

  it.each(["readme-shell", "readme-command"])("shows code that compiles, with its imports: %s", (name) => {
    const code = readFileSync(fixture(name), "utf8").trim()
    expect(readme).toContain(`\`\`\`ts\n${code}\n\`\`\``)
  })

  it("names every package that its code imports as one to install", () => {
    const blocks = [...readme.matchAll(/```ts\n([^]*?)```/g)].map(([, code = ""]) => code)
    const imported = blocks.flatMap((code) =>
      [...code.matchAll(/from "((?:@[^/"]+\/)?[^/"]+)/g)].map(([, name = ""]) => name)
    )
    const installed = /```sh\nnpm install ([^\n]*)\n```/.exec(readme)?.[1]?.split(" ") ?? []
    expect(blocks).toHaveLength(3)
    expect(installed).toEqual(expect.arrayContaining(imported.filter((name) => !name.startsWith("node:"))))
  })

  it("shows what comes of it", () => {
    const argv = ["--conditions=@waystone/source", fileURLToPath(fixture("readme-command"))]
    const output = execFileSync(process.execPath, argv, { cwd: cwd(), encoding: "utf8" })
    expect(output).toBe("exited 0 built sleep 60\n")
  })
})
