import { describe, expect, it } from "@effect/vitest"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import { type Got, receiver, tracesOf } from "./support/Receiver.ts"
import { spansOf, violations } from "./support/Conventions.ts"

const isFull = process.env["WAYSTONE_FULL"] === "1"
const main = join(import.meta.dirname, "../../../apps/demo/src/main.ts")

/** What is in the project that the demo repairs, in its task, and in what its tests say. */
const canaries = ["cart.js", "Repair", "npm test", "AssertionError", "EIO", "overloaded"]

/** The demo in processes of its own, with folders of its own, that send their traces to `port`. */
const demo = (port: number | undefined, semconv: string) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "waystone-trace-test-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
    ),
    (folder) => {
      const env = {
        PATH: process.env["PATH"],
        HOME: folder,
        TMPDIR: folder,
        XDG_DATA_HOME: join(folder, "data"),
        NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"],
        OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
        OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
        WAYSTONE_SEMCONV: semconv
      }
      const run = (...args: ReadonlyArray<string>) =>
        Effect.promise(async () => {
          const command = ["--conditions=@waystone/source", main, ...args]
          const child = spawn(process.execPath, command, { env, stdio: ["ignore", "pipe", "pipe"] })
          let out = ""
          child.stdout.on("data", (chunk) => (out += String(chunk)))
          child.stderr.on("data", (chunk) => (out += String(chunk)))
          await once(child, "close")
          return { code: child.exitCode, out }
        })
      return { folder, run }
    }
  )

const idIn = (text: string): string => /demo-[0-9a-f-]{36}/.exec(text)?.[0] ?? ""

/** How many spans of each operation the journal of a Run asks for. */
const asked = (lines: string) => {
  const events = lines
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line): { readonly _tag: string; readonly callId?: string } => JSON.parse(line).event)
  const count = (tag: string) => events.filter(({ _tag }) => _tag === tag).length
  const attempts = count("AttemptStarted")
  const started = events.filter(({ _tag }) => _tag === "ToolCallStarted")
  const never = events.filter(
    ({ _tag, callId }) => _tag === "ToolCallCompleted" && !started.some((one) => one.callId === callId)
  )
  // A result that a later attempt found out for a call that a dead one had started has a span of its own.
  return {
    invoke_agent: attempts === 1 ? 1 : attempts + 1,
    chat: count("TurnStarted") + count("CompactionStarted"),
    execute_tool: started.length + never.length + reconciled(events)
  }
}

/** Calls whose result came in another attempt than their start. */
const reconciled = (events: ReadonlyArray<{ readonly _tag: string; readonly callId?: string }>): number => {
  const open = new Set<string | undefined>()
  let found = 0
  for (const { _tag, callId } of events) {
    if (_tag === "ToolCallStarted") open.add(callId)
    if (_tag === "AttemptStarted") open.clear()
    if (
      _tag === "ToolCallCompleted" &&
      !open.delete(callId) &&
      events.some((one) => one._tag === "ToolCallStarted" && one.callId === callId)
    )
      found++
  }
  return found
}

const check = (got: ReadonlyArray<Got>, journal: string, semconv: "latest" | "v1.41") => {
  const exports = tracesOf(got)
  expect(violations(exports, { semconv })).toEqual([])
  const counts: Record<string, number> = {}
  for (const { attributes } of spansOf(exports)) {
    const operation = String(attributes.get("gen_ai.operation.name")?.value ?? "none")
    counts[operation] = (counts[operation] ?? 0) + 1
  }
  expect(counts).toMatchObject(asked(journal))
  const all = JSON.stringify(exports)
  for (const canary of canaries) expect(all).not.toContain(canary)
}

const profiles = ["latest", "v1.41"] as const
const cases = ["normal", "tool-failure", "rate-limit", "timeout", "crash"].flatMap((scenario) =>
  profiles.map((semconv) => ({ scenario, semconv }))
)

describe("the demo, sent to a back end", () => {
  const chosen = cases.filter(
    ({ scenario, semconv }) => isFull || (scenario === "tool-failure" && semconv === "latest")
  )
  it.live.each(chosen)("RI-145 $scenario has the spans that its journal asks for, without content: $semconv", (one) =>
    Effect.scoped(
      Effect.gen(function* () {
        const { got, port } = yield* receiver
        const { run } = yield* demo(port, one.semconv)
        const ran = yield* run("--scenario", one.scenario)
        expect(ran).toMatchObject({ code: 0 })
        const journal = yield* run("events", idIn(ran.out), "--json")
        check(got, journal.out, one.semconv)
      })
    )
  )

  it.live.each(profiles.filter((semconv) => isFull || semconv === "v1.41"))(
    "RI-145 approval has the spans of all processes that took part: %s",
    (semconv) =>
      Effect.scoped(
        Effect.gen(function* () {
          const { got, port } = yield* receiver
          const { folder, run } = yield* demo(port, semconv)
          const policy = join(folder, "ask.json")
          writeFileSync(
            policy,
            JSON.stringify({
              rules: [
                { name: "looks", action: "ask", tools: ["list_files"] },
                { name: "else", action: "allow", tools: ["*"] }
              ]
            })
          )
          const ran = yield* run("--policy", policy)
          const runId = idIn(ran.out)
          const listed = yield* run("approvals")
          const call = /approve \S+ (t\d+\.\d+)/.exec(listed.out)?.[1] ?? listed.out
          expect(yield* run("approve", runId, call)).toMatchObject({ code: 0 })
          expect(yield* run("resume", runId, "--policy", policy)).toMatchObject({ code: 0 })
          const journal = yield* run("events", runId, "--json")
          check(got, journal.out, semconv)
        })
      )
  )
})
