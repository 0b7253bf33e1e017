/**
 * Says that a standard variable cannot be meant as it is.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"

/** A variable of the environment is wrong, so that nothing could ever be sent. Its value is not quoted: it may hold a password. */
export class SettingInvalid extends Schema.TaggedError<SettingInvalid>()("SettingInvalid", {
  /** The variable, such as `OTEL_EXPORTER_OTLP_ENDPOINT`. */
  name: Schema.String,
  /** What it must be. */
  detail: Schema.String
}) {
  override readonly message = `${this.name} ${this.detail}`
}
