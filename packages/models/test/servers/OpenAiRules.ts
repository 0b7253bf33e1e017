/** What both OpenAI endpoints reject in the same way: keys, models, tools and the choice among them. */
import * as Wire from "./Wire.ts"

export const invalid = (message: string, param?: string, code?: string): Wire.Rejection => ({
  status: 400,
  message,
  type: "invalid_request_error",
  ...(param === undefined ? {} : { param }),
  ...(code === undefined ? {} : { code })
})

export const missing = (param: string) =>
  invalid(`Missing required parameter: '${param}'.`, param, "missing_required_parameter")

export const errorBody = ({ code, message, param, type }: Wire.Rejection) => ({
  error: { message, type, param: param ?? null, code: code ?? null }
})

/** Public documentation: "Error codes", API errors. */
export const errorFor = (status: number): Wire.Rejection => {
  const of = (message: string, type: string, code?: string): Wire.Rejection => ({
    status,
    message,
    type,
    ...(code === undefined ? {} : { code })
  })
  if (status === 401) return of("Incorrect API key provided.", "invalid_request_error", "invalid_api_key")
  if (status === 429) return of("Rate limit reached.", "requests", "rate_limit_exceeded")
  if (status === 503) return of("The servers are overloaded.", "service_unavailable_error", "server_is_overloaded")
  if (status >= 500) return of("The server had an error.", "server_error")
  return of(`The request failed with status ${status}.`, "invalid_request_error")
}

/** "Authentication": a bearer token. */
export function* key(request: Wire.ModelRequest, options: Wire.Options): Generator<Wire.Rejection> {
  const given = request.headers["authorization"]
  const no = { status: 401, type: "invalid_request_error" }
  if (typeof given !== "string") yield { ...no, message: "You didn't provide an API key." }
  else if (given !== `Bearer ${options.apiKey}`)
    yield { ...no, message: "Incorrect API key provided.", code: "invalid_api_key" }
}

/** "Function calling": names are letters, digits, `_` and `-`, 64 at most. */
export function* name(value: unknown, param: string): Generator<Wire.Rejection> {
  const text = Wire.string(value)
  if (text === undefined) yield missing(param)
  else yield* limited(text, param, 64)
  if (text !== undefined && !/^[a-zA-Z0-9_-]+$/.test(text))
    yield invalid(`Invalid '${param}': string does not match pattern '^[a-zA-Z0-9_-]+$'.`, param, "invalid_value")
}

export function* limited(text: string, param: string, maximum: number): Generator<Wire.Rejection> {
  if (text.length > maximum)
    yield invalid(
      `Invalid '${param}': string too long, ${text.length} instead of at most ${maximum}.`,
      param,
      "string_above_max_length"
    )
}

/** OpenAI itself says that arguments are a string; that it holds a JSON object is what vLLM and SGLang insist on. */
export function* argumentText(value: unknown, param: string): Generator<Wire.Rejection> {
  if (value === undefined) yield missing(param)
  else if (typeof value !== "string")
    yield invalid(`Invalid type for '${param}': expected a string.`, param, "invalid_type")
  else if (Array.isArray(Wire.parse(value)) || typeof Wire.parse(value) !== "object" || Wire.parse(value) === null)
    yield invalid(`Invalid '${param}': the string is not a JSON object.`, param, "invalid_value")
}

/** One function as a tool: its name, and that its schema's root is an object ("Function calling", "Structured Outputs"). */
export function* functionTool(tool: Wire.JsonObject, param: string): Generator<Wire.Rejection> {
  yield* name(tool["name"], `${param}.name`)
  if (tool["parameters"] === undefined || tool["parameters"] === null) return
  const schema = Wire.object(tool["parameters"])
  const no = (why: string) =>
    invalid(
      `Invalid schema for function '${String(tool["name"])}': ${why}`,
      `${param}.parameters`,
      "invalid_function_parameters"
    )
  if (schema["type"] !== "object")
    yield no(`schema must be a JSON Schema of 'type: "object"', got 'type: "${String(schema["type"])}"'.`)
  if (tool["strict"] !== true) return
  const required = Wire.list(schema["required"])
  if (schema["additionalProperties"] !== false) yield no("'additionalProperties' must be there and be false.")
  if (Object.keys(Wire.object(schema["properties"])).some((property) => !required.includes(property)))
    yield no("'required' must name every key of 'properties'.")
}
