/**
 * Starts a strict fake model server on 127.0.0.1 that answers as a script says and rejects what the real API rejects.
 *
 * 1. A request that breaks a rule gets the real API's status and error body, and never reaches the script.
 * 2. The same number of a request gives the same bytes: ids and times are made from the number.
 * 3. When the scope closes, the server, its connections and its timers are gone.
 */
import { once } from "node:events"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Anthropic from "./Anthropic.ts"
import * as Google from "./Google.ts"
import * as OpenAiChat from "./OpenAiChat.ts"
import * as OpenAiResponses from "./OpenAiResponses.ts"
import type * as Protocol from "./Protocol.ts"
import type * as Script from "./Script.ts"
import * as Send from "./Send.ts"
import * as Wire from "./Wire.ts"

export interface ServeOptions extends Partial<Wire.Options> {
  readonly protocol: "openai-chat" | "openai-responses" | "anthropic" | "google"
  readonly script: Script.Script
}

export interface ModelServer {
  /** What comes before the version; clients take `url + "/v1"` as their base URL, that of Google `url + "/v1beta"`. */
  readonly url: string
  /** Every request so far, rejected ones too, in the order of arrival. */
  readonly requests: Effect.Effect<ReadonlyArray<Wire.ModelRequest>>
  /** Why requests were rejected, as `<status> <code or type>: <message>`. */
  readonly rejected: Effect.Effect<ReadonlyArray<string>>
}

const protocols = {
  "openai-chat": OpenAiChat.make,
  "openai-responses": OpenAiResponses.make,
  anthropic: Anthropic.make,
  google: Google.make
}

const read = async (request: IncomingMessage): Promise<string> => {
  const chunks: Array<Buffer> = []
  for await (const chunk of request) chunks.push(Buffer.from(chunk))
  return Buffer.concat(chunks).toString("utf8")
}

const first = (problems: Iterable<Wire.Rejection>): Wire.Rejection | undefined => {
  for (const problem of problems) return problem
  return undefined
}

const notFound = (protocol: Protocol.Protocol, request: Wire.ModelRequest): Wire.Rejection => ({
  ...protocol.errorFor(404),
  message: `There is nothing at ${request.path}.`
})

const start = async (options: ServeOptions) => {
  const protocol = protocols[options.protocol]({
    apiKey: options.apiKey ?? "test-key",
    models: options.models,
    window: options.window ?? Number.POSITIVE_INFINITY
  })
  const requests: Array<Wire.ModelRequest> = []
  const rejected: Array<string> = []
  let number = 0
  const answer = async (incoming: IncomingMessage, response: ServerResponse) => {
    const text = await read(incoming)
    const request: Wire.ModelRequest = {
      method: incoming.method ?? "",
      path: incoming.url ?? "",
      headers: incoming.headers,
      body: Wire.parse(text) ?? text
    }
    requests.push(request)
    const problem = protocol.serves(request.path.split("?")[0] ?? "")
      ? first(protocol.problems(request))
      : notFound(protocol, request)
    if (problem !== undefined) {
      rejected.push(`${problem.status} ${problem.code ?? problem.type}: ${problem.message}`)
      return Send.json(response, problem.status, protocol.errorBody(problem))
    }
    const body = Wire.object(request.body)
    const mine = number++
    Send.answer(
      { response, protocol, body, stream: protocol.streams(request), number: mine },
      options.script(body, mine)
    )
  }
  const open = new Set<ServerResponse>()
  const server = createServer((incoming, response) => {
    open.add(response)
    response.once("close", () => open.delete(response))
    answer(incoming, response).catch((error: unknown) => {
      rejected.push(`500 script: ${String(error)}`)
      if (response.headersSent) response.destroy()
      else Send.json(response, 500, protocol.errorBody(protocol.errorFor(500)))
    })
  }).listen(0, "127.0.0.1")
  await once(server, "listening")
  const address = server.address()
  if (address === null || typeof address === "string") throw new Error("no port")
  const found: ModelServer = {
    url: `http://127.0.0.1:${address.port}`,
    requests: Effect.sync(() => [...requests]),
    rejected: Effect.sync(() => [...rejected])
  }
  const stop = async () => {
    const closed = [server, ...open].map((one) => once(one, "close"))
    server.close()
    server.closeAllConnections()
    await Promise.all(closed)
  }
  return { found, stop }
}

/** The server lives as long as the scope. */
export const serve = (options: ServeOptions): Effect.Effect<ModelServer, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(() => start(options)),
      ({ stop }) => Effect.promise(stop)
    ),
    ({ found }) => found
  )
