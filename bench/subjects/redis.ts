/** A redis-server of its own, the store on it, and the raw client that sends one EVALSHA for each append. */
import { RedisStore } from "@waystone/checkpoint-redis"
import { CheckpointStore } from "@waystone/core"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync } from "node:fs"
import { createConnection, createServer } from "node:net"
import os from "node:os"
import { join } from "node:path"
import { createClient } from "redis"
import type { Figures } from "../rounds.ts"

const makeClient = (url: string) => createClient({ url, RESP: 2 })

type Client = Pick<ReturnType<typeof makeClient>, "scriptLoad" | "sendCommand">

export const store = (url: string) =>
  Effect.map(
    Layer.build(RedisStore.layerUrl({ url, prefix: `bench-${process.pid}`, onWeakServer: "ignore" })),
    (context) => Context.get(context, CheckpointStore.CheckpointStore)
  )

/** The figures of `work` and what the append-only file has grown by. */
export const measured = async (
  url: string,
  steps: number,
  work: (client: Client) => Promise<Figures>
): Promise<Figures> => {
  const client = makeClient(url)
  await client.connect()
  const size = async () => Number(/aof_current_size:(\d+)/.exec(String(await client.info("persistence")))?.[1])
  const before = await size()
  const figures = await work(client)
  const after = await size()
  await client.close()
  return { ...figures, aofKbPerStep: (after - before) / 1024 / steps }
}

/** What an append cannot do without: compare, add, set. */
const lua = `
local known = redis.call('HMGET', KEYS[1], 'seq', 'epoch')
if (known[1] or '0') ~= ARGV[1] then return known[1] end
redis.call('XADD', KEYS[2], ARGV[2] .. '-0', 'e', ARGV[3], 'b', ARGV[4])
redis.call('HSET', KEYS[1], 'seq', ARGV[2], 'epoch', ARGV[3], 'body', ARGV[5])
return 'ok'`

export const driver = (client: Client) => {
  const loaded = client.scriptLoad(lua)
  return async ({ epoch, events, expectedSeq, head, runId }: CheckpointStore.Append): Promise<void> => {
    const keys = [`raw-${process.pid}:{${runId}}:head`, `raw-${process.pid}:{${runId}}:events`]
    const values = [`${expectedSeq}`, `${expectedSeq + events.length}`, `${epoch}`, events.join(""), head.body]
    const reply = await client.sendCommand(["EVALSHA", String(await loaded), "2", ...keys, ...values])
    if (String(reply) !== "ok") throw new Error(String(reply))
  }
}

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const address = server.address()
  server.close()
  await once(server, "close")
  return typeof address === "object" && address !== null ? address.port : 0
}

/** Starts the redis-server of the PATH in a temporary folder, with an append-only file that is synced every second. */
export const start = async () => {
  const port = await freePort()
  const dir = mkdtempSync(join(os.tmpdir(), "waystone-bench-"))
  const listen = ["--port", `${port}`, "--bind", "127.0.0.1", "--dir", dir]
  const server = spawn("redis-server", [...listen, "--save", "", "--appendonly", "yes"], { stdio: "ignore" })
  const answers = () =>
    new Promise<boolean>((resolve) => {
      const socket = createConnection(port, "127.0.0.1")
      socket.once("connect", () => resolve(true)).once("error", () => resolve(false))
      socket.once("close", () => socket.destroy()).end()
    })
  await once(server, "spawn")
  while (!(await answers())) await new Promise((resolve) => setTimeout(resolve, 50))
  const stop = async () => {
    server.kill()
    await once(server, "exit")
    rmSync(dir, { recursive: true })
  }
  return { url: `redis://127.0.0.1:${port}`, stop }
}
