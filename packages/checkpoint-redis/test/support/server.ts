/**
 * A real Redis for tests: the one at REDIS_URL if that is set, else a redis-server from the PATH, started on a free port with
 * a temporary folder of its own. Without either, `shared` says which tests are skipped and how to run them.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync } from "node:fs"
import { createConnection, createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { createClient } from "redis"

export interface Server {
  readonly url: string
  readonly port: number
  readonly dir: string
  /** SIGKILL: what is not on disk is gone. */
  readonly kill: () => Promise<void>
  /** Starts it again on the same port and folder. */
  readonly restart: () => Promise<void>
  /** Kills it and removes its folder. */
  readonly stop: () => Promise<void>
  /** Runs commands on a connection of their own. */
  readonly send: (...command: ReadonlyArray<string>) => Promise<unknown>
}

const appending = ["--appendonly", "yes", "--appendfsync", "everysec"]

/** Starts one. `args` come last, so they win. */
export const start = async (...args: ReadonlyArray<string>): Promise<Server> => {
  // Somebody else may take a port between the look and the server's own.
  for (let tries = 1; ; tries++) {
    try {
      return await startOn(await freePort(), args)
    } catch (error) {
      if (tries === 5) throw error
    }
  }
}

const startOn = async (port: number, args: ReadonlyArray<string>): Promise<Server> => {
  const dir = mkdtempSync(join(tmpdir(), "waystone-redis-"))
  const options = ["--port", String(port), "--bind", "127.0.0.1", "--dir", dir, "--save", "", ...appending, ...args]
  const launch = async (): Promise<ChildProcess> => {
    const child = spawn("redis-server", options, { stdio: ["ignore", "pipe", "ignore"] })
    child.stdout.resume()
    await listening(port, child)
    return child
  }
  let running = await launch().catch((error: unknown) => {
    rmSync(dir, { recursive: true, force: true })
    throw error
  })
  const onExit = () => running.kill("SIGKILL")
  process.once("exit", onExit)
  const kill = async () => {
    if (running.exitCode !== null || running.signalCode !== null) return
    const ended = once(running, "exit")
    running.kill("SIGKILL")
    await ended
  }
  const url = `redis://127.0.0.1:${port}`
  return {
    url,
    port,
    dir,
    kill,
    restart: async () => {
      await kill()
      running = await launch()
    },
    stop: async () => {
      await kill()
      process.off("exit", onExit)
      rmSync(dir, { recursive: true, force: true })
    },
    send: sendTo(url)
  }
}

/** `start` in a Scope. */
export const scoped = (...args: ReadonlyArray<string>): Effect.Effect<Server, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(() => start(...args)),
    (server) => Effect.promise(() => server.stop())
  )

/** What tests that need no server of their own share. */
export type Shared = Pick<Server, "url" | "send" | "stop">

/** True if `start` can work. */
export const canStart = ((): boolean => {
  try {
    execFileSync("redis-server", ["--version"], { stdio: "ignore" })
    return true
  } catch {
    return false
  }
})()

/** Undefined, and one line that says so, where there is no Redis at all. */
export const shared = async (tests: string): Promise<Shared | undefined> => {
  const url = process.env["REDIS_URL"]
  if (url !== undefined && url !== "") return { url, send: sendTo(url), stop: async () => {} }
  if (canStart) return start()
  console.log(skipped(tests))
  return undefined
}

export const skipped = (tests: string): string =>
  `skipped: ${tests}. Put redis-server into the PATH (apt-get install redis-server), or set REDIS_URL, to run them.`

/** A prefix that no other test uses. */
export const freshPrefix = (): string => `t${Math.random().toString(36).slice(2, 10)}`

/** Removes all keys that have the prefix, for a server that outlives the tests. */
export const clean = async ({ send }: Pick<Server, "send">, prefix: string): Promise<void> => {
  const keys = await keysOf({ send }, prefix)
  for (const key of keys) await send("DEL", key)
}

/** All keys of that prefix. */
export const keysOf = async ({ send }: Pick<Server, "send">, prefix: string): Promise<ReadonlyArray<string>> => {
  const found = [await send("KEYS", `${prefix}:{*`), await send("KEYS", `{${prefix}}:*`)]
  return found.flatMap((keys) => (Array.isArray(keys) ? keys.map(String) : [])).toSorted()
}

const sendTo =
  (url: string) =>
  async (...command: ReadonlyArray<string>): Promise<unknown> => {
    const client = createClient({ url, RESP: 2, socket: { reconnectStrategy: false } })
    client.on("error", () => {})
    await client.connect()
    try {
      return await client.sendCommand([...command])
    } finally {
      client.destroy()
    }
  }

/** A port that nobody listens on. */
export const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const address = server.address()
  server.close()
  await once(server, "close")
  if (address === null || typeof address === "string") throw new Error("no port")
  return address.port
}

const listening = async (port: number, child: ChildProcess): Promise<void> => {
  for (let tries = 0; tries < 500; tries++) {
    if (child.exitCode !== null) throw new Error(`redis-server ended with ${child.exitCode}`)
    // One that found its port taken has ended, whoever answers there.
    if ((await answers(port)) && child.exitCode === null) return
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  throw new Error("redis-server does not answer")
}

/** A server that loads its data or wants a password answers, too. */
const answers = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = createConnection(port, "127.0.0.1")
    const end = (answer: boolean) => () => {
      socket.destroy()
      resolve(answer)
    }
    socket.once("connect", () => socket.write("PING\r\n"))
    socket.once("data", (data) => end(!data.toString().startsWith("-LOADING"))())
    socket.once("error", end(false))
    socket.setTimeout(500, end(false))
  })
