/**
 * What the responses endpoint of OpenAI rejects.
 *
 * Known and left out: outputs in another order than their calls and later than the next item (both are taken), a
 * repeated `call_id` (not sure), items that come back without their `id` and their reasoning (taken, the reasoning is
 * lost in silence). As in OpenAiChatRules, arguments that hold no JSON object are what its imitators reject. That an
 * unknown model is a 400 here and a 404 for chat completions is what clients report.
 * Public documentation: "Create a model response", "Reasoning models" (keeping reasoning items in context, encrypted
 * reasoning items), "Conversation state", "Error codes".
 */
import * as Memory from "./OpenAiResponsesMemory.ts"
import * as OpenAi from "./OpenAiRules.ts"
import * as Wire from "./Wire.ts"

const roles = ["user", "assistant", "system", "developer"]
const prefixes = new Map([
  ["message", "msg"],
  ["reasoning", "rs"],
  ["function_call", "fc"]
])

export function* problems(
  request: Wire.ModelRequest,
  options: Wire.Options,
  memory: Memory.Memory
): Generator<Wire.Rejection> {
  yield* OpenAi.key(request, options)
  if (request.method !== "POST") yield { ...OpenAi.invalid("Only POST is allowed here."), status: 405 }
  const body = Wire.object(request.body)
  if (body !== request.body) yield OpenAi.invalid("The body of the request is not a JSON object.")
  yield* model(body, options)
  yield* tools(body)
  yield* input(body, memory)
  const size = Wire.tokens(body["instructions"], body["tools"], Memory.conversation(body, memory))
  if (size > options.window)
    yield OpenAi.invalid("Your input exceeds the context window of this model.", "input", "context_length_exceeded")
}

function* model(body: Wire.JsonObject, options: Wire.Options): Generator<Wire.Rejection> {
  const name = Wire.string(body["model"])
  if (name === undefined) yield OpenAi.missing("model")
  else if (options.models !== undefined && !options.models.includes(name))
    yield OpenAi.invalid(`The requested model '${name}' does not exist.`, "model", "model_not_found")
}

function* tools(body: Wire.JsonObject): Generator<Wire.Rejection> {
  const offered = Wire.objects(body["tools"])
  for (const [index, tool] of offered.entries()) {
    if (tool["type"] === undefined) yield OpenAi.missing(`tools[${index}].type`)
    if (tool["type"] === "function") yield* OpenAi.functionTool(tool, `tools[${index}]`)
  }
  const choice = Wire.object(body["tool_choice"])
  if (choice["type"] === "function" && !offered.some((tool) => tool["name"] === choice["name"]))
    yield OpenAi.invalid(`Tool choice '${String(choice["name"])}' not found in 'tools' parameter.`, "tool_choice")
}

function* input(body: Wire.JsonObject, memory: Memory.Memory): Generator<Wire.Rejection> {
  const previous = body["previous_response_id"]
  if (typeof previous === "string" && !memory.responses.has(previous))
    yield OpenAi.invalid(
      `Previous response with id '${previous}' not found.`,
      "previous_response_id",
      "previous_response_not_found"
    )
  if (body["input"] === undefined && previous === undefined) yield OpenAi.missing("input")
  const skip = Memory.before(body, memory).length
  const all = Memory.conversation(body, memory)
  for (const [place, item] of all.entries())
    if (place >= skip) yield* itemOf(item, `input[${place - skip}]`, { memory, stored: body["store"] !== false })
  const ids = all.flatMap((item) => Wire.string(item["id"]) ?? [])
  const twice = Wire.duplicate(ids)
  if (twice !== undefined)
    yield OpenAi.invalid(`Duplicate item found with id ${twice}. Remove duplicate items from your input.`, "input")
  yield* reasoning(all, memory)
  yield* pairing(all)
}

interface Held {
  readonly memory: Memory.Memory
  readonly stored: boolean
}

const typeOf = (item: Wire.JsonObject) => item["type"] ?? (item["role"] === undefined ? undefined : "message")

