/**
 * What the messages endpoint of Anthropic rejects.
 *
 * Known and left out: tool names of the history against the tools' pattern (their length alone is checked), input plus
 * `max_tokens` over the window (newer models take it), `system` as a role inside `messages` (some models take it), text
 * after a tool use, and server tools.
 * Public documentation: "Create a Message", "Handle tool calls", "Define tools", "Prompt caching", "Errors".
 */
import * as Thinking from "./AnthropicThinking.ts"
import * as Wire from "./Wire.ts"

const invalid = (message: string): Wire.Rejection => ({ status: 400, type: "invalid_request_error", message })

export function* problems(
  request: Wire.ModelRequest,
  options: Wire.Options,
  memory: Thinking.Memory
): Generator<Wire.Rejection> {
  yield* key(request, options)
  if (request.method !== "POST") yield { ...invalid("Method Not Allowed"), status: 405 }
  if (request.headers["anthropic-version"] === undefined) yield invalid("anthropic-version: header is required")
  const body = Wire.object(request.body)
  if (body !== request.body) yield invalid("The request body is not a JSON object")
  const model = Wire.string(body["model"])
  if (model === undefined) yield invalid("model: Field required")
  else if (options.models !== undefined && !options.models.includes(model))
    yield { status: 404, type: "not_found_error", message: `model: ${model}` }
  yield* maximum(body["max_tokens"])
  yield* tools(body)
  yield* choice(body)
  const turns = merged(body["messages"])
  yield* shapes(body)
  yield* pairing(turns)
  yield* Thinking.problems(body, turns, memory)
  const size = Wire.tokens(body["system"], body["messages"], body["tools"])
  if (size > options.window) yield invalid(`prompt is too long: ${size} tokens > ${options.window} maximum`)
}

/** "Errors", authentication: the key as `x-api-key`, or as a bearer token as Anthropic's own client sends it. */
function* key({ headers }: Wire.ModelRequest, options: Wire.Options): Generator<Wire.Rejection> {
  const no = { status: 401, type: "authentication_error" }
  const bearer = headers["authorization"]
  if (headers["x-api-key"] === undefined && bearer === undefined)
    yield { ...no, message: "x-api-key header is required" }
  if (headers["x-api-key"] !== options.apiKey && bearer !== `Bearer ${options.apiKey}`)
    yield { ...no, message: "invalid x-api-key" }
}

function* maximum(given: unknown): Generator<Wire.Rejection> {
  if (given === undefined) yield invalid("max_tokens: Field required")
  else if (typeof given !== "number" || !Number.isInteger(given) || given < 1)
    yield invalid("max_tokens: Input should be an integer of at least 1")
}

function* tools(body: Wire.JsonObject): Generator<Wire.Rejection> {
  const own = [...Wire.objects(body["tools"]).entries()].filter(
    ([, tool]) => tool["type"] === undefined || tool["type"] === "custom"
  )
  for (const [index, tool] of own) {
    const at = `tools.${index}.custom`
    const name = Wire.string(tool["name"])
    if (name === undefined) yield invalid(`${at}.name: Field required`)
    else if (!/^[a-zA-Z0-9_-]{1,128}$/.test(name))
      yield invalid(`${at}.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'`)
    if (tool["input_schema"] === undefined) yield invalid(`${at}.input_schema: Field required`)
    const type = Wire.object(tool["input_schema"])["type"]
    if (type === undefined) yield invalid(`${at}.input_schema.type: Field required`)
    if (type !== "object") yield invalid(`${at}.input_schema.type: Input should be 'object'`)
  }
  if (Wire.duplicate(own.map(([, tool]) => String(tool["name"]))) !== undefined)
    yield invalid("tools: Tool names must be unique.")
}

function* choice(body: Wire.JsonObject): Generator<Wire.Rejection> {
  if (body["tool_choice"] === undefined) return
  const given = Wire.object(body["tool_choice"])
  const offered = Wire.objects(body["tools"])
  if (offered.length === 0) yield invalid("tool_choice may only be specified while providing tools")
  if (given["type"] === "tool" && !offered.some((tool) => tool["name"] === given["name"]))
    yield invalid(`Tool '${String(given["name"])}' not found in provided tools`)
}

const blocksOf = (content: unknown): ReadonlyArray<Wire.JsonObject> =>
  typeof content === "string" ? [{ type: "text", text: content }] : Wire.objects(content)

/** Messages of one role in a row are one turn. */
const merged = (messages: unknown): ReadonlyArray<Thinking.Turn> =>
  Wire.objects(messages).reduce<ReadonlyArray<Thinking.Turn>>((turns, message, index) => {
    const last = turns.at(-1)
    const blocks = blocksOf(message["content"])
    return last !== undefined && last.role === message["role"]
      ? [...turns.slice(0, -1), { ...last, blocks: [...last.blocks, ...blocks] }]
      : [...turns, { role: String(message["role"]), index, blocks }]
  }, [])

