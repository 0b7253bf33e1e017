/**
 * An application with a Run on SQLite: `node resume-child.mjs <file> <calls>` drives it, or goes on with what a killed
 * process left behind, until the model is asked after that many calls. Says when that was, and waits to be killed.
 */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { SqliteStore } from "@waystone/checkpoint-sqlite"
import { ProcessOwner } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Script } from "./script.ts"
import { durableRun } from "./subjects/agent.ts"

const [, , file = "", calls = ""] = process.argv

let left = Number(calls)
const script: Script = {
  steps: Number.POSITIVE_INFINITY,
  delayMs: 0,
  asked: () => {
    if (left-- > 0) return
    script.delayMs = 2 ** 30
    const { system, user } = process.cpuUsage()
    const at = performance.timeOrigin + performance.now()
    process.stdout.write(`${JSON.stringify({ at, cpuMs: (system + user) / 1000 })}\n`)
  }
}
const store = SqliteStore.layer({ file, durability: "process" })
const owner = Layer.provide(ProcessOwner.layer, NodeFileSystem.layer)
await Effect.runPromise(Effect.provide(durableRun(script, "run"), Layer.merge(store, owner)))
