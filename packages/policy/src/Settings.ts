/**
 * Decodes the options of a policy by their schema: what is wrong is an `OptionsInvalid` that names the field.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import { OptionsInvalid } from "./OptionsInvalid.ts"

const issuesOf = SchemaIssue.makeFormatterStandardSchemaV1()

/** Takes nothing for granted, since callers without types exist: a key that is not known is wrong, too. */
export const decode = <S extends Schema.Decoder<unknown>>(
  policy: string,
  schema: S,
  input: unknown
): Effect.Effect<S["Type"], OptionsInvalid> =>
  Effect.mapError(
    Schema.decodeUnknownEffect(schema)(input, { errors: "all", onExcessProperty: "error" }),
    ({ issue }) => {
      const [first, ...others] = issuesOf(issue).issues.map(({ message, path = [] }) => ({
        field: fieldOf(path),
        message
      }))
      const detail = [first?.message ?? "is not valid", ...others.map(({ field, message }) => `${field}: ${message}`)]
      return new OptionsInvalid({ policy, field: first?.field ?? "$", detail: detail.join("\n") })
    }
  )

const fieldOf = (path: ReadonlyArray<PropertyKey | { readonly key: PropertyKey }>): string => {
  const keys = path.map((part) => (typeof part === "object" ? part.key : part))
  return keys.length === 0
    ? "$"
    : keys.map((key, i) => (typeof key === "number" ? `[${key}]` : `${i === 0 ? "" : "."}${String(key)}`)).join("")
}

/** A field that may be left out. */
export const withDefault = <S extends Schema.Constraint>(
  schema: S,
  value: S["Encoded"]
): Schema.withDecodingDefaultKey<S> => Schema.withDecodingDefaultKey<S>(Effect.succeed(value))(schema)

/** A whole number from `minimum` to `maximum`. */
export const whole = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))
