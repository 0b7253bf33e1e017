import { describe, expect, it } from "@effect/vitest"
import { Permissions } from "@waystone/policy"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import * as DefaultPolicy from "../src/DefaultPolicy.ts"
import { Project } from "../src/Project.ts"
import { idIn } from "./misled.ts"
import { finished, own, start } from "./process.ts"
import { project, real } from "./support.ts"

const shell = (command: string) => ({
  tool: "shell",
  effect: "unsafe" as const,
  destructive: true,
  arguments: { command }
})
const edit = (path: string) => ({ tool: "edit_file", effect: "unsafe" as const, arguments: { path } })
const readOf = (...paths: ReadonlyArray<string>) => ({
  tool: "read_files",
  effect: "readonly" as const,
  arguments: { files: paths.map((path) => ({ path })) }
})

describe("the demo's own policy", () => {
  it.live.each([
    [{ tool: "run_tests", effect: "idempotent", arguments: {} }, "allow"],
    [edit("src/cart.js"), "allow"],
    [edit("new.js"), "allow"],
    [edit("../x"), "deny"],
    [edit("/etc/passwd"), "deny"],
    [edit("link/x"), "deny"],
    [edit(".git/hooks/pre-commit"), "deny"],
    [readOf("src/cart.js", "package.json"), "allow"],
    [readOf("src/cart.js", "link/x"), "deny"],
    [{ tool: "search_files", effect: "readonly", arguments: { pattern: "x" } }, "allow"],
    [{ tool: "send_mail", effect: "unsafe", arguments: {} }, "deny"],
    // Through the shell nothing confines what the agent has written into a test.
    [shell("npm test"), "ask"],
    [shell("node --test"), "ask"],
    [shell("git status && git diff"), "allow"],
    [shell("git log -n 5"), "allow"],
    [shell("git log --output=x"), "ask"],
    [shell("git diff > x"), "ask"],
    [shell("npm test; rm -rf ."), "ask"],
    [shell("curl http://x"), "ask"]
  ] as ReadonlyArray<[Permissions.Explained, Permissions.Action]>)("%j: %s", ([call, action]) =>
    real(
      Effect.gen(function* () {
        const folder = yield* project()
        const fs = yield* FileSystem.FileSystem
        yield* fs.symlink(own.home, join(folder, "link"))
        const layer = Layer.provide(DefaultPolicy.layer(undefined), Project.layer({ _tag: "InPlace", folder }, "r"))
        const decision = yield* Permissions.Permissions.use(({ explain }) => explain(call)).pipe(Effect.provide(layer))
        expect(decision.action).toBe(action)
      })
    )
  )

  it.live("has no rule that another one shadows", () =>
    real(
      Effect.gen(function* () {
        const folder = yield* project()
        const layer = Layer.provide(DefaultPolicy.layer(undefined), Project.layer({ _tag: "InPlace", folder }, "r"))
        expect(
          yield* Permissions.Permissions.use(({ shadowed }) => Effect.succeed(shadowed)).pipe(Effect.provide(layer))
        ).toEqual([])
      })
    )
  )
})

describe("--policy", () => {
  const file = (policy: unknown) => {
    const path = join(own.home, "policy.json")
    writeFileSync(path, JSON.stringify(policy))
    return path
  }

  it("takes the place of it: an edit that no rule allows is refused, with the reason in the journal", async () => {
    const { code, out } = await finished(
      start("--json", "--policy", file({ rules: [{ action: "allow", tools: ["run_tests"] }] }))
    )
    expect(code).toBe(1)
    expect(out).toMatch(/"VerdictGiven".*"permissions".*"Deny".*no rule allows edit_file/)
    expect(out).not.toMatch(/"ToolCallStarted".*"edit_file"/)
  })

  it("holds for a resume, too: under other rules it does nothing until somebody agrees to them", async () => {
    const asks = file({ rules: [{ action: "ask", tools: ["run_tests"] }] })
    const first = await finished(start("--policy", asks))
    const runId = idIn(first.out)
    // Nobody can be asked here, so it waits, and says how it goes on.
    expect(first.out).toContain(runId)
    const refused = await finished(start("resume", runId))
    expect(refused.code).toBe(1)
    expect(refused.err).toContain("was started under other rules than the demo's own. Name their file by --policy")
    expect((await finished(start("resume", runId, "--policy", asks))).err).not.toContain("other rules")
    const approved = await finished(start("approve", runId, "t1.1"))
    expect(approved).toMatchObject({ code: 0, err: "" })
    expect(approved.out).toContain(`resume ${runId} --policy <the file of its rules>`)
    expect((await finished(start("resume", runId))).err).toContain("other rules")
    const agreed = await finished(start("resume", runId, "--new-rules"))
    expect(agreed).toMatchObject({ code: 0, err: "" })
    expect(agreed.out).toContain("edit_file")
  })

  it("says where a file is wrong, and starts nothing", async () => {
    const { code, err, out } = await finished(
      start("--policy", file({ rules: [{ action: "allow" }, { action: "allow", when: { amount: { max: "1" } } }] }))
    )
    expect({ code, out }).toEqual({ code: 1, out: "" })
    expect(err).toContain("demo: Permissions: rules[1].when.amount.max: ")
  })

  it("says that there is no such file", async () => {
    const { code, err } = await finished(start("--policy", join(own.home, "none.json")))
    expect(code).toBe(1)
    expect(err).toMatch(/cannot read .*none\.json: NotFound/)
  })
})
