/** The reply that the goldens of all servers show, and the goldens. */
import * as Effect from "effect/Effect"
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import type * as Script from "./Script.ts"

export const reply: Script.Reply = {
  reasoning: { text: "Let me look.", signature: "sealed" },
  text: "Reading it.",
  calls: [{ name: "read_file", args: { path: "a.txt" } }],
  usage: { input: 20, cacheRead: 100, cacheWrite: 5, output: 30, reasoning: 12 }
}

export const golden = (name: string) =>
  Effect.promise(() => readFile(join(import.meta.dirname, "golden", name), "utf8"))
