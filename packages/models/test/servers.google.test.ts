/** What the fake generateContent endpoint rejects, and what it takes. */
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { back, call, chat, content, keyed, post, results, said, type Sent, user } from "./servers/googleClient.ts"
import { serve, type ServeOptions } from "./servers/serve.ts"

const tools = (...names: ReadonlyArray<string>) => ({
  ...chat(user),
  tools: [{ functionDeclarations: names.map((name) => ({ name, parametersJsonSchema: { type: "object" } })) }]
})
const choice = (mode: string, names?: ReadonlyArray<string>) => ({
  functionCallingConfig: { mode, ...(names === undefined ? {} : { allowedFunctionNames: names }) }
})

const rejected: ReadonlyArray<{
  readonly wrong: string
  readonly body: unknown
  readonly message: RegExp
  readonly status?: number
  readonly word?: string
  readonly sent?: Sent
  readonly options?: Partial<ServeOptions>
}> = [
  {
    wrong: "a missing key",
    body: chat(user),
    sent: { headers: { "content-type": "application/json" } },
    status: 403,
    word: "PERMISSION_DENIED",
    message: /unregistered callers/
  },
  {
    wrong: "a wrong key",
    body: chat(user),
    sent: { headers: { ...keyed, "x-goog-api-key": "other" } },
    message: /^API key not valid/
  },
  {
    wrong: "a model that does not exist",
    body: chat(user),
    options: { models: ["gemini-other"] },
    status: 404,
    word: "NOT_FOUND",
    message: /^models\/gemini-test is not found/
  },
  {
    wrong: "a prompt over the window",
    body: chat(content("user", { text: "x".repeat(4000) })),
    options: { window: 1000 },
    message: /exceeds the maximum number of tokens allowed \(1000\)/
  },
  { wrong: "another method", body: "", sent: { method: "GET" }, status: 405, word: "UNIMPLEMENTED", message: /Method/ },
  { wrong: "a body that is no JSON", body: "{", message: /JSON/ },
  { wrong: "no contents", body: chat(), message: /contents is not specified/ },
  { wrong: "an unknown role", body: chat(content("assistant", { text: "a" })), message: /valid role/ },
  { wrong: "a content without parts", body: chat(user, said(), user), message: /contents\[1\]\.parts: .*empty/ },
  { wrong: "an empty text", body: chat(content("user", { text: "" })), message: /contents\[0\]\.parts\[0\]\.data/ },
  { wrong: "a part without data", body: chat(content("user", {})), message: /contents\[0\]\.parts\[0\]\.data/ },
  {
    wrong: "an empty system instruction",
    body: { ...chat(user), systemInstruction: { parts: [{ text: "" }] } },
    message: /system_instruction\.parts\[0\]/
  },
  { wrong: "a call without a response", body: chat(user, said(call("a"))), message: /number of function response/ },
  {
    wrong: "one response of two",
    body: chat(user, said(call("a"), call("b")), results(back("a"))),
    message: /number of function response/
  },
  {
    wrong: "two responses of one call",
    body: chat(user, said(call("a")), results(back("a"), back("a"))),
    message: /number of function response/
  },
  {
    wrong: "a response after another content of the user",
    body: chat(user, said(call("a")), user, results(back("a"))),
    message: /number of function response/
  },
  {
    wrong: "a response of another id",
    body: chat(user, said(call("a")), results(back("b"))),
    message: /^The function response f b matches no/
  },
  {
    wrong: "a response of another name",
    body: chat(user, said(call("a")), results(back("a", "g"))),
    message: /^The function response g a matches no/
  },
  {
    wrong: "a response without a call",
    body: chat(user, results(back("a"))),
    message: /response turn comes immediately after a function call turn/
  },
  {
    wrong: "a response of the model",
    body: chat(user, said(call("a")), said(back("a"))),
    message: /response turn comes immediately after a function call turn/
  },
  {
    wrong: "a call at the beginning",
    body: chat(said(call("a")), results(back("a"))),
    message: /call turn comes immediately after a user turn/
  },
  {
    wrong: "a call after a content of the model",
    body: chat(user, said({ text: "So" }), said(call("a")), results(back("a"))),
    message: /call turn comes immediately after a user turn/
  },
  {
    wrong: "two calls of one id",
    body: chat(user, said(call("a"), call("a")), results(back("a"), back("a"))),
    message: /ids .* unique/
  },
  {
    wrong: "a call without a name",
    body: chat(user, said({ functionCall: { id: "a", args: {} } }), results(back("a"))),
    message: /function_call\.name: Name cannot be empty/
  },
  {
    wrong: "arguments that are a text",
    body: chat(user, said({ functionCall: { id: "a", name: "f", args: "{}" } }), results(back("a"))),
    message: /function_call\.args.*Struct/
  },
  {
    wrong: "a response that is a text",
    body: chat(user, said(call("a")), results(back("a", "f", "text"))),
    message: /function_response\.response.*Struct/
  },
  {
    wrong: "a response that says nothing",
    body: chat(user, said(call("a")), results({ functionResponse: { id: "a", name: "f" } })),
    message: /function_response\.response: Response cannot be empty/
  },
  { wrong: "a name with a blank", body: tools("a b"), message: /Invalid function name/ },
  { wrong: "a name that begins with a digit", body: tools("1a"), message: /Invalid function name/ },
  { wrong: "a name of 65 characters", body: tools("a".repeat(65)), message: /Invalid function name/ },
  { wrong: "two tools of one name", body: tools("a", "a"), message: /Duplicate function declaration found: a/ },
  {
    wrong: "a schema whose root is no object",
    body: { ...chat(user), tools: [{ functionDeclarations: [{ name: "a", parametersJsonSchema: {} }] }] },
    message: /parameters_json_schema/
  },
  { wrong: "a choice without tools", body: { ...chat(user), toolConfig: choice("AUTO") }, message: /without function/ },
  {
    wrong: "a named choice in the mode AUTO",
    body: { ...tools("a"), toolConfig: choice("AUTO", ["a"]) },
    message: /must be ANY/
  },
  {
    wrong: "the choice of a tool that is not declared",
    body: { ...tools("a"), toolConfig: choice("ANY", ["b"]) },
    message: /holds b, which is not declared/
  },
  {
    wrong: "a signature that nobody gave",
    body: chat(user, said({ text: "a", thoughtSignature: "b" }), user),
    message: /^Thought signature is not valid/
  }
]

