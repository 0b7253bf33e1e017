/** A back end for OTLP over HTTP that keeps what it takes and can refuse. */
import { once } from "node:events"
import { createServer } from "node:http"
import { gunzipSync } from "node:zlib"
import * as Effect from "effect/Effect"
import * as Protobuf from "./Protobuf.ts"

export interface Got {
  readonly path: string
  readonly type: string
  readonly body: Buffer
}

/** `refuse`: how many requests with traces are refused before it takes any. */
export const refusing = (refuse: number) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const got: Array<Got> = []
      const state = { refused: 0 }
      const server = createServer((request, response) => {
        const chunks: Array<Buffer> = []
        request.on("data", (chunk: Buffer) => chunks.push(chunk))
        request.on("end", () => {
          const path = request.url ?? ""
          if (path === "/v1/traces" && state.refused < refuse) {
            state.refused++
            response.statusCode = 400
            response.end()
            return
          }
          const raw = Buffer.concat(chunks)
          const body = request.headers["content-encoding"] === "gzip" ? gunzipSync(raw) : raw
          got.push({ path, type: request.headers["content-type"] ?? "", body })
          response.end()
        })
      }).listen(0, "127.0.0.1")
      await once(server, "listening")
      const address = server.address()
      return { got, server, state, port: typeof address === "object" ? address?.port : undefined }
    }),
    ({ server }) =>
      Effect.sync(() => {
        server.close()
        server.closeAllConnections()
      })
  )

export const receiver = refusing(0)

/** The traces among it, in the form of OTLP/JSON, however they were sent. */
export const tracesOf = (got: ReadonlyArray<Got>): ReadonlyArray<unknown> =>
  got
    .filter(({ path }) => path === "/v1/traces")
    .map(({ body, type }) => (type === "application/x-protobuf" ? Protobuf.decoded(body) : JSON.parse(body.toString())))
