/** Writes a Reply or a Fault onto a response, as JSON or as SSE. */
import type { ServerResponse } from "node:http"
import { Readable } from "node:stream"
import { pipeline } from "node:stream/promises"
import type * as Protocol from "./Protocol.ts"
import type * as Script from "./Script.ts"
import type * as Wire from "./Wire.ts"

export interface Exchange {
  readonly response: ServerResponse
  readonly protocol: Protocol.Protocol
  readonly body: Wire.JsonObject
  readonly stream: boolean
  readonly number: number
}

const keepAliveMillis = 10

export const json = (response: ServerResponse, status: number, body: unknown): void => {
  const text = Buffer.from(JSON.stringify(body))
  response.writeHead(status, { "content-type": "application/json", "content-length": text.length })
  response.end(text)
}

const head = (exchange: Exchange, extra: Record<string, number> = {}) =>
  exchange.response.writeHead(200, {
    "content-type": exchange.stream ? "text/event-stream; charset=utf-8" : "application/json",
    "cache-control": "no-cache",
    ...extra
  })

const encoded = ({ protocol }: Exchange, frames: ReadonlyArray<Wire.Frame>) =>
  frames.map((frame, index) => protocol.encode(frame, index)).join("")

const whole = (exchange: Exchange, reply: Script.Reply): Buffer => {
  const { close, content, json: value, open } = exchange.protocol.answer(reply, exchange.body, exchange.number)
  const frames = [...open, ...content, ...(reply.finish === "missing" ? [] : close)]
  return Buffer.from(exchange.stream ? encoded(exchange, frames) : JSON.stringify(value))
}

const sized = (exchange: Exchange, bytes: Buffer) => (exchange.stream ? {} : { "content-length": bytes.length })

export const answer = (exchange: Exchange, given: Script.Reply | Script.Fault): void => {
  if ("fault" in given) return fail(exchange, given)
  const bytes = whole(exchange, given)
  head(exchange, sized(exchange, bytes)).end(bytes)
}

const fail = (exchange: Exchange, fault: Script.Fault): void => {
  const { protocol, response } = exchange
  switch (fault.fault) {
    case "hang":
      return
    case "keepAliveHang":
      return keepAlive(exchange)
    case "cutAt":
      return cut(exchange, fault.byte, whole(exchange, fault.reply))
    case "overloadInStream":
      return overload(exchange, fault.text)
    case "slow":
      return slow(exchange, fault)
    case "raw":
      response.writeHead(200, {
        "content-type": fault.contentType ?? (exchange.stream ? "text/event-stream" : "application/json")
      })
      response.end(fault.body)
      return
    case "status": {
      for (const [name, value] of Object.entries(fault.headers))
        if (value !== undefined) response.setHeader(name, value)
      if (fault.body === undefined)
        return json(response, fault.status, protocol.errorBody(protocol.errorFor(fault.status)))
      response.writeHead(fault.status)
      response.end(fault.body)
    }
  }
}

/** The socket goes once the bytes are handed to the system, so that the client gets exactly them. */
const cut = (exchange: Exchange, byte: number, bytes: Buffer): void => {
  const { response } = exchange
  head(exchange, sized(exchange, bytes)).flushHeaders()
  if (byte <= 0) response.socket?.destroySoon()
  else response.write(bytes.subarray(0, byte), () => response.socket?.destroySoon())
}

const keepAlive = (exchange: Exchange): void => {
  const { protocol, response } = exchange
  head(exchange).flushHeaders()
  const beat = exchange.stream ? protocol.keepAlive : "\n"
  const timer = setInterval(() => response.write(beat), keepAliveMillis)
  response.once("close", () => clearInterval(timer))
}

const overload = (exchange: Exchange, text: string): void => {
  const { protocol, response } = exchange
  if (!exchange.stream) return json(response, protocol.overload.status, protocol.errorBody(protocol.overload))
  const { content, open } = protocol.answer({ text }, exchange.body, exchange.number)
  const end = content.findLastIndex((frame) => frame.text === true) + 1
  head(exchange).end(encoded(exchange, [...open, ...content.slice(0, end), protocol.overloadFrame]))
}

/** Text before the piece that repeats, the piece, and text after it. */
interface Repeated {
  readonly before: string
  readonly piece: (index: number) => string
  readonly after: (index: number) => string
}

const repeatedFrames = (exchange: Exchange, text: string): Repeated => {
  const { close, content, open } = exchange.protocol.answer({ text }, exchange.body, exchange.number)
  const frames = [...open, ...content, ...close]
  const place = frames.findIndex((frame) => frame.text === true)
  const delta = frames[place] ?? { data: "" }
  const { encode } = exchange.protocol
  return {
    before: encoded(exchange, frames.slice(0, place)),
    piece: (index) => encode(delta, place + index),
    after: (index) =>
      frames
        .slice(place + 1)
        .map((frame, rest) => encode(frame, place + index + rest))
        .join("")
  }
}

const repeatedJson = (exchange: Exchange, text: string): Repeated => {
  const value = JSON.stringify(exchange.protocol.answer({ text }, exchange.body, exchange.number).json)
  const at = value.indexOf(text)
  return { before: value.slice(0, at), piece: () => text, after: () => value.slice(at + text.length) }
}

function* chunks(parts: Repeated, fault: Script.Fault & { readonly fault: "slow" }): Generator<string> {
  let made = 0
  const count = (chunk: string) => {
    made += chunk.length
    fault.onWrite?.(made)
    return chunk
  }
  yield count(parts.before)
  let index = 0
  while (made < fault.bytes) yield count(parts.piece(index++))
  yield count(parts.after(index))
}

/** The pipeline pulls a chunk when the client has room for it, and stops pulling when the client goes. */
const slow = (exchange: Exchange, fault: Script.Fault & { readonly fault: "slow" }): void => {
  const text = "x".repeat(Math.max(1, fault.piece))
  const parts = exchange.stream ? repeatedFrames(exchange, text) : repeatedJson(exchange, text)
  head(exchange)
  pipeline(Readable.from(chunks(parts, fault), { objectMode: false }), exchange.response).catch(() => {})
}
