/**
 * Decodes the options of a policy by their schema: what is wrong is an `OptionsInvalid` that names the field.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

/** The options of a policy are not what they may be; no Run has begun. */
export class OptionsInvalid extends Schema.TaggedError<OptionsInvalid>()("OptionsInvalid", {
  /** The policy whose options they are. */
  policy: Schema.String,
  /** Every field that is wrong, and what it may be. */
  detail: Schema.String
}) {
  override readonly message = `The options of ${this.policy} are wrong: ${this.detail}`
}

/** Takes nothing for granted, since callers without types exist: a key that is not known is wrong, too. */
export const decode = <S extends Schema.Decoder<unknown>>(
  policy: string,
  schema: S,
  input: unknown
): Effect.Effect<S["Type"], OptionsInvalid> =>
  Effect.mapError(
    Schema.decodeUnknownEffect(schema)(input, { errors: "all", onExcessProperty: "error" }),
    ({ message }) => new OptionsInvalid({ policy, detail: message })
  )

/** A field that may be left out. */
export const withDefault = <S extends Schema.Constraint>(
  schema: S,
  value: S["Encoded"]
): Schema.withDecodingDefaultKey<S> => Schema.withDecodingDefaultKey<S>(Effect.succeed(value))(schema)

/** A whole number from `minimum` to `maximum`. */
export const whole = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))
