import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { vi } from "vitest"
import { CommandRunner } from "../src/CommandRunner.ts"
import { cwd, linux, runner, sh, spawner, watched } from "./support/commands.ts"

describe.skipIf(!linux)("How a runner runs a command", () => {
  watched()

  describe("environment", () => {
    it.live("N1 a command sees no key of ours, what it brings, and that it shall print plainly", () =>
      Effect.gen(function* () {
        vi.stubEnv("OPENAI_API_KEY", "sk-secret-1")
        vi.stubEnv("AWS_SECRET_ACCESS_KEY", "sk-secret-2")
        vi.stubEnv("NODE_OPTIONS", "--title=sk-secret-3")
        vi.stubEnv("TZ", "Europe/Oslo")
        const { output } = yield* sh("env", { env: { MINE: "1" } })
        const names = output.split("\n").map((line) => line.split("=")[0])
        expect(output).not.toContain("sk-secret")
        const allowed =
          /^(PATH|HOME|USER|LOGNAME|SHELL|LANG|LC_ALL|LC_CTYPE|TZ|TMPDIR|TEMP|TMP|CI|NO_COLOR|TERM|PWD|MINE|WAYSTONE_COMMANDS|)$/
        expect(names.filter((name) => !allowed.test(name ?? ""))).toEqual([])
        for (const line of ["CI=true", "NO_COLOR=1", "TERM=dumb", "MINE=1", "TZ=Europe/Oslo"]) {
          expect(output.split("\n")).toContain(line)
        }
        const named = yield* sh("env", { options: { env: ["PATH", "OPENAI_API_KEY"] } })
        expect(named.output).toContain("OPENAI_API_KEY=sk-secret-1")
        expect(named.output).not.toContain("HOME=")
      }).pipe(Effect.ensuring(Effect.sync(() => vi.unstubAllEnvs())))
    )
  })

  describe("what cannot be started", () => {
    const refused = (command: Partial<Parameters<CommandRunner["Service"]["run"]>[0]>) =>
      CommandRunner.use(({ run }) => run({ argv: ["true"], cwd: cwd(), timeout: "10 minutes", ...command })).pipe(
        Effect.flip,
        Effect.provide(runner())
      )

    it.live("CommandUnavailable says what is missing, in our words", () =>
      Effect.gen(function* () {
        writeFileSync(join(cwd(), "plain.txt"), "no program", { mode: 0o644 })
        mkdirSync(join(cwd(), "folder"))
        const cases: ReadonlyArray<readonly [Parameters<typeof refused>[0], string]> = [
          [{ argv: ["no-such-program-x"] }, "no such program in PATH"],
          [{ argv: ["./nothing"] }, "no such program, or it may not be executed"],
          [{ argv: ["./plain.txt"] }, "no such program, or it may not be executed"],
          [{ argv: ["./folder"] }, "no such program, or it may not be executed"],
          [{ argv: [""] }, "the program has no name"],
          [{ argv: ["echo", "a\0b"] }, "an argument contains a NUL character"],
          [{ cwd: join(cwd(), "gone") }, "the folder to start in does not exist"],
          [{ cwd: join(cwd(), "plain.txt") }, "the folder to start in does not exist"],
          [{ env: { "A=B": "1" } }, "a variable of its environment has no valid name, or a NUL character"],
          [{ env: { A: "secret\0" } }, "a variable of its environment has no valid name, or a NUL character"],
          [{ timeout: 0 }, "its timeout must be a finite duration longer than 0"],
          [{ timeout: "Infinity" }, "its timeout must be a finite duration longer than 0"],
          [{ maxOutput: -1 }, "its maxOutput must be 0 or more"],
          [{ argv: ["echo", "x".repeat(3_000_000)] }, "it could not be started: E2BIG"]
        ]
        for (const [command, message] of cases) {
          const program = command.argv?.[0] ?? "true"
          expect(yield* refused(command)).toMatchObject({ _tag: "CommandUnavailable", program, message })
        }
      })
    )

    it.live("an option that is wrong is named", () =>
      Effect.gen(function* () {
        const cases = [
          ["env", { env: ["A=B"] }],
          ["env", { env: [""] }],
          ["grace", { grace: "6 seconds" }],
          ["grace", { grace: "Infinity" }],
          ["grace", { grace: "soon" as "1 second" }],
          ["background", { background: "keep" as "kill" }]
        ] as const
        for (const [field, options] of cases) {
          const error = yield* Effect.flip(
            Effect.provide(CommandRunner, Layer.provide(CommandRunner.layer(options), spawner))
          )
          expect(error).toMatchObject({ _tag: "CommandOptionsInvalid", field })
        }
      })
    )
  })
})
