/** What the fake messages endpoint rejects, and what it takes. */
import { describe } from "@effect/vitest"
import { headersOf } from "./servers/client.ts"
import { short, valid } from "./servers/requests.ts"
import { accepts, rejects } from "./servers/table.ts"

const user = { role: "user", content: "Hi" }
const text = (value: string) => ({ type: "text", text: value })
const use = (id: string, name = "read_file", input: unknown = {}) => ({ type: "tool_use", id, name, input })
const result = (id: string, content: unknown = "text", more: object = {}) => ({
  type: "tool_result",
  tool_use_id: id,
  content,
  ...more
})
const said = (...content: ReadonlyArray<object>) => ({ role: "assistant", content })
const back = (...content: ReadonlyArray<object>) => ({ role: "user", content })
const chat = (...messages: ReadonlyArray<unknown>) => ({ model: "claude-test", max_tokens: 64, messages })
const tools = (...names: ReadonlyArray<string>) => ({
  ...short.anthropic,
  tools: names.map((name) => ({ name, input_schema: { type: "object" } }))
})
const schema = (input_schema: unknown) => ({ ...short.anthropic, tools: [{ name: "a", input_schema }] })
const thinking = (value: object, more: object = {}) => ({
  ...valid.anthropic,
  messages: [user],
  thinking: value,
  ...more
})
const headers = headersOf("anthropic")

