/**
 * Says that spans did not arrive.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"

/** A back end refused spans or was not there. Nothing is lost: the journal has them, and they can be sent again. */
export class ExportFailed extends Schema.TaggedError<ExportFailed>()("ExportFailed", {
  detail: Schema.String,
  /** What a back end over HTTP answered, if it answered. */
  status: Schema.optionalKey(Schema.Number)
}) {
  override get message(): string {
    return `The spans were not taken: ${this.detail}`
  }
}