function* shapes(body: Wire.JsonObject): Generator<Wire.Rejection> {
  if (!Array.isArray(body["messages"])) yield invalid("messages: Field required")
  const all = Wire.objects(body["messages"])
  if (all.length === 0) yield invalid("messages: at least one message is required")
  for (const [index, message] of all.entries()) {
    if (!["user", "assistant", "system"].includes(String(message["role"])))
      yield invalid(`messages.${index}.role: Input should be 'user' or 'assistant'`)
    if (message["content"] === undefined || message["content"] === null)
      yield invalid(`messages.${index}.content: Field required`)
    const last = index === all.length - 1 && message["role"] === "assistant"
    if (!last && (message["content"] === "" || blocksOf(message["content"]).length === 0))
      yield invalid(
        `messages.${index}: all messages must have non-empty content except for the optional final assistant message`
      )
    if (Array.isArray(message["content"])) yield* texts(message["content"], "messages")
    for (const [place, block] of blocksOf(message["content"]).entries())
      yield* toolBlock(block, `messages.${index}.content.${place}`)
  }
  if (all[0]?.["role"] === "assistant") yield invalid('messages: first message must use the "user" role')
  if (Array.isArray(body["system"])) yield* texts(body["system"], "system")
  yield* ending(all.at(-1))
  yield* cached(body)
}

function* texts(blocks: unknown, where: string): Generator<Wire.Rejection> {
  for (const block of Wire.objects(blocks)) {
    if (block["type"] === "text" && block["text"] === "")
      yield invalid(`${where}: text content blocks must be non-empty`)
    if (block["type"] === "text" && String(block["text"]).trim() === "")
      yield invalid(`${where}: text content blocks must contain non-whitespace text`)
    if (block["type"] === "tool_result" && Array.isArray(block["content"])) yield* texts(block["content"], where)
  }
}

function* toolBlock(block: Wire.JsonObject, at: string): Generator<Wire.Rejection> {
  const pattern = (field: string, value: unknown) =>
    typeof value !== "string"
      ? [invalid(`${at}.${field}: Field required`)]
      : /^[a-zA-Z0-9_-]+$/.test(value)
        ? []
        : [invalid(`${at}.${field}: String should match pattern '^[a-zA-Z0-9_-]+$'`)]
  if (block["type"] === "tool_use") {
    yield* pattern("tool_use.id", block["id"])
    const name = Wire.string(block["name"])
    if (name === undefined) yield invalid(`${at}.tool_use.name: Field required`)
    else if (name.length < 1 || name.length > 200)
      yield invalid(`${at}.tool_use.name: String should have 1 to 200 characters`)
    if (block["input"] === undefined) yield invalid(`${at}.tool_use.input: Field required`)
    if (Wire.object(block["input"]) !== block["input"])
      yield invalid(`${at}.tool_use.input: Input should be a valid dictionary`)
  }
  if (block["type"] === "tool_result") {
    yield* pattern("tool_result.tool_use_id", block["tool_use_id"])
    const content = block["content"]
    if (
      block["is_error"] === true &&
      (content === undefined || content === "" || (Wire.list(content).length === 0 && typeof content !== "string"))
    )
      yield invalid(`${at}.tool_result: content cannot be empty if \`is_error\` is true`)
  }
}

function* ending(message: Wire.JsonObject | undefined): Generator<Wire.Rejection> {
  if (message === undefined || message["role"] !== "assistant") return
  const last = blocksOf(message["content"]).at(-1)
  if (last?.["type"] === "text" && /\s$/.test(String(last["text"])))
    yield invalid("messages: final assistant content cannot end with trailing whitespace")
}

/** "Prompt caching": four breakpoints at most. */
function* cached(body: Wire.JsonObject): Generator<Wire.Rejection> {
  const blocks = [
    ...Wire.objects(body["tools"]),
    ...Wire.objects(body["system"]),
    ...Wire.objects(body["messages"]).flatMap((message) => Wire.objects(message["content"]))
  ]
  const count = blocks.filter((block) => block["cache_control"] !== undefined && block["cache_control"] !== null).length
  if (count > 4) yield invalid(`A maximum of 4 blocks with cache_control may be provided. Found ${count}.`)
}

/** Tool uses are followed by their results, which come first in the user turn right after; an id is used once. */
function* pairing(turns: ReadonlyArray<Thinking.Turn>): Generator<Wire.Rejection> {
  const seen = new Set<unknown>()
  for (const [place, turn] of turns.entries()) {
    const ids = (block: string, field: string, blocks: ReadonlyArray<Wire.JsonObject>) =>
      blocks.filter((one) => one["type"] === block).map((one) => String(one[field]))
    for (const [index, block] of turn.blocks.entries())
      if (block["type"] === "tool_use") {
        if (seen.has(block["id"]))
          yield invalid(`messages.${turn.index}.content.${index}: \`tool_use\` ids must be unique`)
        seen.add(block["id"])
      }
    const uses = ids("tool_use", "id", turn.blocks)
    const next = turns[place + 1]?.blocks ?? []
    const other = next.findIndex((block) => block["type"] !== "tool_result")
    const first = ids("tool_result", "tool_use_id", other === -1 ? next : next.slice(0, other))
    const left = uses.filter((id) => !first.includes(id))
    if (left.length > 0)
      yield invalid(
        `messages.${turn.index}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${left.join(", ")}.`
      )
    const before = ids("tool_use", "id", turns[place - 1]?.blocks ?? [])
    const results = ids("tool_result", "tool_use_id", turn.blocks)
    const orphan = results.find((id) => !before.includes(id))
    if (orphan !== undefined)
      yield invalid(
        `messages.${turn.index}.content: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${orphan}.`
      )
    const twice = Wire.duplicate(results)
    if (twice !== undefined)
      yield invalid(
        `messages.${turn.index}.content: each tool_use must have a single result. Found multiple \`tool_result\` blocks with id: ${twice}`
      )
  }
}