describe("anthropic rejects", () => {
  rejects("anthropic", [
    {
      wrong: "a missing key",
      body: short.anthropic,
      headers: { "content-type": "application/json", "anthropic-version": "2023-06-01" },
      status: 401,
      code: "authentication_error",
      message: /x-api-key header is required/
    },
    {
      wrong: "a wrong key",
      body: short.anthropic,
      headers: { ...headers, "x-api-key": "other" },
      status: 401,
      code: "authentication_error",
      message: /invalid x-api-key/
    },
    {
      wrong: "a missing version header",
      body: short.anthropic,
      headers: { "content-type": "application/json", "x-api-key": "test-key" },
      message: /anthropic-version/
    },
    {
      wrong: "a model that does not exist",
      body: short.anthropic,
      options: { models: ["claude-other"] },
      status: 404,
      code: "not_found_error",
      message: /^model: claude-test$/
    },
    {
      wrong: "a prompt over the window",
      body: chat({ role: "user", content: "x".repeat(4000) }),
      options: { window: 1000 },
      message: /^prompt is too long: \d+ tokens > 1000 maximum$/
    },
    { wrong: "a body that is no JSON", body: "{", message: /JSON/ },
    { wrong: "a body without a model", body: { max_tokens: 1, messages: [user] }, message: /^model: / },
    {
      wrong: "a body without max_tokens",
      body: { model: "m", messages: [user] },
      message: /^max_tokens: Field required$/
    },
    { wrong: "max_tokens 0", body: { ...short.anthropic, max_tokens: 0 }, message: /^max_tokens: / },
    { wrong: "no messages", body: { model: "m", max_tokens: 1 }, message: /^messages: Field required/ },
    { wrong: "an empty list of messages", body: chat(), message: /at least one message/ }
  ])

  describe("order and empty content:", () => {
    rejects("anthropic", [
      { wrong: "a first message of the assistant", body: chat(said(text("a")), user), message: /first message/ },
      { wrong: "an unknown role", body: chat({ role: "tool", content: "a" }), message: /^messages\.0\.role/ },
      {
        wrong: "an empty user message",
        body: chat({ role: "user", content: "" }),
        message: /^messages\.0: .*non-empty/
      },
      { wrong: "a message without blocks", body: chat(user, said(), user), message: /^messages\.1: .*non-empty/ },
      { wrong: "an empty text block", body: chat(back(text(""))), message: /blocks must be non-empty$/ },
      { wrong: "a text block of white space", body: chat(user, said(text(" \n")), user), message: /non-whitespace/ },
      {
        wrong: "an empty text block in a result",
        body: chat(user, said(use("a")), back(result("a", [text("")]))),
        message: /blocks must be non-empty$/
      },
      {
        wrong: "an empty block of the system prompt",
        body: { ...short.anthropic, system: [text("")] },
        message: /^system: /
      },
      {
        wrong: "an error result without content",
        body: chat(user, said(use("a")), back(result("a", "", { is_error: true }))),
        message: /is_error/
      },
      {
        wrong: "white space at the end of a prefill",
        body: chat(user, { role: "assistant", content: "So: " }),
        message: /trailing whitespace/
      },
      {
        wrong: "five cache breakpoints",
        body: chat(back(...[1, 2, 3, 4, 5].map(() => ({ ...text("a"), cache_control: { type: "ephemeral" } })))),
        message: /maximum of 4.*Found 5/
      }
    ])
  })

  describe("broken pairing:", () => {
    rejects("anthropic", [
      {
        wrong: "a tool use at the end without its result",
        body: chat(user, said(use("a"))),
        message: /^messages\.1: .*immediately after: a\.$/
      },
      {
        wrong: "one result of two",
        body: chat(user, said(use("a"), use("b")), back(result("a"))),
        message: /^messages\.1: .*immediately after: b\.$/
      },
      {
        wrong: "text before the result",
        body: chat(user, said(use("a")), back(text("So"), result("a"))),
        message: /^messages\.1: .*immediately after: a\.$/
      },
      {
        wrong: "a result after another user message",
        body: chat(user, said(use("a")), user, back(result("a"))),
        message: /^messages\.1: .*immediately after: a\.$/
      },
      {
        wrong: "a result without a tool use",
        body: chat(back(result("a"))),
        message: /^messages\.0\.content: unexpected/
      },
      {
        wrong: "a result of another id",
        body: chat(user, said(use("a")), back(result("a"), result("b"))),
        message: /^messages\.2\.content: unexpected.*b\.$/
      },
      {
        wrong: "a result of an earlier turn",
        body: chat(user, said(use("a")), back(result("a")), said(text("ok")), back(result("a"))),
        message: /^messages\.4\.content: unexpected/
      },
      {
        wrong: "two results of one tool use",
        body: chat(user, said(use("a")), back(result("a"), result("a"))),
        message: /single result.*a$/
      },
      {
        wrong: "two tool uses of one id",
        body: chat(user, said(use("a"), use("a")), back(result("a"))),
        message: /^messages\.1\.content\.1: .*unique$/
      },
      {
        wrong: "an id again in a later message",
        body: chat(user, said(use("a")), back(result("a")), said(use("a")), back(result("a"))),
        message: /^messages\.3\.content\.0: .*unique$/
      },
      {
        wrong: "an id with a dot",
        body: chat(user, said(use("a.b")), back(result("a.b"))),
        message: /^messages\.1\.content\.0\.tool_use\.id: .*pattern/
      }
    ])
  })

  describe("tools:", () => {
    rejects("anthropic", [
      { wrong: "a dot in a name", body: tools("a.b"), message: /^tools\.0\.custom\.name: .*pattern/ },
      {
        wrong: "a name of 129 characters",
        body: tools("a".repeat(129)),
        message: /^tools\.0\.custom\.name: .*pattern/
      },
      { wrong: "two tools of one name", body: tools("a", "a"), message: /unique/ },
      {
        wrong: "a tool without a schema",
        body: { ...short.anthropic, tools: [{ name: "a" }] },
        message: /input_schema: Field required/
      },
      { wrong: "a schema without a type", body: schema({}), message: /input_schema\.type: Field required/ },
      {
        wrong: "a schema whose root is a string",
        body: schema({ type: "string" }),
        message: /input_schema\.type: Input should be 'object'/
      },
      {
        wrong: "the choice of a tool that is not offered",
        body: { ...tools("a"), tool_choice: { type: "tool", name: "b" } },
        message: /'b' not found/
      },
      {
        wrong: "a choice without tools",
        body: { ...short.anthropic, tool_choice: { type: "auto" } },
        message: /tool_choice/
      },
      {
        wrong: "input that is a string",
        body: chat(user, said(use("a", "f", "{}")), back(result("a"))),
        message: /tool_use\.input: .*dictionary/
      },
      {
        wrong: "a tool use without a name",
        body: chat(user, said({ type: "tool_use", id: "a", input: {} }), back(result("a"))),
        message: /tool_use\.name: Field required/
      }
    ])
  })

  describe("thinking:", () => {
    rejects("anthropic", [
      {
        wrong: "a budget under 1,024",
        body: thinking({ type: "enabled", budget_tokens: 1023 }),
        message: /budget_tokens.*1024/
      },
      {
        wrong: "a budget as large as max_tokens",
        body: thinking({ type: "enabled", budget_tokens: 2048 }),
        message: /must be greater/
      },
      {
        wrong: "a forced tool in manual mode",
        body: thinking({ type: "enabled", budget_tokens: 1024 }, { tool_choice: { type: "any" } }),
        message: /forces tool use/
      },
      {
        wrong: "a tool loop that does not start with thinking in manual mode",
        body: { ...valid.anthropic, thinking: { type: "enabled", budget_tokens: 1024 } },
        message: /^messages\.1\.content\.0\.type: Expected `thinking`.*found `tool_use`/
      },
      {
        wrong: "a signature that nobody gave",
        body: chat(user, said({ type: "thinking", thinking: "a", signature: "b" }, text("c")), user),
        message: /^messages\.1\.content\.0: Invalid `signature`/
      }
    ])
  })
})

describe("anthropic", () => {
  accepts("anthropic", {
    "a conversation with two tool uses and their results": valid.anthropic,
    "results in another order than their tool uses": chat(
      user,
      said(use("a"), use("b")),
      back(result("b"), result("a"))
    ),
    "results in two user messages in a row": chat(user, said(use("a"), use("b")), back(result("a")), back(result("b"))),
    "text after the results": chat(user, said(use("a")), back(result("a"), text("Go on"))),
    "two messages of one role in a row": chat(user, user, said(text("a")), said(text("b")), user),
    "an empty prefill": chat(user, { role: "assistant", content: "" }),
    "a result without content": chat(user, said(use("a")), back({ type: "tool_result", tool_use_id: "a" })),
    "a name of 128 characters": tools("a".repeat(128)),
    "the choice of a tool that is offered": { ...tools("a"), tool_choice: { type: "tool", name: "a" } },
    "four cache breakpoints": chat(
      back(...[1, 2, 3, 4].map(() => ({ ...text("a"), cache_control: { type: "ephemeral" } })))
    ),
    "a forced tool in adaptive mode": thinking({ type: "adaptive" }, { tool_choice: { type: "any" } })
  })
})
