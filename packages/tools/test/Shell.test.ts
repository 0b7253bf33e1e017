import { Agent, type CheckpointStore, MemoryStore, Run, ToolOptions } from "@waystone/core"
import { PairingChecker, ScriptedModel } from "@waystone/core/testing"
import { describe, expect, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Tool from "effect/ai/Tool"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { CommandRunner, type Command } from "../src/CommandRunner.ts"
import * as Shell from "../src/Shell.ts"
import { cwd, linux, marked, runner, watched } from "./support/commands.ts"

const { call, text } = ScriptedModel
const agent = Agent.make("worker", { instructions: "Work.", tools: [Shell.toolkit] })

/** One Run that calls the shell once, approved; what the journal says of the call. */
const ran = Effect.fnUntraced(function* (
  params: object,
  after: Effect.Effect<unknown, unknown, CheckpointStore.CheckpointStore> = Effect.void
) {
  const model = yield* ScriptedModel.make([call("shell", params), text("done")])
  const program = Effect.gen(function* () {
    const asked = yield* Run.start(agent, { runId: "r", task: "go" })
    expect(asked).toMatchObject({ _tag: "Suspended", waiting: [{ id: "t1.0", kind: "approval", name: "shell" }] })
    const [wait] = (yield* Run.get("r")).waiting
    const answer = { _tag: "Approve", digest: wait?.digest ?? "" } as const
    yield* Run.answer(agent, { runId: "r", callId: "t1.0", answer, by: "ann" })
    const running = yield* Effect.forkChild(Run.resume(agent, { runId: "r" }))
    yield* after
    const outcome = yield* Fiber.join(running)
    expect(yield* PairingChecker.ofRun("r")).toEqual([])
    const events = yield* Run.events("r", { follow: false }).pipe(Stream.runCollect)
    const completed = events.flatMap(({ event }) => (event._tag === "ToolCallCompleted" ? [event] : []))
    return { outcome, completed: completed[0] }
  })
  const layers = Layer.mergeAll(
    model.layer,
    MemoryStore.layer,
    Shell.layer({ cwd: cwd() }).pipe(Layer.provide(runner()))
  )
  return yield* Effect.provide(program, layers)
})

const up = Effect.repeat(
  Effect.andThen(
    Effect.sleep("20 millis"),
    Effect.sync(() => existsSync(join(cwd(), "up")))
  ),
  { until: (there) => there }
)

describe("Shell", () => {
  it("says honestly what it is", () => {
    const is = <A>(key: Context.Reference<A>) => Context.get(Shell.tool.annotations, key)
    expect([is(Tool.Readonly), is(Tool.Destructive), is(Tool.Idempotent), is(Tool.OpenWorld)]).toEqual([
      false,
      true,
      false,
      true
    ])
    expect(is(ToolOptions.Sequential)).toBe(true)
    // The largest timeout, the largest grace, and the 2 seconds that a runner has beyond them.
    expect(Duration.toSeconds(is(ToolOptions.Timeout))).toBeGreaterThan(600 + 5 + 2)
  })

  it.each([
    [{ command: "" }],
    [{ command: "x".repeat(16_385) }],
    [{ command: "x", timeout_seconds: 0.5 }],
    [{ command: "x", timeout_seconds: 601 }],
    [{}]
  ])("arguments out of range are refused: %#", (params) => {
    expect(Schema.decodeUnknownExit(Shell.tool.parametersSchema)(params)._tag).toBe("Failure")
  })

  it.effect("asks the runner for the shell, the folder, and 120 seconds unless told otherwise", () =>
    Effect.gen(function* () {
      const asked: Array<Command> = []
      const run = (command: Command) =>
        Effect.sync(() => {
          asked.push(command)
          return {
            status: "exited",
            exitCode: 0,
            output: "",
            cut: 0,
            durationMs: 1,
            killed: [],
            leftRunning: []
          } as const
        })
      const recording = Layer.succeed(CommandRunner, { run })
      const use = (params: { command: string; timeout_seconds?: number }) =>
        Effect.gen(function* () {
          const kit = yield* Shell.toolkit
          return yield* kit.handle("shell", params).pipe(Stream.unwrap, Stream.runDrain)
        }).pipe(Effect.provide(Layer.provide(Shell.layer({ cwd: "/x", shell: ["bash", "-lc"] }), recording)))
      yield* use({ command: "a b" })
      yield* use({ command: "c", timeout_seconds: 600 })
      expect(asked).toEqual([
        { argv: ["bash", "-lc", "a b"], cwd: "/x", timeout: Duration.seconds(120) },
        { argv: ["bash", "-lc", "c"], cwd: "/x", timeout: Duration.seconds(600) }
      ])
    })
  )

  describe.skipIf(!linux)("in a Run", () => {
    watched()

    it.live("S1 a command that fails is a result, with what it left", () =>
      Effect.gen(function* () {
        const { completed, outcome } = yield* ran({ command: "pwd; setsid sleep 60 & exit 3" })
        expect(outcome).toMatchObject({ _tag: "Completed", output: "done" })
        expect(completed).toMatchObject({ isFailure: false, ending: "executed" })
        expect(completed?.result).toEqual({
          status: "exited",
          exit_code: 3,
          output: `${cwd()}\n`,
          duration_ms: expect.any(Number),
          killed: [{ pid: expect.any(Number), command: "sleep 60" }],
          left_running: []
        })
      })
    )

    it.live("S1 a timeout is a result, and long output is cut and counted", () =>
      Effect.gen(function* () {
        const { completed } = yield* ran({ command: "yes abcdefghi | head -n 4000; exec sleep 60", timeout_seconds: 1 })
        expect(completed).toMatchObject({ isFailure: false, result: { status: "timed-out", output_cut: 28_000 } })
        expect(JSON.stringify(completed?.result)).not.toContain("exit_code")
        // Core had nothing to cut.
        expect(completed?.shown).toBe(undefined)
      })
    )

    it.live("S1 a command that cannot be started is a failure in our words", () =>
      Effect.gen(function* () {
        const { completed, outcome } = yield* ran({ command: "echo a\0b" })
        expect(outcome).toMatchObject({ _tag: "Completed" })
        expect(completed).toMatchObject({ isFailure: true, error: "CommandUnavailable" })
        expect(JSON.stringify(completed?.result)).toContain("an argument contains a NUL character")
      })
    )

    it.live("a Run that is cancelled while the shell works leaves no process", () =>
      Effect.gen(function* () {
        const cancel = Effect.andThen(up, Run.cancel({ runId: "r", by: "ann" }))
        const { completed, outcome } = yield* ran({ command: "setsid sleep 60 & touch up; wait" }, cancel)
        expect(outcome).toMatchObject({ _tag: "Cancelled" })
        expect(completed).toMatchObject({ ending: "unknown" })
        expect(marked()).toEqual([])
      })
    )
  })
})
