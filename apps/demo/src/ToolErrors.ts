/**
 * Names how the tools can fail. The model reads these as they are encoded, so each carries its message as a field.
 */
import * as Schema from "effect/Schema"

const about = { path: Schema.String, message: Schema.String }

/** The path leads out of the project folder. */
export class OutsideProject extends Schema.TaggedError<OutsideProject>()("OutsideProject", about) {}

/** There is no such file, or it is not one that can be read as text. */
export class FileUnavailable extends Schema.TaggedError<FileUnavailable>()("FileUnavailable", about) {}

/** The text to replace does not occur exactly once. */
export class NotUnique extends Schema.TaggedError<NotUnique>()("NotUnique", about) {}

/** The tests could not be started, or did not end in time. */
export class TestsUnavailable extends Schema.TaggedError<TestsUnavailable>()("TestsUnavailable", {
  message: Schema.String
}) {}

/** How reaching for a file can fail. */
export const FileError = Schema.Union([OutsideProject, FileUnavailable])
export type FileError = typeof FileError.Type
