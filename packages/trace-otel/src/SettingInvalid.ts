/**
 * Says that a standard variable or an option cannot be meant as it is.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"

/** A variable of the environment, or an option, is wrong, so that nothing could ever be sent, or kept. Its value is not quoted: it may hold a password. */
export class SettingInvalid extends Schema.TaggedError<SettingInvalid>()("SettingInvalid", {
  /** The variable, such as `OTEL_EXPORTER_OTLP_ENDPOINT`, or the option, such as `sampling.ratio`. */
  name: Schema.String,
  /** What it must be. */
  detail: Schema.String
}) {
  override readonly message = `${this.name} ${this.detail}`
}