function* itemOf(item: Wire.JsonObject, param: string, held: Held): Generator<Wire.Rejection> {
  const type = typeOf(item)
  const id = Wire.string(item["id"])
  if (type === undefined) yield OpenAi.missing(`${param}.type`)
  if (type === "item_reference") yield notFound(id, true)
  const prefix = typeof type === "string" ? prefixes.get(type) : undefined
  if (id !== undefined && prefix !== undefined && !id.startsWith(prefix))
    yield OpenAi.invalid(
      `Invalid '${param}.id': '${id}'. Expected an ID that begins with '${prefix}'.`,
      `${param}.id`,
      "invalid_value"
    )
  if (type === "message") yield* message(item, param)
  if (type === "reasoning") yield* encrypted(item, held)
  if (type === "function_call") {
    yield* callId(item, param)
    yield* OpenAi.name(item["name"], `${param}.name`)
    yield* OpenAi.argumentText(item["arguments"], `${param}.arguments`)
  }
  if (type === "function_call_output") {
    yield* callId(item, param)
    if (item["output"] === undefined || item["output"] === null) yield OpenAi.missing(`${param}.output`)
  }
}

const notFound = (id: string | undefined, stored: boolean): Wire.Rejection => ({
  ...OpenAi.invalid(
    `Item with id '${id}' not found.` + (stored ? "" : " Items are not persisted when `store` is set to false."),
    "input"
  ),
  status: 404
})

function* callId(item: Wire.JsonObject, param: string): Generator<Wire.Rejection> {
  const id = Wire.string(item["call_id"])
  if (id === undefined) yield OpenAi.missing(`${param}.call_id`)
  else yield* OpenAi.limited(id, `${param}.call_id`, 64)
}

function* message(item: Wire.JsonObject, param: string): Generator<Wire.Rejection> {
  const role = String(item["role"])
  if (!roles.includes(role)) yield OpenAi.invalid(`Invalid value: '${role}'.`, `${param}.role`, "invalid_value")
  if (item["content"] === undefined || item["content"] === null) yield OpenAi.missing(`${param}.content`)
  const allowed = role === "assistant" ? ["output_text", "refusal"] : ["input_text", "input_image", "input_file"]
  for (const [place, part] of Wire.objects(item["content"]).entries())
    if (!allowed.includes(String(part["type"])))
      yield OpenAi.invalid(`Invalid value: '${String(part["type"])}'.`, `${param}.content[${place}]`, "invalid_value")
}

/** Without its encrypted content an item must be stored; with it, it must be what was given out. */
function* encrypted(item: Wire.JsonObject, held: Held): Generator<Wire.Rejection> {
  const id = Wire.string(item["id"])
  const content = item["encrypted_content"]
  if (content === undefined || content === null) {
    if (id === undefined || !held.memory.items.has(id)) yield notFound(id, held.stored)
  } else if (id !== undefined && !held.memory.encrypted.valid(id, content))
    yield OpenAi.invalid(
      `The encrypted content for item ${id} could not be verified.`,
      undefined,
      "invalid_encrypted_content"
    )
}

/** A reasoning item and what it led to are one unit. */
function* reasoning(all: ReadonlyArray<Wire.JsonObject>, memory: Memory.Memory): Generator<Wire.Rejection> {
  for (const [place, item] of all.entries()) {
    const id = Wire.string(item["id"])
    const needs = id === undefined ? undefined : memory.reasoningOf.get(id)
    if (needs !== undefined && !all.slice(0, place).some((other) => other["id"] === needs))
      yield OpenAi.invalid(
        `Item '${id}' of type '${String(typeOf(item))}' was provided without its required 'reasoning' item: '${needs}'.`,
        "input"
      )
    if (typeOf(item) !== "reasoning") continue
    const next = all.slice(place + 1).find((other) => typeOf(other) !== "reasoning")
    const follows =
      next !== undefined &&
      typeOf(next) !== "function_call_output" &&
      (typeOf(next) !== "message" || next["role"] === "assistant")
    if (!follows)
      yield OpenAi.invalid(
        `Item '${id}' of type 'reasoning' was provided without its required following item.`,
        "input"
      )
  }
}

function* pairing(all: ReadonlyArray<Wire.JsonObject>): Generator<Wire.Rejection> {
  for (const [place, item] of all.entries()) {
    const id = item["call_id"]
    const has = (type: string, items: ReadonlyArray<Wire.JsonObject>) =>
      items.some((other) => typeOf(other) === type && other["call_id"] === id)
    if (typeOf(item) === "function_call" && !has("function_call_output", all.slice(place + 1)))
      yield OpenAi.invalid(`No tool output found for function call ${String(id)}.`, "input")
    if (typeOf(item) === "function_call_output" && !has("function_call", all.slice(0, place)))
      yield OpenAi.invalid(`No tool call found for function call output with call_id ${String(id)}.`, "input")
  }
}
