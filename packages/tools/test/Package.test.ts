import { expect, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { afterAll, describe } from "vitest"

const packages = resolve(import.meta.dirname, "../..")
const tsc = resolve(packages, "../node_modules/.bin/tsc")
const project = mkdtempSync(join(tmpdir(), "waystone-package-"))
afterAll(() => rmSync(project, { recursive: true }))

const names = (folder: string): ReadonlyArray<string> =>
  [...readFileSync(join(packages, folder, "src/index.ts"), "utf8").matchAll(/\* as (\w+) from/g)].map(
    ([, name = ""]) => name
  )

describe.each(["core", "tools", "checkpoint-sqlite", "checkpoint-redis", "models"])("the package %s", (folder) => {
  it("has an entry of its own for every namespace, so that the types in it have a name elsewhere", () => {
    const { exports } = JSON.parse(readFileSync(join(packages, folder, "package.json"), "utf8"))
    const entries = Object.keys(exports).filter((key) => /^\.\/[A-Z]/.test(key))
    expect(entries).toEqual(names(folder).map((name) => `./${name}`))
  })
})

it("a package that emits declarations can export agents with our tools, and every verb", { timeout: 60_000 }, () => {
  mkdirSync(join(project, "node_modules/@waystone"), { recursive: true })
  // Copies, as after an installation: TypeScript names types by where they really lie.
  for (const folder of ["core", "tools"]) {
    for (const part of ["dist", "package.json"]) {
      cpSync(join(packages, folder, part), join(project, "node_modules/@waystone", folder, part), { recursive: true })
    }
  }
  symlinkSync(join(packages, "core/node_modules/effect"), join(project, "node_modules/effect"))
  const compilerOptions = {
    target: "ES2023",
    module: "NodeNext",
    strict: true,
    skipLibCheck: true,
    types: [],
    declaration: true,
    outDir: "out",
    rootDir: "."
  }
  writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["user.ts"] }))
  writeFileSync(join(project, "package.json"), JSON.stringify({ name: "user", type: "module" }))
  const run = { runId: "a", task: "b" }
  writeFileSync(
    join(project, "user.ts"),
    `import { Agent, Run } from "@waystone/core"
import { AskUser, CommandRunner, FileTools, Folder, Shell } from "@waystone/tools"
export const agent = Agent.make("a", { instructions: "i", tools: [FileTools.toolkit, Shell.toolkit, AskUser.tool] })
export const folder = Folder.layer(".")
export const files = FileTools.layer
export const shell = Shell.layer({ cwd: "." })
export const runner = CommandRunner.CommandRunner.layer()
export const verbs = {
  accept: Run.accept(agent, ${JSON.stringify(run)}), start: Run.start(agent, ${JSON.stringify(run)}),
  stream: Run.stream(agent, ${JSON.stringify(run)}), streamResume: Run.streamResume(agent, { runId: "a" }),
  resume: Run.resume(agent, { runId: "a" }), recover: Run.recover([agent]),
  answer: Run.answer(agent, { runId: "a", callId: "t1.0", answer: { _tag: "RunAgain" }, by: "b" }),
  cancel: Run.cancel({ runId: "a" }), pause: Run.pause({ runId: "a" }), send: Run.send({ runId: "a", message: "m" }),
  get: Run.get("a"), list: Run.list({}), events: Run.events("a"), checkpoints: Run.checkpoints("a"),
  fork: Run.fork({ runId: "a", id: "b" }), remove: Run.remove("a"), prune: Run.prune({ olderThan: "1 day" })
}
`
  )
  const compiled = (() => {
    try {
      return execFileSync(tsc, ["-p", project], { encoding: "utf8" })
    } catch (error) {
      return error instanceof Error && "stdout" in error ? String(error.stdout) : String(error)
    }
  })()
  expect(compiled).toBe("")
})
