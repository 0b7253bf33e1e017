import { afterAll, describe, expect, it } from "@effect/vitest"
import { readFileSync, rmSync } from "node:fs"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import { CheckpointStore } from "@waystone/core"
import * as RedisStore from "../src/RedisStore.ts"
import * as TestServer from "./support/server.ts"
import { around, created, eventually, failing, head, ids, open } from "./support/stores.ts"

const { canStart } = TestServer
if (!canStart) console.log(TestServer.skipped("the tests of checkpoint-redis that set up a server of their own"))
const server = canStart ? await TestServer.start() : undefined
const url = server?.url ?? ""
afterAll(async () => server?.stop())

const ask = (...command: ReadonlyArray<string>) => Effect.promise(async () => server?.send(...command))
/** Sets an option of the server for as long as the test lasts. */
const configured = (name: string, value: string, usual: string) =>
  Effect.acquireRelease(ask("CONFIG", "SET", name, value), () => ask("CONFIG", "SET", name, usual))

/** What is logged at warning level or above while `effect` runs. */
const logs = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => {
    const lines: Array<string> = []
    const logger = Logger.make(({ cause, logLevel, message }) => {
      lines.push(`${logLevel} ${JSON.stringify(message)} ${JSON.stringify(cause)}`)
    })
    return Effect.map(Effect.exit(Effect.provide(effect, Logger.layer([logger]))), (exit) => ({ lines, exit }))
  })

const opened = (options: RedisStore.Options = {}) =>
  logs(Effect.scoped(open(url, { prefix: "check", onWeakServer: "warn", ...options })))
const failure = (exit: Exit.Exit<unknown, unknown>) => JSON.stringify(exit)

