/** What the fake chat completions endpoint rejects, and what it takes. */
import { describe } from "@effect/vitest"
import { headersOf } from "./servers/client.ts"
import { short, valid } from "./servers/requests.ts"
import { accepts, rejects } from "./servers/table.ts"

const user = { role: "user", content: "Hi" }
const call = (id: string, name = "read_file", args: unknown = "{}") => ({
  id,
  type: "function",
  function: { name, arguments: args }
})
const asks = (...calls: ReadonlyArray<object>) => ({ role: "assistant", content: null, tool_calls: calls })
const result = (id: string) => ({ role: "tool", tool_call_id: id, content: "text" })
const chat = (...messages: ReadonlyArray<unknown>) => ({ model: "gpt-test", messages })
const tool = (name: string, parameters: unknown = { type: "object" }, strict?: boolean) => ({
  ...short["openai-chat"],
  tools: [{ type: "function", function: { name, parameters, ...(strict === undefined ? {} : { strict }) } }]
})
const name = "tools[0].function.name"
const parameters = "tools[0].function.parameters"

describe("openai-chat rejects", () => {
  rejects("openai-chat", [
    {
      wrong: "a missing key",
      body: short["openai-chat"],
      headers: { "content-type": "application/json" },
      status: 401,
      message: /API key/
    },
    {
      wrong: "a wrong key",
      body: short["openai-chat"],
      headers: { ...headersOf("openai-chat"), authorization: "Bearer other" },
      status: 401,
      code: "invalid_api_key",
      message: /Incorrect API key/
    },
    {
      wrong: "a model that does not exist",
      body: short["openai-chat"],
      options: { models: ["gpt-other"] },
      status: 404,
      code: "model_not_found",
      message: /gpt-test/
    },
    {
      wrong: "messages over the window",
      body: chat({ role: "user", content: "x".repeat(4000) }),
      options: { window: 1000 },
      code: "context_length_exceeded",
      param: "messages",
      message: /maximum context length/
    },
    { wrong: "a body that is no JSON", body: "{", message: /JSON/ },
    { wrong: "a body without a model", body: { messages: [user] }, message: /model/ },
    {
      wrong: "no messages",
      body: { model: "m" },
      code: "missing_required_parameter",
      param: "messages",
      message: /messages/
    },
    { wrong: "an empty list of messages", body: chat(), code: "empty_array", param: "messages", message: /empty/ },
    {
      wrong: "an unknown role",
      body: chat({ role: "model", content: "Hi" }),
      code: "invalid_value",
      param: "messages[0].role",
      message: /model/
    },
    {
      wrong: "a user message without content",
      body: chat({ role: "user", content: null }),
      param: "messages.[0].content",
      message: /null/
    },
    {
      wrong: "an assistant message with neither content nor calls",
      body: chat(user, { role: "assistant" }),
      param: "messages.[1].content",
      message: /null/
    },
    {
      wrong: "an empty list of content parts",
      body: chat({ role: "user", content: [] }),
      code: "empty_array",
      param: "messages[0].content",
      message: /empty/
    },
    {
      wrong: "an empty list of calls",
      body: chat(user, { role: "assistant", content: "a", tool_calls: [] }),
      code: "empty_array",
      param: "messages[1].tool_calls",
      message: /empty/
    }
  ])

  describe("broken pairing:", () => {
    rejects("openai-chat", [
      {
        wrong: "calls at the end without results",
        body: chat(user, asks(call("a"))),
        param: "messages.[1].role",
        message: /followed by.*a$/
      },
      {
        wrong: "one result of two",
        body: chat(user, asks(call("a"), call("b")), result("a"), user),
        param: "messages.[3].role",
        message: /no answer to: b$/
      },
      {
        wrong: "a user message before the result",
        body: chat(user, asks(call("a")), user, result("a")),
        param: "messages.[2].role",
        message: /no answer to: a$/
      },
      {
        wrong: "a result without any call",
        body: chat(user, result("a")),
        param: "messages.[1].role",
        message: /response to a message before/
      },
      {
        wrong: "a result of another id",
        body: chat(user, asks(call("a")), result("b")),
        param: "messages.[2].role",
        message: /response to a message before/
      },
      {
        wrong: "a result of an earlier message",
        body: chat(user, asks(call("a")), result("a"), user, result("a")),
        param: "messages.[4].role",
        message: /response to a message before/
      },
      {
        wrong: "two results of one call",
        body: chat(user, asks(call("a")), result("a"), result("a")),
        param: "messages.[3].role",
        message: /Duplicate.*'a'/
      },
      {
        wrong: "two calls of one id",
        body: chat(user, asks(call("a"), call("a")), result("a")),
        param: "messages.[1].role",
        message: /Duplicate.*'a'/
      },
      {
        wrong: "a result without an id",
        body: chat(user, asks(call("a")), { role: "tool", content: "x" }),
        code: "missing_required_parameter",
        param: "messages[2].tool_call_id",
        message: /tool_call_id/
      },
      {
        wrong: "an id of 41 characters",
        body: chat(user, asks(call("a".repeat(41))), result("a".repeat(41))),
        code: "string_above_max_length",
        param: "messages[1].tool_calls[0].id",
        message: /41/
      }
    ])
  })

  describe("tools:", () => {
    rejects("openai-chat", [
      {
        wrong: "a dot in the name of a tool",
        body: tool("a.b"),
        code: "invalid_value",
        param: name,
        message: /pattern/
      },
      {
        wrong: "a name of 65 characters",
        body: tool("a".repeat(65)),
        code: "string_above_max_length",
        param: name,
        message: /65/
      },
      { wrong: "an empty name", body: tool(""), code: "invalid_value", param: name, message: /pattern/ },
      {
        wrong: "an illegal name in the history",
        body: chat(user, asks(call("a", "a b")), result("a")),
        code: "invalid_value",
        param: "messages[1].tool_calls[0].function.name",
        message: /pattern/
      },
      {
        wrong: "a call without a name",
        body: chat(user, asks({ id: "a", type: "function", function: { arguments: "{}" } }), result("a")),
        code: "missing_required_parameter",
        param: "messages[1].tool_calls[0].function.name",
        message: /name/
      },
      {
        wrong: "arguments that are an object",
        body: chat(user, asks(call("a", "f", {})), result("a")),
        code: "invalid_type",
        param: "messages[1].tool_calls[0].function.arguments",
        message: /string/
      },
      {
        wrong: "arguments that do not parse",
        body: chat(user, asks(call("a", "f", '{"a":')), result("a")),
        code: "invalid_value",
        param: "messages[1].tool_calls[0].function.arguments",
        message: /JSON object/
      },
      {
        wrong: "arguments that are a JSON list",
        body: chat(user, asks(call("a", "f", "[]")), result("a")),
        code: "invalid_value",
        param: "messages[1].tool_calls[0].function.arguments",
        message: /JSON object/
      },
      {
        wrong: "arguments that are a JSON string",
        body: chat(user, asks(call("a", "f", '"x"')), result("a")),
        code: "invalid_value",
        param: "messages[1].tool_calls[0].function.arguments",
        message: /JSON object/
      },
      {
        wrong: "an empty list of tools",
        body: { ...short["openai-chat"], tools: [] },
        code: "empty_array",
        param: "tools",
        message: /empty/
      },
      {
        wrong: "a schema without a type",
        body: tool("a", {}),
        code: "invalid_function_parameters",
        param: parameters,
        message: /object/
      },
      {
        wrong: "a schema whose root is a string",
        body: tool("a", { type: "string" }),
        code: "invalid_function_parameters",
        param: parameters,
        message: /got 'type: "string"'/
      },
      {
        wrong: "a strict schema that allows more properties",
        body: tool("a", { type: "object" }, true),
        code: "invalid_function_parameters",
        param: parameters,
        message: /additionalProperties/
      },
      {
        wrong: "a strict schema with an optional property",
        body: tool("a", { type: "object", properties: { b: {} }, additionalProperties: false }, true),
        code: "invalid_function_parameters",
        param: parameters,
        message: /required/
      },
      {
        wrong: "the choice of a tool that is not offered",
        body: { ...tool("a"), tool_choice: { type: "function", function: { name: "b" } } },
        param: "tool_choice",
        message: /'b'/
      },
      {
        wrong: "a choice without tools",
        body: { ...short["openai-chat"], tool_choice: "auto" },
        param: "tool_choice",
        message: /only allowed/
      }
    ])
  })
})

describe("openai-chat", () => {
  accepts("openai-chat", {
    "a conversation with two calls and their results": valid["openai-chat"],
    "results in another order than their calls": chat(user, asks(call("a"), call("b")), result("b"), result("a")),
    "an id again in a later message": chat(user, asks(call("a")), result("a"), asks(call("a")), result("a")),
    "empty text": chat({ role: "user", content: "" }),
    "a refusal without content": chat(user, { role: "assistant", refusal: "No." }, user),
    "a name of 64 characters": tool("a".repeat(64)),
    "a tool without parameters": { ...short["openai-chat"], tools: [{ type: "function", function: { name: "a" } }] },
    "the choice of a tool that is offered": {
      ...tool("a"),
      tool_choice: { type: "function", function: { name: "a" } }
    },
    "a strict schema that is closed": tool(
      "a",
      { type: "object", properties: { b: {} }, required: ["b"], additionalProperties: false },
      true
    )
  })
})
