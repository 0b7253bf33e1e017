/** Runs a table of requests that a fake server must reject, each with the whole error body that the real API sends. */
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Client from "./client.ts"
import { serve, type ServeOptions } from "./serve.ts"

export interface Case {
  readonly wrong: string
  readonly body: unknown
  readonly status?: number
  /** OpenAI's code (null when left out) or Anthropic's type (`invalid_request_error` when left out). */
  readonly code?: string
  readonly param?: string
  readonly message: RegExp
  readonly headers?: Record<string, string>
  readonly options?: Partial<ServeOptions>
}

const expected = (protocol: Client.Name, { code, message, param }: Case) =>
  protocol === "anthropic"
    ? {
        type: "error",
        error: { type: code ?? "invalid_request_error", message: expect.stringMatching(message) },
        request_id: "req_test"
      }
    : {
        error: {
          message: expect.stringMatching(message),
          type: "invalid_request_error",
          param: param ?? null,
          code: code ?? null
        }
      }

export const rejects = (protocol: Client.Name, cases: ReadonlyArray<Case>) => {
  for (const one of cases)
    it.live(`${one.status ?? 400} ${one.code ?? ""} ${one.wrong}`.replace(/ +/g, " "), () =>
      Effect.gen(function* () {
        let answered = 0
        const server = yield* serve({ protocol, script: () => ({ text: `reply ${answered++}` }), ...one.options })
        const got = yield* Client.post(server, protocol, one.body, one.headers)
        expect(got.json).toEqual(expected(protocol, one))
        expect(got.status).toBe(one.status ?? 400)
        expect(got.headers.get("content-type")).toBe("application/json")
        expect([answered, (yield* server.rejected).length, (yield* server.requests).length]).toEqual([0, 1, 1])
      })
    )
}

/** Each of these is taken: a rule that is too wide fails here. */
export const accepts = (protocol: Client.Name, bodies: Readonly<Record<string, unknown>>) => {
  for (const [what, body] of Object.entries(bodies))
    it.live(`takes ${what}`, () =>
      Effect.gen(function* () {
        const server = yield* serve({ protocol, script: () => ({ text: "ok" }) })
        const got = yield* Client.post(server, protocol, body)
        expect([got.status, yield* server.rejected]).toEqual([200, []])
      })
    )
}
