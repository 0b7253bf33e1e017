/**
 * What the generateContent endpoint of the Gemini API rejects.
 *
 * Contents need not alternate, since the real API takes several of one role in a row. The real server cannot know which
 * signature it once sent with a call; this one does, and so finds one that was dropped or changed, also where the real
 * API takes a placeholder (`skip_thought_signature_validator`). As there, only the current turn is looked at: what comes
 * after the last content of the user that is no function response.
 * Known and left out: the dialect of `parameters` (the packages send `parametersJsonSchema`), files, Google's own tools.
 * Public documentation: "Generating content", "Function calling", "Thought signatures", "Troubleshooting".
 */
import type * as Signatures from "./Signatures.ts"
import * as Wire from "./Wire.ts"

export interface Memory {
  readonly signatures: Signatures.Signatures
  /** The signature that went out with a call, by the id of the call. */
  readonly signed: Map<string, string>
}

export const path = /^\/v1beta\/models\/([^/:]+):(generateContent|streamGenerateContent)$/

const invalid = (message: string): Wire.Rejection => ({ status: 400, type: "INVALID_ARGUMENT", message })

export function* problems(
  request: Wire.ModelRequest,
  options: Wire.Options,
  memory: Memory
): Generator<Wire.Rejection> {
  yield* key(request, options)
  if (request.method !== "POST") yield { status: 405, type: "UNIMPLEMENTED", message: "Method Not Allowed" }
  const body = Wire.object(request.body)
  if (body !== request.body) yield invalid("Invalid JSON payload received.")
  const [, model = ""] = path.exec(request.path.split("?")[0] ?? "") ?? []
  if (options.models !== undefined && !options.models.includes(model))
    yield {
      status: 404,
      type: "NOT_FOUND",
      message: `models/${model} is not found for API version v1beta, or is not supported for generateContent.`
    }
  yield* tools(body)
  yield* choice(body)
  yield* shapes(body)
  const contents = Wire.objects(body["contents"]).map(contentOf)
  yield* pairing(contents)
  yield* signatures(contents, memory)
  const size = Wire.tokens(body["systemInstruction"], body["contents"], body["tools"])
  if (size > options.window)
    yield invalid(`The input token count (${size}) exceeds the maximum number of tokens allowed (${options.window}).`)
}

/** "Using Gemini API keys": a wrong key is 400, as the real API has it; none at all is 403. */
function* key({ headers }: Wire.ModelRequest, options: Wire.Options): Generator<Wire.Rejection> {
  const given = headers["x-goog-api-key"]
  if (given === undefined)
    yield {
      status: 403,
      type: "PERMISSION_DENIED",
      message: "Method doesn't allow unregistered callers (callers without established identity)."
    }
  if (given !== options.apiKey) yield invalid("API key not valid. Please pass a valid API key.")
}

const declarations = (body: Wire.JsonObject) =>
  Wire.objects(body["tools"]).flatMap((tool) => Wire.objects(tool["functionDeclarations"]))

function* tools(body: Wire.JsonObject): Generator<Wire.Rejection> {
  const declared = declarations(body)
  for (const [index, { name, parametersJsonSchema: schema }] of declared.entries()) {
    const at = `GenerateContentRequest.tools[0].function_declarations[${index}]`
    if (!/^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$/.test(String(name ?? "")))
      yield invalid(
        `* ${at}.name: Invalid function name. Must start with a letter or an underscore. Must be alphameric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 64.`
      )
    if (schema !== undefined && Wire.object(schema)["type"] !== "object")
      yield invalid(`* ${at}.parameters_json_schema: the root must be of the type object`)
  }
  const twice = Wire.duplicate(declared.map(({ name }) => String(name)))
  if (twice !== undefined) yield invalid(`Duplicate function declaration found: ${twice}`)
}

function* choice(body: Wire.JsonObject): Generator<Wire.Rejection> {
  const { allowedFunctionNames, mode } = Wire.object(Wire.object(body["toolConfig"])["functionCallingConfig"])
  if (mode === undefined) return
  const names = declarations(body).map(({ name }) => name)
  if (names.length === 0) yield invalid("Function calling config is set without function_declarations.")
  if (allowedFunctionNames === undefined) return
  if (mode !== "ANY" && mode !== "VALIDATED")
    yield invalid("Function calling mode must be ANY or VALIDATED when allowed_function_names is set.")
  const unknown = Wire.list(allowedFunctionNames).find((name) => !names.includes(name))
  if (unknown !== undefined) yield invalid(`allowed_function_names holds ${String(unknown)}, which is not declared.`)
}

