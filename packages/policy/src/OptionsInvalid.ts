/**
 * The one error with which a policy refuses its options: the Layer fails, and no Run has begun.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"

/** The options of a policy, or its file, are not what they may be. */
export class OptionsInvalid extends Schema.TaggedError<OptionsInvalid>()("OptionsInvalid", {
  /** The module whose options they are, such as `Permissions`. */
  policy: Schema.String,
  /** The place of the first thing that is wrong, such as `rules[3].when.amount`; `$` is the whole. */
  field: Schema.String,
  /** What is wrong there; further places, each on a line of its own. No secret is quoted. */
  detail: Schema.String
}) {
  override readonly message = `${this.policy}: ${this.field}: ${this.detail}`
}
