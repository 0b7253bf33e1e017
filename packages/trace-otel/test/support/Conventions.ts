/** The project's own copy of the conventions' facts, and a check of OTLP exports against it. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import * as Schema from "effect/Schema"
import type { Semconv } from "../../src/Conventions.ts"

const Requirements = Schema.Record(Schema.String, Schema.String)
const Metric = Schema.Struct({
  name: Schema.String,
  instrument: Schema.String,
  unit: Schema.String,
  buckets: Schema.optionalKey(Schema.Array(Schema.Number)),
  attributes: Requirements
})
const Facts = Schema.Struct({
  attributes: Schema.Record(
    Schema.String,
    Schema.Struct({ type: Schema.String, enum: Schema.optionalKey(Schema.Array(Schema.String)) })
  ),
  spans: Schema.Record(
    Schema.String,
    Schema.Struct({ operation: Schema.String, name: Schema.String, kind: Schema.String, attributes: Requirements })
  ),
  metrics: Schema.Array(Metric),
  content: Schema.Array(Schema.String),
  highCardinality: Schema.Array(Schema.String),
  profiles: Schema.Record(
    Schema.String,
    Schema.Struct({
      attributes: Schema.Record(Schema.String, Schema.String),
      metrics: Schema.Array(Metric),
      spanExtras: Schema.Record(Schema.String, Schema.Array(Schema.String))
    })
  )
})

export const facts = Schema.decodeUnknownSync(Facts)(
  JSON.parse(readFileSync(join(import.meta.dirname, "../fixtures/conventions.json"), "utf8"))
)

/** The facts of one release: what an attribute is, and what metrics there are. */
export const release = (semconv: Semconv) => {
  const extra = facts.profiles[semconv]
  const types = new Map(Object.entries(facts.attributes).map(([name, { type }]) => [name, type]))
  for (const [name, type] of Object.entries(extra?.attributes ?? {})) types.set(name, type)
  return { types, metrics: [...facts.metrics, ...(extra?.metrics ?? [])], extras: extra?.spanExtras ?? {} }
}

type Json = { readonly [key: string]: unknown }
const list = (value: unknown): ReadonlyArray<Json> => (Array.isArray(value) ? value : [])
const record = (value: unknown): Json => (typeof value === "object" && value !== null ? { ...value } : {})
const text = (value: unknown): string => (typeof value === "string" ? value : "")

interface Read {
  readonly name: string
  readonly traceId: string
  readonly spanId: string
  readonly parentId: string
  readonly kind: string
  readonly failed: boolean
  readonly start: bigint
  readonly end: bigint
  readonly attributes: ReadonlyMap<string, { readonly type: string; readonly value: unknown }>
}

const valueOf = (value: Json): { readonly type: string; readonly value: unknown } => {
  if ("stringValue" in value) return { type: "string", value: value["stringValue"] }
  if ("boolValue" in value) return { type: "boolean", value: value["boolValue"] }
  if ("intValue" in value) return { type: "int", value: Number(value["intValue"]) }
  if ("doubleValue" in value) return { type: "double", value: value["doubleValue"] }
  return { type: "string[]", value: list(record(value["arrayValue"])["values"]).map((item) => item["stringValue"]) }
}

export const attributesOf = (attributes: unknown) =>
  new Map(list(attributes).map((item) => [text(item["key"]), valueOf(record(item["value"]))]))

/** The spans of OTLP exports as JSON. */
export const spansOf = (exports: ReadonlyArray<unknown>): ReadonlyArray<Read> =>
  exports
    .flatMap((body) => list(record(body)["resourceSpans"]))
    .flatMap((resource) => list(resource["scopeSpans"]))
    .flatMap((scope) => list(scope["spans"]))
    .map((span) => ({
      name: text(span["name"]),
      traceId: text(span["traceId"]),
      spanId: text(span["spanId"]),
      parentId: text(span["parentSpanId"]),
      kind: ["UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT"][Number(span["kind"])] ?? "?",
      failed: record(span["status"])["code"] === 2,
      start: BigInt(text(span["startTimeUnixNano"])),
      end: BigInt(text(span["endTimeUnixNano"])),
      attributes: attributesOf(span["attributes"])
    }))

