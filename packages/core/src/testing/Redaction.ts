/**
 * Takes secrets out of JSON before it is written down. What it has redacted stays as it is when it is redacted again.
 *
 * @since 0.1.0
 */
import type { Json } from "effect/Schema"
import * as SecretName from "./SecretName.ts"
import * as SecretShapes from "./SecretShapes.ts"

/** What a caller removes besides. */
export type Redact = (text: string) => string

type Fields = { readonly [name: string]: Json }

/**
 * Every text of the value redacted, keys of objects included, and fields named like secrets emptied. What only looks like a
 * secret stays where effect/ai has a place for it: the properties of a schema, and what providers sign. Tools have no such
 * places in their arguments and results.
 */
export const make = (redact: Redact = (text) => text): ((json: Json) => Json) => {
  const shapeless: Redact = (value) => SecretShapes.without(redact(value))
  const walker = (isTools: boolean) => {
    const text: Redact = (value) => shapeless(inJson(value, (json) => toolsOwn(json)))
    const field = (name: string, value: Json, owner: Fields): Json => {
      if (isBytes(name, value, owner)) return value
      if (!isTools && toolFields.has(name)) return toolsOwn(value)
      if (!isTools && schemaFields.has(name)) return each(value, (one, name) => described(one, name))
      if (!isTools && providersOwn.has(name)) return each(value, (one) => each(one, opaque))
      return SecretName.is(name) ? emptied(value) : walk(value)
    }
    const described = (value: Json, name: string): Json => (isFields(value) ? walk(value) : field(name, value, {}))
    const opaque = (value: Json, name: string): Json =>
      typeof value === "string" && SecretName.isOpaque(name) ? value : field(name, value, {})
    const each = (json: Json, change: (value: Json, name: string) => Json): Json =>
      isFields(json)
        ? Object.fromEntries(Object.entries(json).map(([name, value]) => [shapeless(name), change(value, name)]))
        : walk(json)
    const walk = (json: Json): Json => {
      if (typeof json === "string") return text(json)
      return Array.isArray(json)
        ? json.map(walk)
        : isFields(json)
          ? each(json, (value, name) => field(name, value, json))
          : json
    }
    return walk
  }
  const toolsOwn: (json: Json) => Json = walker(true)
  return walker(false)
}

const isFields = (json: Json): json is Fields => typeof json === "object" && json !== null && !Array.isArray(json)

/** Of a JSON Schema: there a name like a secret's has a description, and no secret. */
const schemaFields = new Set(["properties", "patternProperties", "$defs", "definitions"])

/** Where a part keeps, provider by provider, what must come back to it unchanged. */
const providersOwn = new Set(["metadata", "options"])

/** What a model gave to a tool, and what it got back. */
const toolFields = new Set(["params", "result"])

/** Bytes of a file or an image: in a large one something looks like a key by chance. */
const isBytes = (name: string, value: Json, { mediaType, mimeType }: Fields): boolean =>
  name === "data" &&
  typeof (mediaType ?? mimeType) === "string" &&
  typeof value === "string" &&
  /^(?:data:[\w.+-]+\/[\w.+-]+;base64,)?[A-Za-z\d+/]*={0,2}$/.test(value)

/** Every text in it, however deep; numbers are counts. */
const emptied = (json: Json): Json => {
  if (typeof json === "string") return json === "" ? json : SecretShapes.mark
  if (Array.isArray(json)) return json.map(emptied)
  if (!isFields(json)) return json
  return Object.fromEntries(Object.entries(json).map(([name, value]) => [name, emptied(value)]))
}

/** JSON as a text (arguments, what a tool read): there a field's name says what a shape does not. */
const inJson = (text: string, walk: (json: Json) => Json): string => {
  if (!/^\s*[{[]/.test(text)) return text
  try {
    const json: Json = JSON.parse(text)
    const kept = JSON.stringify(walk(json))
    return kept === JSON.stringify(json) ? text : kept
  } catch {
    return text
  }
}
