/**
 * Turns a schema of JSON data into a fast check of shape that names the path of the first bad field.
 *
 * It covers what the journal's schemas use: structs, records, arrays, literals, unions that are told apart by `_tag` or
 * `type`, and JSON. It does not run refinements or transformations; the schemas have none.
 *
 * @since 0.1.0
 */
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import type * as SchemaAST from "effect/SchemaAST"

/** The path of the first bad field below this value ("" is the value itself), or undefined. Built only on the way out. */
type Check = (value: unknown) => string | undefined

const isRecord = (value: unknown): value is { readonly [key: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const primitive =
  (type: "string" | "number" | "boolean"): Check =>
  (value) =>
    typeof value === type ? undefined : ""

const compileObjects = (ast: SchemaAST.Objects): Check => {
  const fields = ast.propertySignatures.map((field) => ({
    name: String(field.name),
    optional: field.type.context?.isOptional === true,
    check: compile(field.type)
  }))
  const index = ast.indexSignatures[0]
  const entry = index === undefined ? undefined : compile(index.type)
  return (value) => {
    if (!isRecord(value)) return ""
    for (const { check, name, optional } of fields) {
      const field = value[name]
      if (field === undefined && optional) continue
      const bad = check(field)
      if (bad !== undefined) return `.${name}${bad}`
    }
    if (entry !== undefined) {
      for (const key in value) {
        const bad = entry(value[key])
        if (bad !== undefined) return `.${key}${bad}`
      }
    }
    return undefined
  }
}

const compileArrays = (ast: SchemaAST.Arrays): Check => {
  const rest = ast.rest[0]
  const item: Check = rest === undefined ? () => undefined : compile(rest)
  return (value) => {
    if (!Array.isArray(value)) return ""
    for (let i = 0; i < value.length; i++) {
      const bad = item(value[i])
      if (bad !== undefined) return `[${i}]${bad}`
    }
    return undefined
  }
}

const discriminators = ["_tag", "type"] as const

const compileUnion = (ast: SchemaAST.Union): Check => {
  for (const key of discriminators) {
    const byTag = new Map<unknown, Check>()
    for (const member of ast.types) {
      const field = member._tag === "Objects" ? member.propertySignatures.find((p) => p.name === key) : undefined
      if (field?.type._tag === "Literal") byTag.set(field.type.literal, compile(member))
    }
    if (byTag.size === ast.types.length) {
      return (value) => {
        if (!isRecord(value)) return ""
        const check = byTag.get(value[key])
        return check === undefined ? `.${key}` : check(value)
      }
    }
  }
  const checks = ast.types.map(compile)
  return (value) => (checks.some((check) => check(value) === undefined) ? undefined : "")
}

const compile = (ast: SchemaAST.AST): Check => {
  switch (ast._tag) {
    case "String":
      return primitive("string")
    case "Number":
      return primitive("number")
    case "Boolean":
      return primitive("boolean")
    case "Literal":
      return (value) => (value === ast.literal ? undefined : "")
    case "Objects":
      return compileObjects(ast)
    case "Arrays":
      return compileArrays(ast)
    case "Union":
      return compileUnion(ast)
    default: // Json: whatever JSON.parse gives, but not a field that is missing
      return (value) => (value === undefined ? "" : undefined)
  }
}

/** Compiles `schema` once; the check fails with a path such as `$.reply[0].text`. */
export const checker = <A>(schema: Schema.Schema<A>): ((value: unknown) => Result.Result<A, string>) => {
  const check = compile(schema.ast)
  return (value) => {
    const bad = check(value)
    return bad === undefined ? Result.succeed(value as A) : Result.fail(`$${bad}`)
  }
}
