/** Stands between a client and Redis, and drops connections when it is told to: a reply is lost, its command is not. */
import { once } from "node:events"
import { createConnection, createServer, type Socket } from "node:net"
import * as Effect from "effect/Effect"

export interface Proxy {
  readonly url: string
  /** The reply to the next request that has this text in it is dropped, and the connection with it. */
  readonly loseReplyTo: (text: string) => void
  /** How many replies were lost. */
  readonly lost: () => number
}

const start = async (port: number) => {
  let doomed: string | undefined
  let lost = 0
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const redis = createConnection(port, "127.0.0.1")
    let dropping = false
    for (const socket of [client, redis]) {
      sockets.add(socket)
      socket.on("error", () => {})
      socket.on("close", () => {
        sockets.delete(socket)
        client.destroy()
        redis.destroy()
      })
    }
    client.on("data", (data) => {
      if (doomed !== undefined && data.includes(doomed)) {
        doomed = undefined
        dropping = true
      }
      redis.write(data)
    })
    redis.on("data", (data) => {
      if (!dropping) return void client.write(data)
      lost++
      client.destroy()
    })
  }).listen(0, "127.0.0.1")
  await once(server, "listening")
  const address = server.address()
  if (address === null || typeof address === "string") throw new Error("no port")
  const proxy: Proxy = {
    url: `redis://127.0.0.1:${address.port}`,
    loseReplyTo: (text) => {
      doomed = text
    },
    lost: () => lost
  }
  const stop = () => {
    for (const socket of sockets) socket.destroy()
    server.close()
  }
  return { proxy, stop }
}

export const scoped = (port: number) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(() => start(port)),
      ({ stop }) => Effect.sync(stop)
    ),
    ({ proxy }) => proxy
  )
