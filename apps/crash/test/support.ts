/**
 * Stores for workers, and which part of a long table is run.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Server from "../../../packages/checkpoint-redis/test/support/server.ts"
import type { Store } from "../src/Job.ts"

/** `WAYSTONE_FULL=1` runs everything, not a part of it. */
export const isFull = process.env["WAYSTONE_FULL"] === "1"

/** A folder that goes away with the scope. */
export const folder: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "waystone-crash-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

export interface Backend {
  readonly name: string
  readonly available: boolean
  /** An empty store. */
  readonly open: Effect.Effect<Store, never, Scope.Scope>
}

const sqlite: Backend = {
  name: "sqlite",
  available: true,
  open: Effect.map(folder, (path) => ({ _tag: "Sqlite", file: join(path, "runs.db") }))
}

const url = process.env["REDIS_URL"] ?? ""

const redis: Backend = {
  name: "redis",
  available: url !== "" || Server.canStart,
  open: Effect.map(url === "" ? Effect.map(Server.scoped(), (server) => server.url) : Effect.succeed(url), (url) => ({
    _tag: "Redis",
    url,
    prefix: Server.freshPrefix()
  }))
}

if (!redis.available) console.log(Server.skipped("the crash tests on Redis"))

export const backends: ReadonlyArray<Backend> = [sqlite, redis]