describe.skipIf(!canStart)("the check at the start", () => {
  it.live("says nothing about a server that appends to disk and evicts nothing", () =>
    Effect.gen(function* () {
      const { exit, lines } = yield* opened()
      expect(exit._tag).toBe("Success")
      expect(lines).toEqual([])
    })
  )

  it.live.each([
    ["appendonly", "no", "yes", "since its last snapshot is lost"],
    ["maxmemory-policy", "allkeys-lru", "noeviction", "Runs are evicted"]
  ] as const)("says what %s %s can lose, fails with it, or ignores it", ([name, value, usual, said]) =>
    Effect.gen(function* () {
      yield* configured(name, value, usual)
      const warned = yield* opened()
      expect(warned.exit._tag).toBe("Success")
      expect(warned.lines.join("\n")).toContain(said)
      const failed = yield* opened({ onWeakServer: "fail" })
      expect(failed.exit._tag).toBe("Failure")
      expect(failure(failed.exit)).toContain("ServerWeak")
      expect(failure(failed.exit)).toContain(said)
      expect(yield* opened({ onWeakServer: "ignore" })).toMatchObject({ lines: [], exit: { _tag: "Success" } })
    })
  )

  it.live("takes a policy that evicts only keys with a time to live, since no key of a Run has one", () =>
    Effect.gen(function* () {
      yield* configured("maxmemory-policy", "volatile-lru", "noeviction")
      expect((yield* opened({ onWeakServer: "fail" })).exit._tag).toBe("Success")
    })
  )

  it.live("says so when the server forbids CONFIG", () =>
    Effect.gen(function* () {
      yield* ask("ACL", "SETUSER", "limited", "on", ">pw", "~*", "&*", "+@all", "-config")
      const limited = url.replace("redis://", "redis://limited:pw@")
      const store = (onWeakServer: RedisStore.Options["onWeakServer"] & string) =>
        logs(Effect.scoped(Layer.build(RedisStore.layerUrl({ url: limited, prefix: "check", onWeakServer }))))
      const warned = yield* store("warn")
      expect(warned.exit._tag).toBe("Success")
      expect(warned.lines.join("\n")).toContain("does not let CONFIG GET say so")
      expect(failure((yield* store("fail")).exit)).toContain("ServerWeak")
    })
  )

  it.live("needs no more permissions than the README says", () =>
    Effect.gen(function* () {
      const rules =
        /An ACL needs `([^`]+)`/.exec(readFileSync(new URL("../README.md", import.meta.url), "utf8"))?.[1] ?? ""
      yield* ask("ACL", "SETUSER", "least", "reset", "on", ">pw", ...rules.replaceAll("waystone", "least").split(" "))
      const least = { url: url.replace("redis://", "redis://least:pw@"), prefix: "least" }
      const built = yield* Layer.build(RedisStore.layerUrl({ ...least, onWeakServer: "fail" }))
      const store = yield* Effect.provide(CheckpointStore.CheckpointStore.use(Effect.succeed), built)
      const hint = yield* Effect.forkChild(Stream.runHead(store.watch?.("r") ?? Stream.empty))
      yield* eventually(ask("PUBSUB", "NUMSUB", "{least}:changed"), (reply) => String(reply).endsWith(",1"))
      yield* Effect.sleep(100)
      yield* store.append(created("r"))
      yield* Fiber.join(hint)
      yield* store.claim({ runId: "r", owner: "o", ttlMillis: 1000 })
      yield* store.renew({ runId: "r", epoch: 1, owner: "o", ttlMillis: 1000 })
      yield* store.append(created("r", { epoch: 1, expectedSeq: 1, head: head({ status: "waiting" }) }))
      yield* store.release({ runId: "r", epoch: 1, owner: "o" })
      expect(yield* store.read("r", { after: 0, limit: 9 })).toHaveLength(2)
      expect(yield* store.list({ due: true }, { limit: 9 })).toEqual([])
      expect(ids(yield* store.list({}, { limit: 9 }))).toEqual(["r"])
      expect(yield* store.remove("r", 2)).toBe(true)
      expect(yield* Effect.promise(async () => server && TestServer.keysOf(server, "least"))).toEqual([
        "{least}:index:mark"
      ])
    })
  )

  it.live("appends without the permission to publish: a hint is not worth an append", () =>
    Effect.gen(function* () {
      yield* ask("ACL", "SETUSER", "quiet", "reset", "on", ">pw", "~*", "+@all", "resetchannels")
      const quiet = { url: url.replace("redis://", "redis://quiet:pw@"), prefix: "quiet" }
      const built = yield* Layer.build(RedisStore.layerUrl({ ...quiet, onWeakServer: "ignore" }))
      const store = yield* Effect.provide(CheckpointStore.CheckpointStore.use(Effect.succeed), built)
      expect(yield* store.append(created("r"))).toEqual({ _tag: "Committed" })
      expect((yield* store.head("r"))?.seq).toBe(1)
    })
  )

  it.live.each(["6.0.20", "5.0.7", "2.8.0"])("refuses a server of version %s", (version) =>
    Effect.gen(function* () {
      const old = around((command, seen) =>
        seen.startsWith("INFO")
          ? Effect.map(command, (reply) => {
              const text = String(reply).replace(/redis_version:\S+/, `redis_version:${version}`)
              return text as typeof reply
            })
          : command
      )
      const error = yield* Effect.flip(Effect.scoped(open(url, { wrap: old })))
      expect(error).toMatchObject({ _tag: "ServerTooOld", version })
    })
  )
})

const unavailable = { _tag: "StoreUnavailable" }

describe.skipIf(!canStart)("a server that refuses", () => {
  it.live("RI-072 OOM is StoreUnavailable, the Run has not advanced, and goes on when there is memory", () =>
    Effect.gen(function* () {
      const small = yield* TestServer.scoped("--maxmemory", "4mb", "--maxmemory-policy", "noeviction")
      const store = yield* open(small.url)
      yield* store.append(created("r", { events: ["a"] }))
      const events = ["x".repeat(400_000)]
      let seq = 1
      let result: unknown
      while (result === undefined && seq < 100) {
        const appended = yield* Effect.result(store.append(created("r", { expectedSeq: seq, events })))
        if (appended._tag === "Failure") result = appended.failure
        else seq++
      }
      expect(result).toMatchObject({ ...unavailable, detail: expect.stringContaining("OOM") })
      expect((yield* store.head("r"))?.seq).toBe(seq)
      expect(yield* store.read("r", { after: 0, limit: 100 })).toHaveLength(seq)
      yield* Effect.promise(() => small.send("CONFIG", "SET", "maxmemory", "0"))
      expect(yield* store.append(created("r", { expectedSeq: seq, events }))).toEqual({ _tag: "Committed" })
    })
  )

  it.live("RI-072 READONLY is StoreUnavailable, and reading still works", () =>
    Effect.gen(function* () {
      const replica = yield* TestServer.scoped()
      const store = yield* open(replica.url)
      yield* store.append(created("r"))
      const dead = yield* Effect.promise(() => TestServer.freePort())
      yield* Effect.promise(() => replica.send("REPLICAOF", "127.0.0.1", String(dead)))
      expect(yield* Effect.flip(store.append(created("r", { expectedSeq: 1 })))).toMatchObject({
        ...unavailable,
        detail: expect.stringContaining("READONLY")
      })
      expect((yield* store.head("r"))?.seq).toBe(1)
      expect(yield* Effect.flip(store.claim({ runId: "r", owner: "o", ttlMillis: 1 }))).toMatchObject(unavailable)
    })
  )

  it.live("RI-072 MISCONF is StoreUnavailable and writes nothing", () =>
    Effect.gen(function* () {
      const broken = yield* TestServer.scoped("--appendonly", "no", "--save", "3600 1")
      const store = yield* open(broken.url)
      yield* store.append(created("r"))
      rmSync(broken.dir, { recursive: true, force: true })
      yield* Effect.promise(() => broken.send("BGSAVE"))
      const info = Effect.promise(() => broken.send("INFO", "persistence"))
      yield* eventually(info, (text) => String(text).includes("rdb_last_bgsave_status:err"))
      expect(yield* Effect.flip(store.append(created("r", { expectedSeq: 1 })))).toMatchObject({
        ...unavailable,
        detail: expect.stringContaining("MISCONF")
      })
      expect(yield* store.read("r", { after: 0, limit: 9 })).toHaveLength(1)
    })
  )

  it.live("RI-072 a server that loads its data is waited for, and is StoreUnavailable if that takes too long", () =>
    Effect.gen(function* () {
      let loading = 3
      const slow = around((command, seen) =>
        seen.includes("XADD")
          ? Effect.suspend(() => (loading-- > 0 ? failing("LOADING Redis is loading the dataset in memory") : command))
          : command
      )
      const store = yield* open(url, { prefix: "loading", wrap: slow, commandTimeout: "5 seconds" })
      expect(yield* store.append(created("r"))).toEqual({ _tag: "Committed" })
      loading = Number.POSITIVE_INFINITY
      const hasty = yield* open(url, { prefix: "loading", wrap: slow, commandTimeout: "400 millis" })
      expect(yield* Effect.flip(hasty.append(created("r", { expectedSeq: 1 })))).toMatchObject(unavailable)
      expect((yield* store.head("r"))?.seq).toBe(1)
    })
  )

  it.live("a server that is away for less than the time limit is waited for", () =>
    Effect.gen(function* () {
      const own = yield* TestServer.scoped()
      const store = yield* open(own.url, { commandTimeout: "5 seconds" })
      yield* Effect.promise(() => own.kill())
      yield* Effect.repeat(Effect.sleep(10), { times: 20 }) // the client knows, be the machine as busy as it likes
      const back = Effect.andThen(
        Effect.sleep(300),
        Effect.promise(() => own.restart())
      )
      const [result] = yield* Effect.all([store.append(created("r")), back], { concurrency: 2 })
      expect(result).toEqual({ _tag: "Committed" })
    }).pipe(Effect.provide(Logger.layer([])))
  )

  it.live("a client by URL logs nothing when its server goes away; whoever asks is told", () =>
    Effect.gen(function* () {
      const own = yield* TestServer.scoped()
      const { exit, lines } = yield* logs(
        Effect.scoped(
          Effect.gen(function* () {
            const options = { url: own.url, onWeakServer: "ignore", commandTimeout: "1 second" } as const
            const built = yield* Layer.build(RedisStore.layerUrl(options))
            const store = yield* Effect.provide(CheckpointStore.CheckpointStore.use(Effect.succeed), built)
            yield* store.append(created("r"))
            const watching = yield* Effect.forkChild(Stream.runDrain(store.watch?.("r") ?? Stream.empty))
            const listening = Effect.promise(() => own.send("PUBSUB", "NUMSUB", "{waystone}:changed"))
            yield* eventually(listening, (reply) => String(reply).endsWith(",1"))
            yield* Effect.promise(() => own.kill())
            expect(yield* Effect.flip(store.append(created("s")))).toMatchObject(unavailable)
            yield* Fiber.interrupt(watching)
          })
        )
      )
      expect(exit._tag).toBe("Success")
      expect(lines).toEqual([])
    })
  )

  it.live("a server that does not answer is StoreUnavailable after the time limit", () =>
    Effect.gen(function* () {
      const silent = around((command, seen) => (seen.includes("XADD") ? Effect.never : command))
      const store = yield* open(url, { prefix: "silent", wrap: silent, commandTimeout: "200 millis" })
      expect(yield* Effect.flip(store.append(created("r")))).toMatchObject({
        ...unavailable,
        detail: expect.stringContaining("200ms")
      })
    })
  )

  it.live("forgotten scripts are loaded again", () =>
    Effect.gen(function* () {
      const store = yield* open(url, { prefix: "forgotten" })
      yield* store.append(created("r"))
      yield* ask("SCRIPT", "FLUSH")
      expect(yield* store.append(created("r", { expectedSeq: 1 }))).toEqual({ _tag: "Committed" })
      expect(yield* store.read("r", { after: 0, limit: 9 })).toHaveLength(2)
    })
  )
})

describe.skipIf(!canStart)("the password in a URL", () => {
  const secret = "hunter2%2Fsecret"
  const decoded = "hunter2/secret"
  const port = server?.port ?? 0
  const build = (url: RedisStore.Options & { readonly url: string | Redacted.Redacted }) =>
    logs(Effect.scoped(Layer.build(RedisStore.layerUrl(url))))

  const both = (url: string): ReadonlyArray<string | Redacted.Redacted> => [url, Redacted.make(url)]

  it.live.each([
    ["a wrong one", `redis://limited:${secret}@127.0.0.1:${port}`, "StoreUnavailable"],
    ["a host that does not exist", `redis://u:${secret}@no-such-host.invalid:1`, "StoreUnavailable"],
    ["a closed port", `redis://u:${secret}@127.0.0.1:1`, "StoreUnavailable"],
    ["another scheme", `http://u:${secret}@127.0.0.1`, "OptionInvalid"],
    ["no URL", `redis//u:${secret}@127.0.0.1`, "OptionInvalid"],
    ["a bad port", `redis://u:${secret}@127.0.0.1:port`, "OptionInvalid"],
    ["a bad path", `redis://u:${secret}@127.0.0.1/db`, "OptionInvalid"],
    ["a bad escape", `redis://u:${secret}%zz@127.0.0.1`, "OptionInvalid"]
  ] as const)("is not in the error, and nothing is logged: %s", ([, bad, tag]) =>
    Effect.gen(function* () {
      for (const url of both(bad)) {
        const { exit, lines } = yield* build({ url, prefix: "check" })
        expect(exit._tag).toBe("Failure")
        const text = failure(exit)
        expect(text).toContain(`"_tag":"${tag}"`)
        if (tag === "OptionInvalid") expect(text).toContain('"field":"url"')
        expect(text).not.toContain(secret)
        expect(text).not.toContain(decoded)
        expect(text).not.toContain("hunter2")
        expect(lines).toEqual([])
      }
    })
  )

  it.live("is used: a right one connects, redacted or not, with its database", () =>
    Effect.gen(function* () {
      yield* ask("ACL", "SETUSER", "worker", "on", `>${decoded}`, "~*", "&*", "+@all")
      const right = `redis://worker:${secret}@127.0.0.1:${port}/3`
      for (const url of both(right)) {
        const built = yield* Layer.build(RedisStore.layerUrl({ url, prefix: "db" }))
        const store = CheckpointStore.CheckpointStore.of(
          yield* Effect.provide(CheckpointStore.CheckpointStore.use(Effect.succeed), built)
        )
        yield* store.append(created("r"))
        expect((yield* store.head("r"))?.seq).toBe(1)
      }
      expect(yield* Effect.promise(async () => server && TestServer.keysOf(server, "db"))).toEqual([])
    })
  )
})
