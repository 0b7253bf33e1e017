/**
 * Reads calls out of a block that a model wrote.
 *
 * @since 0.1.0
 */
import * as Result from "effect/Result"
import * as Whole from "./Whole.ts"

export interface Call {
  readonly name: string
  /** An object, or text that is for the tool's schema to refuse. */
  readonly params: unknown
}

/** One call, or several: an array, or one object after the other. Else what is wrong, for the model. */
export const read = (body: string): Result.Result<ReadonlyArray<Call>, string> => {
  if (body.trim() === "") return Result.fail("the block is empty")
  const json = Whole.parse(body)
  if (Result.isFailure(json)) return Result.fail(json.failure)
  const all: ReadonlyArray<unknown> = Array.isArray(json.success) ? json.success : [json.success]
  const calls: Array<Call> = []
  for (const one of all) {
    const call = callOf(one)
    if (typeof call === "string") return Result.fail(call)
    calls.push(call)
  }
  return calls.length === 0 ? Result.fail("the block is empty") : Result.succeed(calls)
}

const callOf = (json: unknown): Call | string => {
  if (typeof json !== "object" || json === null || Array.isArray(json)) return "a call must be one JSON object"
  const fields = new Map<string, unknown>(Object.entries(json))
  const name = fields.get("name")
  if (typeof name !== "string" || name === "") return '"name" must be the name of a tool'
  const params = fields.get("arguments")
  if (typeof params === "string") return { name, params }
  if (typeof params !== "object" || params === null || Array.isArray(params)) return '"arguments" must be a JSON object'
  return { name, params }
}
