/**
 * Asks the server at the start whether it can keep Runs, and says what it could lose.
 *
 * @since 0.1.0
 */
import type { CheckpointStore } from "@waystone/core"
import * as Effect from "effect/Effect"
import type * as Redis from "effect/persistence/Redis"
import * as Schema from "effect/Schema"
import type { Command } from "./Command.ts"
import type { OnWeakServer } from "./Options.ts"

/** The server is older than Redis 6.2, which has XADD NOMKSTREAM and TIME before writes in scripts. */
export class ServerTooOld extends Schema.TaggedError<ServerTooOld>()("ServerTooOld", { version: Schema.String }) {
  override readonly message = `@waystone/checkpoint-redis needs Redis 6.2 or later, or Valkey; this server is ${this.version}.`
}

/** The server can lose Runs, and `onWeakServer` is "fail". */
export class ServerWeak extends Schema.TaggedError<ServerWeak>()("ServerWeak", {
  findings: Schema.Array(Schema.String)
}) {
  override readonly message = `This Redis can lose Runs. ${this.findings.join(" ")}`
}

type Deps = { readonly redis: Redis.Redis["Service"]; readonly command: Command }

export const check = Effect.fnUntraced(function* (
  deps: Deps,
  onWeakServer: OnWeakServer
): Effect.fn.Return<void, ServerTooOld | ServerWeak | CheckpointStore.StoreError> {
  yield* checkVersion(deps)
  if (onWeakServer === "ignore") return
  const findings = yield* weaknesses(deps)
  if (findings.length === 0) return
  const weak = new ServerWeak({ findings })
  return yield* onWeakServer === "fail" ? Effect.fail(weak) : Effect.logWarning(weak.message)
})

/** A server that hides its version is given the benefit of the doubt: a script that it cannot run says so. */
const checkVersion = Effect.fnUntraced(function* ({
  command,
  redis
}: Deps): Effect.fn.Return<void, ServerTooOld | CheckpointStore.StoreError> {
  const info = yield* unlessForbidden(command("", redis.send<unknown>("INFO", "server")))
  const version = /^redis_version:(\S+)/m.exec(String(info))?.[1]
  const [major = 0, minor = 0] = (version ?? "").split(".").map(Number)
  if (version !== undefined && (major < 6 || (major === 6 && minor < 2))) return yield* new ServerTooOld({ version })
})

const weaknesses = Effect.fnUntraced(function* (
  deps: Deps
): Effect.fn.Return<ReadonlyArray<string>, CheckpointStore.StoreError> {
  const appendonly = yield* setting(deps, "appendonly")
  const policy = yield* setting(deps, "maxmemory-policy")
  return [
    ...(appendonly === "no"
      ? ["appendonly is no: when the server stops, all that was written since its last snapshot is lost."]
      : []),
    ...(policy?.startsWith("allkeys-") === true
      ? [`maxmemory-policy is ${policy}: when memory runs out, Runs are evicted. Set noeviction.`]
      : []),
    ...(appendonly === undefined || policy === undefined
      ? ["The server does not let CONFIG GET say so; make sure that appendonly is yes and maxmemory-policy noeviction."]
      : [])
  ]
})

/** Undefined where the server does not say. */
const setting = (
  { command, redis }: Deps,
  name: string
): Effect.Effect<string | undefined, CheckpointStore.StoreError> =>
  Effect.map(unlessForbidden(command("", redis.send<unknown>("CONFIG", "GET", name))), (reply) => valueOf(reply, name))

/** A list, or, from a client that speaks RESP3, a map. */
const valueOf = (reply: unknown, name: string): string | undefined => {
  const value = Array.isArray(reply)
    ? reply[reply.indexOf(name) + 1]
    : reply instanceof Map
      ? reply.get(name)
      : typeof reply === "object" && reply !== null
        ? new Map<string, unknown>(Object.entries(reply)).get(name)
        : undefined
  return typeof value === "string" ? value : undefined
}

/** A command that was renamed, disabled or not permitted gives undefined; a server that is away still fails. */
const unlessForbidden = <A>(
  asked: Effect.Effect<A, CheckpointStore.StoreError>
): Effect.Effect<A | undefined, CheckpointStore.StoreError> =>
  Effect.catchTag(asked, "StoreUnavailable", (error) =>
    /NOPERM|unknown command|unknown subcommand|not allowed|disabled/i.test(error.detail)
      ? Effect.succeed<A | undefined>(undefined)
      : Effect.fail(error)
  )
