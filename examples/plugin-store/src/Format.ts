/** What the files hold and how they are named. */
import { Effect, Schema, SchemaTransformation } from "effect"

/** A body as JSON that a person can read, if that gives back the very same text; else as the text. */
const shown = (body: string): { readonly json: unknown } | { readonly text: string } => {
  try {
    const json: unknown = JSON.parse(body)
    return JSON.stringify(json) === body ? { json } : { text: body }
  } catch {
    return { text: body }
  }
}

const Body = Schema.Union([Schema.Struct({ json: Schema.Unknown }), Schema.Struct({ text: Schema.String })]).pipe(
  Schema.decodeTo(
    Schema.String,
    SchemaTransformation.transform({
      decode: (body) => ("text" in body ? body.text : JSON.stringify(body.json)),
      encode: shown
    })
  )
)

const Head = Schema.Struct({
  status: Schema.String,
  agent: Schema.String,
  session: Schema.optionalKey(Schema.String),
  parent: Schema.optionalKey(Schema.String),
  waiting: Schema.Array(Schema.String),
  wakeAt: Schema.optionalKey(Schema.Finite),
  updatedAt: Schema.Finite,
  body: Body
})

const Event = Schema.Struct({ seq: Schema.Finite, epoch: Schema.Finite, ends: Schema.Boolean, body: Body })

/** The Run as a change left it, and the events that came with that change. */
export const Kept = Schema.Struct({
  _tag: Schema.tag("Kept"),
  runId: Schema.String,
  seq: Schema.Finite,
  epoch: Schema.Finite,
  owner: Schema.optionalKey(Schema.String),
  until: Schema.Finite,
  head: Head,
  events: Schema.Array(Event)
})
export type Kept = typeof Kept.Type

/** The last change of a Run: it is gone, whatever of its folder is still there. */
export const Removed = Schema.Struct({ _tag: Schema.tag("Removed"), runId: Schema.String })

/** One file. */
export const Change = Schema.Union([Kept, Removed])
export type Change = typeof Change.Type

const encode = Schema.encodeSync(Change)
const decode = Schema.decodeUnknownEffect(Change)

export const print = (change: Change): string => `${JSON.stringify(encode(change), null, 2)}\n`

/** Fails if it is not what `print` wrote. */
export const parse = (text: string) =>
  Effect.flatMap(Effect.try({ try: (): unknown => JSON.parse(text), catch: () => "not JSON" }), decode)

export const fileOf = (version: number): string => `${String(version).padStart(6, "0")}.json`
export const versionOf = (file: string): number => (/^\d{6,}\.json$/.test(file) ? Number.parseInt(file, 10) : 0)

const isUpper = (char: string): boolean => char >= "A" && char <= "Z"

/**
 * The folder of a run id. Ids that differ only in case get different names on file systems that know no case: which
 * characters are capital letters is said behind a `~`, in hex. A dot and a colon are a comma and a semicolon.
 */
export const nameOf = (runId: string): string => {
  const capitals = [...runId].reduce((bits, char) => bits * 2n + (isUpper(char) ? 1n : 0n), 0n)
  const name = runId.toLowerCase().replaceAll(".", ",").replaceAll(":", ";")
  return capitals === 0n ? name : `${name}~${capitals.toString(16)}`
}

/** The run id of a folder; undefined for a name that `nameOf` does not give. */
export const idOf = (name: string): string | undefined => {
  const [, text = "", capitals = "0"] = /^([a-z0-9,;_-]+)(?:~([0-9a-f]+))?$/.exec(name) ?? []
  const bits = BigInt(`0x${capitals}`)
  const chars = [...text.replaceAll(",", ".").replaceAll(";", ":")]
  const id = chars.map((char, i) => ((bits >> BigInt(chars.length - 1 - i)) & 1n ? char.toUpperCase() : char)).join("")
  return id !== "" && nameOf(id) === name ? id : undefined
}
