/** What the fake responses endpoint rejects, and what it takes. */
import { describe } from "@effect/vitest"
import { headersOf } from "./servers/client.ts"
import { short, valid } from "./servers/requests.ts"
import { accepts, rejects } from "./servers/table.ts"

const user = { role: "user", content: "Hi" }
const call = (call_id: string, more: object = {}) => ({
  type: "function_call",
  call_id,
  name: "read_file",
  arguments: "{}",
  ...more
})
const output = (call_id: string) => ({ type: "function_call_output", call_id, output: "text" })
const items = (...input: ReadonlyArray<unknown>) => ({ model: "gpt-test", input })
const tool = (name: string, parameters: unknown = { type: "object" }, more: object = {}) => ({
  ...short["openai-responses"],
  tools: [{ type: "function", name, parameters, ...more }]
})

describe("openai-responses rejects", () => {
  rejects("openai-responses", [
    {
      wrong: "a missing key",
      body: short["openai-responses"],
      headers: { "content-type": "application/json" },
      status: 401,
      message: /API key/
    },
    {
      wrong: "a wrong key",
      body: short["openai-responses"],
      headers: { ...headersOf("openai-responses"), authorization: "Bearer other" },
      status: 401,
      code: "invalid_api_key",
      message: /Incorrect API key/
    },
    {
      wrong: "a model that does not exist",
      body: short["openai-responses"],
      options: { models: ["gpt-other"] },
      code: "model_not_found",
      param: "model",
      message: /gpt-test/
    },
    {
      wrong: "input over the window",
      body: { model: "m", input: "x".repeat(4000) },
      options: { window: 1000 },
      code: "context_length_exceeded",
      param: "input",
      message: /context window/
    },
    { wrong: "a body that is no JSON", body: "{", message: /JSON/ },
    {
      wrong: "a body without a model",
      body: { input: "a" },
      code: "missing_required_parameter",
      param: "model",
      message: /model/
    },
    { wrong: "no input", body: { model: "m" }, code: "missing_required_parameter", param: "input", message: /input/ },
    {
      wrong: "a previous response that does not exist",
      body: { ...short["openai-responses"], previous_response_id: "resp_9" },
      code: "previous_response_not_found",
      param: "previous_response_id",
      message: /resp_9/
    },
    {
      wrong: "an unknown role",
      body: items({ role: "tool", content: "a" }),
      code: "invalid_value",
      param: "input[0].role",
      message: /tool/
    },
    {
      wrong: "a message without content",
      body: items({ role: "user" }),
      code: "missing_required_parameter",
      param: "input[0].content",
      message: /content/
    },
    {
      wrong: "output text of the user",
      body: items({ role: "user", content: [{ type: "output_text", text: "a" }] }),
      code: "invalid_value",
      param: "input[0].content[0]",
      message: /output_text/
    },
    {
      wrong: "input text of the assistant",
      body: items(user, { role: "assistant", content: [{ type: "input_text", text: "a" }] }),
      code: "invalid_value",
      param: "input[1].content[0]",
      message: /input_text/
    },
    {
      wrong: "a reference to an item that is not stored",
      body: items({ type: "item_reference", id: "msg_9" }),
      status: 404,
      param: "input",
      message: /msg_9.*not found/
    }
  ])

  describe("broken pairing:", () => {
    rejects("openai-responses", [
      {
        wrong: "a call without output",
        body: items(user, call("a")),
        param: "input",
        message: /No tool output found for function call a\./
      },
      {
        wrong: "one output of two",
        body: items(user, call("a"), call("b"), output("a")),
        param: "input",
        message: /No tool output found for function call b\./
      },
      {
        wrong: "an output without a call",
        body: items(user, output("a")),
        param: "input",
        message: /No tool call found.*a\./
      },
      {
        wrong: "an output before its call",
        body: items(user, output("a"), call("a"), output("a")),
        param: "input",
        message: /No tool call found.*a\./
      },
      {
        wrong: "one item twice",
        body: items(user, call("a", { id: "fc_1" }), call("a", { id: "fc_1" }), output("a")),
        param: "input",
        message: /Duplicate item found with id fc_1/
      },
      {
        wrong: "a call id as the id of the item",
        body: items(user, call("a", { id: "call_1" }), output("a")),
        code: "invalid_value",
        param: "input[1].id",
        message: /begins with 'fc'/
      },
      {
        wrong: "a call id of 65 characters",
        body: items(user, call("a".repeat(65)), output("a".repeat(65))),
        code: "string_above_max_length",
        param: "input[1].call_id",
        message: /65/
      },
      {
        wrong: "an output without text",
        body: items(user, call("a"), { type: "function_call_output", call_id: "a" }),
        code: "missing_required_parameter",
        param: "input[2].output",
        message: /output/
      },
      {
        wrong: "an output without a call id",
        body: items(user, { type: "function_call_output", output: "a" }),
        code: "missing_required_parameter",
        param: "input[1].call_id",
        message: /call_id/
      }
    ])
  })

  describe("tools:", () => {
    rejects("openai-responses", [
      {
        wrong: "a dot in a name",
        body: tool("a.b"),
        code: "invalid_value",
        param: "tools[0].name",
        message: /pattern/
      },
      {
        wrong: "a name of 65 characters",
        body: tool("a".repeat(65)),
        code: "string_above_max_length",
        param: "tools[0].name",
        message: /65/
      },
      {
        wrong: "a tool in the form of chat completions",
        body: { ...short["openai-responses"], tools: [{ type: "function", function: { name: "a" } }] },
        code: "missing_required_parameter",
        param: "tools[0].name",
        message: /name/
      },
      {
        wrong: "an illegal name in the history",
        body: items(user, call("a", { name: "a b" }), output("a")),
        code: "invalid_value",
        param: "input[1].name",
        message: /pattern/
      },
      {
        wrong: "arguments that are an object",
        body: items(user, call("a", { arguments: {} }), output("a")),
        code: "invalid_type",
        param: "input[1].arguments",
        message: /string/
      },
      {
        wrong: "arguments that do not parse",
        body: items(user, call("a", { arguments: "{" }), output("a")),
        code: "invalid_value",
        param: "input[1].arguments",
        message: /JSON object/
      },
      {
        wrong: "a schema without a type",
        body: tool("a", {}),
        code: "invalid_function_parameters",
        param: "tools[0].parameters",
        message: /object/
      },
      {
        wrong: "a strict schema that allows more properties",
        body: tool("a", { type: "object" }, { strict: true }),
        code: "invalid_function_parameters",
        param: "tools[0].parameters",
        message: /additionalProperties/
      },
      {
        wrong: "the choice of a tool that is not offered",
        body: { ...tool("a"), tool_choice: { type: "function", name: "b" } },
        param: "tool_choice",
        message: /'b'/
      }
    ])
  })

  describe("reasoning:", () => {
    rejects("openai-responses", [
      {
        wrong: "reasoning that is neither stored nor sealed",
        body: items(user, { type: "reasoning", id: "rs_9", summary: [] }, call("a"), output("a")),
        status: 404,
        param: "input",
        message: /rs_9.*not found/
      },
      {
        wrong: "sealed reasoning that nobody gave",
        body: items(
          user,
          { type: "reasoning", id: "rs_9", summary: [], encrypted_content: "x" },
          call("a"),
          output("a")
        ),
        code: "invalid_encrypted_content",
        message: /rs_9/
      }
    ])
  })
})

describe("openai-responses", () => {
  accepts("openai-responses", {
    "a conversation with two calls and their outputs": valid["openai-responses"],
    "outputs in another order than their calls": items(user, call("a"), call("b"), output("b"), output("a")),
    "an output after a later message": items(user, call("a"), user, output("a")),
    "an empty list of tools": { ...short["openai-responses"], tools: [] },
    "the text of an assistant": items(user, { role: "assistant", content: [{ type: "output_text", text: "a" }] }, user),
    "the choice of a tool that is offered": { ...tool("a"), tool_choice: { type: "function", name: "a" } }
  })
})