const isBelowAgent = (byId: ReadonlyMap<string, Read>, { parentId }: Read): boolean => {
  const parent = byId.get(parentId)
  if (parent === undefined) return false
  return parent.attributes.get("gen_ai.operation.name")?.value === "invoke_agent" || isBelowAgent(byId, parent)
}

const slack = 1_000_000n

/** What is wrong with exports of finished Runs: nothing is an empty list. */
export const violations = (
  exports: ReadonlyArray<unknown>,
  { content = false, semconv }: { readonly semconv: Semconv; readonly content?: boolean }
): ReadonlyArray<string> => {
  const { extras, types } = release(semconv)
  const found: Array<string> = []
  const spans = spansOf(exports)
  const byId = new Map(spans.map((span) => [span.spanId, span]))
  if (byId.size !== spans.length) found.push("a span id is there twice")
  for (const span of spans) {
    const say = (what: string) => found.push(`${span.name}: ${what}`)
    const { attributes } = span
    if (!/^[0-9a-f]{32}$/.test(span.traceId) || !/^[0-9a-f]{16}$/.test(span.spanId)) say("no ids")
    if (span.end < span.start) say("ends before it starts")
    if (span.failed !== attributes.has("error.type")) say("error.type and status do not agree")
    const operation = attributes.get("gen_ai.operation.name")?.value
    const kind = Object.entries(facts.spans).find(([, known]) => known.operation === operation)
    for (const [name, { type, value }] of attributes) {
      const wanted = types.get(name)
      if (name.startsWith("gen_ai.") && wanted === undefined) say(`${name} is unknown`)
      const fits = wanted === type || wanted === "any" || (wanted === "double" && type === "int")
      if (wanted !== undefined && !fits) say(`${name} is ${type}, not ${wanted}`)
      const values = facts.attributes[name]?.enum
      if (values !== undefined && name !== "error.type" && !values.includes(String(value))) say(`${name} is ${value}`)
      if (!content && facts.content.includes(name)) say(`${name} is content`)
      const allowed = [...Object.keys(kind?.[1].attributes ?? {}), ...(extras[kind?.[0] ?? ""] ?? [])]
      if (name.startsWith("gen_ai.") && !allowed.includes(name)) say(`${name} does not belong here`)
    }
    const parent = byId.get(span.parentId)
    if (span.parentId !== "" && parent === undefined) say("its parent is missing")
    // Spans of others go by another clock: it may differ by more than the slack.
    const ours = attributes.has("waystone.run.id") && parent?.attributes.has("waystone.run.id") === true
    if (ours && (span.start + slack < parent.start || span.end > parent.end + slack))
      say(`is outside of its parent ${parent.name}`)
    if (parent !== undefined && parent.traceId !== span.traceId) say("is in another trace than its parent")
    if (kind === undefined) continue
    const [, known] = kind
    if (known.kind !== span.kind) say(`is ${span.kind}`)
    const wanted = known.name.replaceAll(/\{([^}]+)\}/g, (_, name: string) => String(attributes.get(name)?.value))
    if (span.name !== wanted) say(`should be ${wanted}`)
    for (const [name, requirement] of Object.entries(known.attributes))
      if (requirement === "required" && !attributes.has(name)) say(`lacks ${name}`)
    if (attributes.has("server.address") && !attributes.has("server.port")) say("has no port")
    if (operation !== "invoke_agent" && !isBelowAgent(byId, span)) say("is not under an agent")
  }
  for (const trace of new Set(spans.map(({ traceId }) => traceId))) {
    const roots = spans.filter((span) => span.traceId === trace && span.parentId === "")
    if (roots.length !== 1) found.push(`trace ${trace} has ${roots.length} roots`)
  }
  const runs = new Set(spans.map(({ attributes, traceId }) => `${attributes.get("waystone.run.id")?.value} ${traceId}`))
  const names = [...runs].map((run) => run.split(" ")[0])
  if (new Set(names).size !== names.length) found.push("a Run is in two traces")
  return found
}
