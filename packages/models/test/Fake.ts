/** A server on 127.0.0.1 that answers what a test says and keeps what it was asked. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"

export interface Asked {
  readonly path: string
  readonly headers: IncomingMessage["headers"]
  readonly body: { readonly [field: string]: unknown }
}

export interface Answer {
  /** The connection is destroyed before any answer. */
  readonly reset?: boolean
  readonly status?: number
  readonly headers?: { readonly [name: string]: string }
  readonly body?: string
  /** The connection is destroyed behind the body. */
  readonly cut?: boolean
  /** Nothing comes behind the body, and the answer does not end. */
  readonly hang?: boolean
}

export interface Fake {
  readonly url: string
  readonly asked: Array<Asked>
  /** How many connections the other side gave up before the answer was over. */
  readonly left: () => number
}

/** The answer to the n-th request is the n-th of these; the last one stands for all that follow. */
export const serve = (
  answers: ReadonlyArray<Answer | ((asked: Asked) => Answer)>
): Effect.Effect<Fake, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.callback<Fake & { readonly close: () => void }>((resume) => {
      const asked: Array<Asked> = []
      let left = 0
      const server = createServer((request, response) => {
        const chunks: Array<Buffer> = []
        request.on("data", (chunk: Buffer) => chunks.push(chunk))
        response.on("close", () => {
          if (!response.writableEnded) left++
        })
        request.on("end", () => {
          const one: Asked = {
            path: request.url ?? "",
            headers: request.headers,
            body: JSON.parse(Buffer.concat(chunks).toString("utf8"))
          }
          const answer = answers[Math.min(asked.length, answers.length - 1)] ?? {}
          asked.push(one)
          write(response, typeof answer === "function" ? answer(one) : answer)
        })
      })
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        const port = typeof address === "object" && address !== null ? address.port : 0
        const close = () => {
          server.closeAllConnections()
          server.close()
        }
        resume(Effect.succeed({ url: `http://127.0.0.1:${port}`, asked, left: () => left, close }))
      })
    }),
    ({ close }) => Effect.sync(close)
  )

const write = (response: ServerResponse, answer: Answer) => {
  if (answer.reset === true) response.socket?.destroy()
  else writeBody(response, answer)
}

const writeBody = (
  response: ServerResponse,
  { body = "", cut = false, hang = false, headers, status = 200 }: Answer
) => {
  response.writeHead(status, {
    "content-type": body.startsWith("{") ? "application/json" : "text/event-stream",
    ...headers
  })
  if (hang) {
    response.write(body)
  } else if (cut) {
    response.write(body, () => response.socket?.end())
  } else {
    response.end(body)
  }
}

export const json = (body: unknown, more: Omit<Answer, "body"> = {}): Answer => ({
  ...more,
  body: JSON.stringify(body)
})

/** Events as OpenAI's chat completions write them. */
export const sse = (events: ReadonlyArray<unknown>): string =>
  events.map((event) => `data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`).join("")

/** Events that bear a name, as Anthropic and OpenAI's responses write them. */
export const named = (events: ReadonlyArray<{ readonly type: string; readonly [field: string]: unknown }>): string =>
  events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("")
