import { describe, expect, it } from "@effect/vitest"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { SqliteStore } from "@waystone/checkpoint-sqlite"
import * as Effect from "effect/Effect"
import * as Trace from "../src/Trace.ts"
import { type Got, receiver, tracesOf } from "./support/Receiver.ts"
import { spansOf, violations } from "./support/Conventions.ts"

const isFull = process.env["WAYSTONE_FULL"] === "1"
const main = join(import.meta.dirname, "../../../apps/demo/src/main.ts")

/** What is in the project that the demo repairs, in its task, and in what its tests say. */
const canaries = ["cart.js", "points.js", "Math.ceil", "Repair", "npm test", "AssertionError", "EIO", "overloaded"]

type Protocol = "http/json" | "http/protobuf"

/** The demo in processes of its own, with folders of its own, that send their traces to `port`. */
const demo = (port: number | undefined, semconv: string, protocol: Protocol = "http/json") =>
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
        OTEL_EXPORTER_OTLP_PROTOCOL: protocol,
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

interface Told {
  readonly _tag: string
  readonly callId?: string
  readonly child?: { readonly runId: string }
  readonly parent?: unknown
}

const eventsOf = (lines: string): ReadonlyArray<Told> =>
  lines
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line).event)

/** The Runs that the calls of a journal began. */
const workersIn = (lines: string): ReadonlyArray<string> => [
  ...new Set(
    eventsOf(lines).flatMap(({ _tag, child }) =>
      _tag === "ToolCallStarted" && child !== undefined ? [child.runId] : []
    )
  )
]

/** How many spans of each operation the journal of a Run asks for. */
const asked = (lines: string) => {
  const events = eventsOf(lines)
  const count = (tag: string) => events.filter(({ _tag }) => _tag === tag).length
  const attempts = count("AttemptStarted")
  const started = events.filter(({ _tag }) => _tag === "ToolCallStarted")
  const never = events.filter(
    ({ _tag, callId }) => _tag === "ToolCallCompleted" && !started.some((one) => one.callId === callId)
  )
  // The attempts of a worker stand under the calls of its planner: nothing of its own is above them.
  const above = attempts > 1 && events[0]?.parent === undefined ? 1 : 0
  // A result that a later attempt found out for a call that a dead one had started has a span of its own.
  return {
    invoke_agent: attempts + above,
    chat: count("TurnStarted") + count("CompactionStarted"),
    execute_tool: started.length + never.length + reconciled(events)
  }
}

/** Calls whose result came in another attempt than their start. */
const reconciled = (events: ReadonlyArray<Told>): number => {
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

const sum = (all: ReadonlyArray<ReturnType<typeof asked>>) =>
  all.reduce((one, other) => ({
    invoke_agent: one.invoke_agent + other.invoke_agent,
    chat: one.chat + other.chat,
    execute_tool: one.execute_tool + other.execute_tool
  }))

/** `journals`: of all Runs that took part. */
const check = (got: ReadonlyArray<Got>, journals: ReadonlyArray<string>, semconv: "latest" | "v1.41") => {
  const exports = tracesOf(got)
  expect(violations(exports, { semconv })).toEqual([])
  const counts: Record<string, number> = {}
  for (const { attributes } of spansOf(exports)) {
    const operation = String(attributes.get("gen_ai.operation.name")?.value ?? "none")
    counts[operation] = (counts[operation] ?? 0) + 1
  }
  expect(counts).toMatchObject(sum(journals.map(asked)))
  const all = JSON.stringify(exports)
  for (const canary of canaries) expect(all).not.toContain(canary)
}

const profiles = ["latest", "v1.41"] as const
const cases = ["normal", "tool-failure", "rate-limit", "timeout", "crash"].flatMap((scenario) =>
  profiles.map((semconv) => ({ scenario, semconv }))
)
const teams = profiles.flatMap((semconv) =>
  [[], ["--crash"]].flatMap((args) =>
    (["http/json", "http/protobuf"] as const)
      .filter((protocol) => isFull || protocol === "http/protobuf")
      .map((protocol) => ({ semconv, args, protocol }))
  )
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
        check(got, [journal.out], one.semconv)
      })
    )
  )

  it.live.each(teams.filter(({ args, semconv }) => isFull || (args.length > 0 && semconv === "latest")))(
    "RI-145 team $args has the spans of the planner and of both workers in one trace, without content: $protocol, $semconv",
    ({ args, protocol, semconv }) =>
      Effect.scoped(
        Effect.gen(function* () {
          const { got, port } = yield* receiver
          const { folder, run } = yield* demo(port, semconv, protocol)
          const ran = yield* run("--scenario", "team", ...args)
          expect(ran).toMatchObject({ code: 0 })
          const type = { "http/json": "application/json", "http/protobuf": "application/x-protobuf" }[protocol]
          expect(new Set(got.map((one) => one.type))).toEqual(new Set([type]))
          const root = (yield* run("events", idIn(ran.out), "--json")).out
          const workers = workersIn(root)
          expect(workers).toHaveLength(2)
          const below = yield* Effect.forEach(workers, (worker) => run("events", worker, "--json"))
          check(got, [root, ...below.map(({ out }) => out)], semconv)
          // What two processes sent is what their journals give, by Run and as a tree.
          const store = SqliteStore.layer({ file: join(folder, "data/waystone/runs.db") })
          const runId = idIn(ran.out)
          const stored = yield* Effect.provide(
            Effect.all([Trace.tree(runId), Effect.forEach([...workers, runId], (id) => Trace.spans(id))]),
            store
          )
          const endsOf = (spans: ReadonlyArray<{ readonly spanId: string; readonly end: number | bigint }>) =>
            Object.fromEntries(spans.map(({ end, spanId }) => [spanId, String(end)]))
          const sent = endsOf(spansOf(tracesOf(got)).map(({ end, spanId }) => ({ spanId, end: end / 1_000_000n })))
          for (const spans of [stored[0], stored[1].flat()]) expect(endsOf(spans)).toEqual(sent)
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
          check(got, [journal.out], semconv)
        })
      )
  )
})
