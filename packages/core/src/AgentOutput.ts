/**
 * Reads what a Run is to complete with out of the model's last reply, where its agent says what that must look like.
 *
 * The model is told the JSON Schema after the instructions. Its reply may be the JSON alone, or hold it in a fenced block,
 * the only one of JSON, with prose around it; thoughts in `<think>` before it are left out. Anything else (prose with JSON
 * in it, trailing commas) is asked for again, with what is wrong quoted.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Tool from "effect/ai/Tool"
import * as Text from "./Text.ts"

/** A schema that needs nothing to decode: an Outcome is read where no agent runs. */
export type OutputSchema = Schema.Codec<unknown, unknown>

export interface AgentOutput {
  readonly schema: OutputSchema
  /** What the model is told of it. */
  readonly instructions: string
  /** The JSON of a reply that fits, as it is journaled; else what is wrong with it, for the model. */
  readonly read: (reply: string) => Effect.Effect<Result.Result<Schema.Json, string>>
  /** What was journaled, as the schema's type; fails with what is wrong. */
  readonly decode: (stored: Schema.Json) => Effect.Effect<unknown, string>
}

/** UTF-16 units of issues that are quoted to the model and kept in an error: enough for several, not for a dump. */
const maxIssues = 1000

/** Throws if the schema cannot be said as JSON Schema. */
export const make = (schema: OutputSchema): AgentOutput => {
  const codec = Schema.decodeUnknownEffect(Schema.toCodecJson(schema))
  const decode = (json: Schema.Json): Effect.Effect<unknown, string> =>
    Effect.suspend(() => codec(json, { errors: "all" })).pipe(
      Effect.catchCause((cause) => Effect.fail(issuesOf(cause)))
    )
  const jsonSchema = JSON.stringify(Tool.getJsonSchemaFromSchema(schema))
  return {
    schema,
    instructions:
      "When you are done, answer with JSON only, without any other text, that matches this JSON Schema:\n" + jsonSchema,
    decode,
    read: (reply) => {
      const json = parse(reply)
      if (Result.isFailure(json)) return Effect.succeed(Result.fail(json.failure))
      return Effect.map(Effect.result(decode(json.success)), (decoded) =>
        Result.isSuccess(decoded)
          ? json
          : Result.fail(`Your answer does not match the schema. Answer again, with JSON only.\n${decoded.failure}`)
      )
    }
  }
}

const issuesOf = (cause: Cause.Cause<unknown>): string => messageOf(Cause.squash(cause))

/** What is wrong, bounded and without secrets. */
export const messageOf = (error: unknown): string =>
  Text.safeMessage(error instanceof Error ? error.message : String(error), maxIssues)

/** Three or more backticks or tildes, and what stands beside them. */
const fence = /^[ \t]*(`{3,}|~{3,})(.*)$/

/** What stands in fences, on lines of their own or on one with them. Each line is looked at once: a reply may be long. */
const blocksOf = (text: string): ReadonlyArray<string> => {
  const blocks: Array<string> = []
  let open: { readonly mark: string; readonly lines: Array<string> } | undefined
  for (const line of text.split(/\r?\n/)) {
    const [, mark = "", rest = ""] = fence.exec(line) ?? []
    if (open !== undefined) {
      if (mark.startsWith(open.mark) && rest.trim() === "") {
        blocks.push(open.lines.join("\n"))
        open = undefined
      } else open.lines.push(line)
    } else if (mark !== "") {
      const end = rest.lastIndexOf(mark)
      if (end < 0) open = { mark, lines: [] }
      else if (rest.slice(end + mark.length).trim() === "") blocks.push(rest.slice(0, end).replace(/^\w*\s/, ""))
    }
  }
  return blocks
}

const thoughts = /^\s*<think>[\s\S]*?<\/think>/

/** The whole text (`trim` takes a BOM and no-break spaces too), or else the content of its only fenced block that is JSON. */
const parse = (text: string): Result.Result<Schema.Json, string> => {
  const said = text.replace(thoughts, "").trim()
  const whole = parsed(said)
  if (Result.isSuccess(whole)) return whole
  const read = blocksOf(said).map((block) => parsed(block))
  const found = read.filter((one) => Result.isSuccess(one))
  const [only = whole] = found.length === 1 ? found : read.length === 1 ? read : []
  return Result.mapError(only, (why) => `Your answer is not JSON (${why}). Answer again, with JSON only.`)
}

const parsed = (text: string): Result.Result<Schema.Json, string> => {
  try {
    return Result.succeed(JSON.parse(text))
  } catch (error) {
    return Result.fail(messageOf(error))
  }
}
