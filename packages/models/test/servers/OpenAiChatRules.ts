/**
 * What the chat completions endpoint of OpenAI rejects.
 *
 * Known and left out, since the endpoint takes it: results of one message in another order, ids that repeat in a later
 * message, empty text. Two rules are stricter than what is known of OpenAI and as strict as its imitators (vLLM, SGLang,
 * Kimi): arguments hold a JSON object, and no two calls of one message have one id.
 * Public documentation: "Create chat completion", "Function calling", "Error codes".
 */
import * as OpenAi from "./OpenAiRules.ts"
import * as Wire from "./Wire.ts"

const roles = ["developer", "system", "user", "assistant", "tool"]

export function* problems(request: Wire.ModelRequest, options: Wire.Options): Generator<Wire.Rejection> {
  yield* OpenAi.key(request, options)
  if (request.method !== "POST") yield { ...OpenAi.invalid("Only POST is allowed here."), status: 405 }
  const body = Wire.object(request.body)
  if (body !== request.body) yield OpenAi.invalid("The body of the request is not a JSON object.")
  yield* model(body, options)
  yield* tools(body)
  yield* choice(body)
  yield* messages(body["messages"])
  const size = Wire.tokens(body["messages"], body["tools"])
  if (size > options.window)
    yield OpenAi.invalid(
      `This model's maximum context length is ${options.window} tokens, the messages have ${size} tokens.`,
      "messages",
      "context_length_exceeded"
    )
}

function* model(body: Wire.JsonObject, options: Wire.Options): Generator<Wire.Rejection> {
  const name = Wire.string(body["model"])
  if (name === undefined) yield OpenAi.invalid("A model parameter is needed.")
  else if (options.models !== undefined && !options.models.includes(name))
    yield { ...OpenAi.invalid(`The model '${name}' does not exist.`, undefined, "model_not_found"), status: 404 }
}

function* tools(body: Wire.JsonObject): Generator<Wire.Rejection> {
  if (body["tools"] === undefined) return
  if (Wire.list(body["tools"]).length === 0)
    yield OpenAi.invalid("Invalid 'tools': empty array.", "tools", "empty_array")
  for (const [index, tool] of Wire.objects(body["tools"]).entries()) {
    if (tool["type"] === undefined) yield OpenAi.missing(`tools[${index}].type`)
    if (tool["type"] !== "function") continue
    if (tool["function"] === undefined) yield OpenAi.missing(`tools[${index}].function`)
    yield* OpenAi.functionTool(Wire.object(tool["function"]), `tools[${index}].function`)
  }
}

function* choice(body: Wire.JsonObject): Generator<Wire.Rejection> {
  const given = body["tool_choice"]
  if (given === undefined) return
  if (body["tools"] === undefined)
    yield OpenAi.invalid("'tool_choice' is only allowed when 'tools' are specified.", "tool_choice")
  const named = Wire.object(Wire.object(given)["function"])["name"]
  const offered = Wire.objects(body["tools"]).map((tool) => Wire.object(tool["function"])["name"])
  if (Wire.object(given)["type"] === "function" && !offered.includes(named))
    yield OpenAi.invalid(`'tool_choice' names the function '${String(named)}', which 'tools' lacks.`, "tool_choice")
}

function* messages(given: unknown): Generator<Wire.Rejection> {
  if (!Array.isArray(given)) yield OpenAi.missing("messages")
  const all = Wire.objects(given)
  if (all.length === 0) yield OpenAi.invalid("Invalid 'messages': empty array.", "messages", "empty_array")
  for (const [index, message] of all.entries()) {
    const role = Wire.string(message["role"])
    if (role === undefined) yield OpenAi.missing(`messages[${index}].role`)
    else if (!roles.includes(role))
      yield OpenAi.invalid(`Invalid value: '${role}'.`, `messages[${index}].role`, "invalid_value")
    yield* content(message, index)
    yield* calls(message, index)
  }
  yield* pairing(all)
}

/** Only an assistant message with calls (or a refusal) may lack content. */
function* content(message: Wire.JsonObject, index: number): Generator<Wire.Rejection> {
  const given = message["content"]
  const silent =
    message["role"] === "assistant" &&
    (message["tool_calls"] !== undefined || typeof message["refusal"] === "string" || message["audio"] !== undefined)
  if ((given === undefined || given === null) && !silent)
    yield OpenAi.invalid("Invalid value for 'content': expected a string, got null.", `messages.[${index}].content`)
  if (Array.isArray(given) && given.length === 0)
    yield OpenAi.invalid("Invalid content: empty array.", `messages[${index}].content`, "empty_array")
}

function* calls(message: Wire.JsonObject, index: number): Generator<Wire.Rejection> {
  const given = message["tool_calls"]
  if (given === undefined || given === null) return
  const param = `messages[${index}].tool_calls`
  if (Wire.list(given).length === 0) yield OpenAi.invalid(`Invalid '${param}': empty array.`, param, "empty_array")
  for (const [place, call] of Wire.objects(given).entries()) {
    const id = Wire.string(call["id"])
    if (id === undefined) yield OpenAi.missing(`${param}[${place}].id`)
    else yield* OpenAi.limited(id, `${param}[${place}].id`, 40)
    if (call["type"] === undefined) yield OpenAi.missing(`${param}[${place}].type`)
    if (call["type"] !== "function") continue
    const called = Wire.object(call["function"])
    yield* OpenAi.name(called["name"], `${param}[${place}].function.name`)
    yield* OpenAi.argumentText(called["arguments"], `${param}[${place}].function.arguments`)
  }
}

/** Calls are followed by exactly their results, one each, before anything else. */
function* pairing(all: ReadonlyArray<Wire.JsonObject>): Generator<Wire.Rejection> {
  let open: ReadonlyArray<string> = []
  let answered: ReadonlyArray<string> = []
  for (const [index, message] of all.entries()) {
    const param = `messages.[${index}].role`
    if (message["role"] === "tool") {
      const id = Wire.string(message["tool_call_id"])
      if (id === undefined) yield OpenAi.missing(`messages[${index}].tool_call_id`)
      else if (answered.includes(id))
        yield OpenAi.invalid(`Invalid parameter: Duplicate value for 'tool_call_id' of '${id}'.`, param)
      else if (!open.includes(id))
        yield OpenAi.invalid(
          "Invalid parameter: messages with role 'tool' must be a response to a message before with 'tool_calls'.",
          param
        )
      else answered = [...answered, id]
      continue
    }
    yield* unanswered(open, answered, param)
    open = Wire.objects(message["tool_calls"]).flatMap((call) => Wire.string(call["id"]) ?? [])
    answered = []
    const twice = Wire.duplicate(open)
    if (twice !== undefined)
      yield OpenAi.invalid(`Invalid parameter: Duplicate value for 'tool_call_id' of '${twice}'.`, param)
  }
  yield* unanswered(open, answered, `messages.[${all.length - 1}].role`)
}

function* unanswered(
  open: ReadonlyArray<string>,
  answered: ReadonlyArray<string>,
  param: string
): Generator<Wire.Rejection> {
  const left = open.filter((id) => !answered.includes(id))
  if (left.length > 0)
    yield OpenAi.invalid(
      `An assistant message with 'tool_calls' must be followed by its tool messages; no answer to: ${left.join(", ")}`,
      param
    )
}