function* shapes(body: Wire.JsonObject): Generator<Wire.Rejection> {
  const contents = Wire.objects(body["contents"])
  if (contents.length === 0) yield invalid("* GenerateContentRequest.contents: contents is not specified")
  for (const [index, content] of contents.entries()) {
    if (!["user", "model"].includes(String(content["role"]))) yield invalid("Please use a valid role: user, model.")
    yield* parts(content, `GenerateContentRequest.contents[${index}]`)
  }
  if (body["systemInstruction"] !== undefined)
    yield* parts(Wire.object(body["systemInstruction"]), "GenerateContentRequest.system_instruction")
}

function* parts(content: Wire.JsonObject, at: string): Generator<Wire.Rejection> {
  const all = Wire.objects(content["parts"])
  if (all.length === 0) yield invalid(`* ${at}.parts: contents.parts must not be empty.`)
  for (const [index, part] of all.entries()) {
    const empty = part["text"] === undefined || (part["text"] === "" && part["thoughtSignature"] === undefined)
    const other = ["functionCall", "functionResponse", "inlineData", "fileData"].some((kind) => kind in part)
    if (empty && !other)
      yield invalid(`* ${at}.parts[${index}].data: required oneof field 'data' must have one initialized field`)
    for (const [kind, value, field] of [
      ["function_call", part["functionCall"], "args"],
      ["function_response", part["functionResponse"], "response"]
    ] as const) {
      if (value === undefined) continue
      const { name, [field]: struct } = Wire.object(value)
      if (name === undefined || name === "")
        yield invalid(`* ${at}.parts[${index}].${kind}.name: Name cannot be empty.`)
      if (struct !== undefined && Wire.object(struct) !== struct)
        yield invalid(`Invalid value at '${at}.parts[${index}].${kind}.${field}' (google.protobuf.Struct)`)
      if (kind === "function_response" && struct === undefined)
        yield invalid(`* ${at}.parts[${index}].${kind}.response: Response cannot be empty.`)
    }
  }
}

interface Content {
  readonly role: string
  readonly parts: ReadonlyArray<Wire.JsonObject>
  readonly calls: ReadonlyArray<Wire.JsonObject>
  readonly responses: ReadonlyArray<Wire.JsonObject>
}

const contentOf = (content: Wire.JsonObject): Content => {
  const parts = Wire.objects(content["parts"])
  const of = (kind: string) => parts.filter((part) => kind in part).map((part) => Wire.object(part[kind]))
  return { role: String(content["role"]), parts, calls: of("functionCall"), responses: of("functionResponse") }
}

/** Calls follow the user or responses, and are followed at once by one response each, of the same id and name. */
function* pairing(contents: ReadonlyArray<Content>): Generator<Wire.Rejection> {
  for (const [index, { calls, responses, role }] of contents.entries()) {
    const [before, after] = [contents[index - 1], contents[index + 1]]
    if (calls.length > 0 && (role !== "model" || before?.role !== "user"))
      yield invalid(
        "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
      )
    if (responses.length > 0 && (role !== "user" || (before?.calls ?? []).length === 0))
      yield invalid("Please ensure that function response turn comes immediately after a function call turn.")
    if (calls.length === 0) continue
    const given = after?.responses ?? []
    if (given.length !== calls.length)
      yield invalid(
        "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn."
      )
    const named = ({ id, name }: Wire.JsonObject) => `${String(name)} ${String(id)}`
    const wanted = calls.map(named)
    if (Wire.duplicate(calls.map(({ id }) => String(id ?? Symbol()))) !== undefined)
      yield invalid("Please ensure that the ids of the function calls of one turn are unique.")
    const odd = given.map(named).find((one) => !wanted.includes(one))
    if (odd !== undefined) yield invalid(`The function response ${odd} matches no function call of the turn before it.`)
  }
}

/** "Thought signatures": each step of the current turn begins with the signed call that the model gave. */
function* signatures(contents: ReadonlyArray<Content>, memory: Memory): Generator<Wire.Rejection> {
  for (const { parts } of contents)
    for (const { thoughtSignature: given } of parts)
      if (given !== undefined && !memory.signatures.issued(given)) yield invalid("Thought signature is not valid.")
  const start = contents.findLastIndex(({ responses, role }) => role === "user" && responses.length === 0)
  for (const [place, { parts }] of contents.entries()) {
    const first = parts.find((part) => "functionCall" in part)
    const { id, name } = Wire.object(first?.["functionCall"])
    const signature = memory.signed.get(String(id))
    if (place > start && signature !== undefined && first?.["thoughtSignature"] !== signature)
      yield invalid(
        `Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly. Additional data, function call \`default_api:${String(name)}\`, position ${place + 1}.`
      )
  }
}