describe("google rejects", () => {
  for (const { body, message, options, sent, status = 400, word = "INVALID_ARGUMENT", wrong } of rejected)
    it.live(wrong, () =>
      Effect.gen(function* () {
        let answered = 0
        const server = yield* serve({ protocol: "google", script: () => ({ text: `${answered++}` }), ...options })
        const got = yield* post(server, body, sent)
        expect(got.json).toEqual({ error: { code: status, message: expect.stringMatching(message), status: word } })
        expect([got.status, got.type, answered]).toEqual([status, "application/json", 0])
        expect((yield* server.rejected).length).toBe(1)
      })
    )

  it.live("another path", () =>
    Effect.gen(function* () {
      const server = yield* serve({ protocol: "google", script: () => ({ text: "?" }) })
      const url = `${server.url}/v1beta/models/gemini-test:countTokens`
      expect((yield* Effect.promise(() => fetch(url, { method: "POST", headers: keyed }))).status).toBe(404)
    })
  )
})

const taken: Readonly<Record<string, unknown>> = {
  "two calls and their responses, in another order": chat(
    user,
    said(call("a"), call("b", "g")),
    results(back("b", "g"), back("a"))
  ),
  "text after the responses": chat(user, said({ text: "So" }, call("a")), results(back("a"), { text: "Go on" })),
  "a call after the responses of others": chat(
    user,
    said(call("a")),
    results(back("a")),
    said(call("b")),
    results(back("b"))
  ),
  "two contents of one role in a row": chat(user, user, said({ text: "a" }), said({ text: "b" }), user),
  "names with dots, colons and dashes": tools("a.b:c-d", "_e"),
  "the choice of a tool that is declared": { ...tools("a"), toolConfig: choice("ANY", ["a"]) }
}

describe("google", () => {
  for (const [what, body] of Object.entries(taken))
    it.live(`takes ${what}`, () =>
      Effect.gen(function* () {
        const server = yield* serve({ protocol: "google", script: () => ({ text: "ok" }) })
        expect([(yield* post(server, body)).status, yield* server.rejected]).toEqual([200, []])
      })
    )
})
