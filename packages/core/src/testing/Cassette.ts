/**
 * Names the format of a cassette: JSON lines, the first about the model, then one per request with its reply.
 *
 * Invariants
 *   C1  A line that cannot be read is reported with its number and the path of what is wrong; the file stays as it is.
 *   C2  Nothing in it is a time or a header, but for the wait that a failure asked for (as `retry-after-ms`).
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import * as AiError from "effect/ai/AiError"
import * as Response from "effect/ai/Response"
import { sha256 } from "../Digest.ts"
import { step } from "./Difference.ts"

const { Array: List, Json, Literal, Record, String: Str, Struct, TaggedStruct, optionalKey } = Schema

/** The format that this version writes. */
export const version = 1

/** What was known of the model, so that a replayed Run has the same journal. */
export const Header = Struct({
  cassette: Literal(version),
  model: optionalKey(Record(Str, Json)),
  settings: optionalKey(Record(Str, Json))
})
export type Header = typeof Header.Type

/** How a reply ended: whole, given up by who had asked (a time limit, say), failed, or with a bug in the adapter. */
export const End = Schema.Union([
  TaggedStruct("Done", {}),
  TaggedStruct("Interrupted", {}),
  TaggedStruct("Failed", { error: Schema.toEncoded(Schema.toCodecJson(AiError.AiError)) }),
  TaggedStruct("Died", { defect: Str })
])
export type End = typeof End.Type

const Request = Struct({
  method: Schema.Literals(["generateText", "streamText"]),
  messages: List(Json),
  tools: List(Json),
  toolChoice: Json,
  settings: optionalKey(Json)
})
/** A request, readable, without secrets. */
export type Request = typeof Request.Type

/** One request and what came of it. */
export const Entry = Struct({
  /** SHA-256 of the request's canonical JSON. */
  digest: Str,
  request: Request,
  /** Of a whole reply. */
  parts: optionalKey(List(Schema.toEncoded(Response.Part()))),
  /** Of a stream, in the pieces that they came in. */
  chunks: optionalKey(List(List(Schema.toEncoded(Response.StreamPart())))),
  end: End
})
export type Entry = typeof Entry.Type

/** The file is there, but is no cassette. It is never overwritten: repair it, or delete it and record again. */
export class CassetteDamaged extends Schema.TaggedError<CassetteDamaged>()("CassetteDamaged", {
  file: Str,
  /** Counts from 1. */
  line: Schema.Number,
  /** Such as `$.parts[0].type`. */
  path: Str,
  detail: Str
}) {
  override readonly message = `The cassette ${this.file} is damaged in line ${this.line} at ${this.path}: ${this.detail}. It was left as it is.`
}

/** There is nothing to replay. */
export class CassetteMissing extends Schema.TaggedError<CassetteMissing>()("CassetteMissing", { file: Str }) {
  override readonly message =
    `There is no cassette ${this.file}, and nothing is recorded here. Record it once where the provider can be reached ` +
    `(mode "auto" outside of CI, or mode "record"), and commit the file.`
}

export interface Cassette {
  readonly header: Header
  readonly entries: ReadonlyArray<Entry>
}

const decodeHeader = Schema.decodeUnknownResult(Header)
const decodeEntry = Schema.decodeUnknownResult(Entry)
const issues = SchemaIssue.makeFormatterStandardSchemaV1()

/** Reads a whole cassette (C1); blank lines at its end are nothing. A request that was edited does not fit its digest any more. */
export const parse = Effect.fnUntraced(function* (
  file: string,
  text: string
): Effect.fn.Return<Cassette, CassetteDamaged> {
  const damaged = (line: number, path: string, detail: string) => new CassetteDamaged({ file, line, path, detail })
  const read = <A>(line: number, text: string, decode: (json: unknown) => Result.Result<A, Schema.SchemaError>) => {
    let json: unknown
    try {
      json = JSON.parse(text)
    } catch {
      return Result.fail(damaged(line, "$", "this is not JSON"))
    }
    return Result.mapError(decode(json), ({ issue }) => {
      const found = issues(issue).issues[0]
      return damaged(line, pathOf(found?.path ?? []), found?.message ?? "it has another shape")
    })
  }
  const [first = "", ...lines] = text.trimEnd().split("\n")
  const header = yield* Effect.fromResult(read(1, first, decodeHeader))
  const entries: Array<Entry> = []
  for (const [index, line] of lines.entries()) {
    const entry = yield* Effect.fromResult(read(index + 2, line, decodeEntry))
    if (
      (entry.request.method === "generateText" ? entry.parts : entry.chunks) === undefined &&
      entry.end._tag === "Done"
    )
      return yield* damaged(index + 2, "$", "it has no reply of the kind that was asked for")
    if ((yield* sha256(entry.request)) !== entry.digest)
      return yield* damaged(index + 2, "$.digest", "it is not that of the request")
    entries.push(entry)
  }
  return { header, entries }
})

const pathOf = (path: ReadonlyArray<unknown>): string =>
  path.reduce<string>((text, one) => {
    const key = typeof one === "object" && one !== null && "key" in one ? one.key : one
    return typeof key === "number" ? `${text}[${key}]` : text + step(String(key))
  }, "$")
