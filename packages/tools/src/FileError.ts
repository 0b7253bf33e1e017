/**
 * Names how reaching for a file can fail, in words that a model can act on.
 *
 * Every error carries the path as it was asked for and a message of our own: a system's messages name real paths.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"

const about = { path: Schema.String, message: Schema.String }

/** The path leads out of the folder, or may not be used at all. Nothing outside was opened. */
export class OutsideFolder extends Schema.TaggedError<OutsideFolder>()("OutsideFolder", about) {}

/** There is no such file. */
export class FileNotFound extends Schema.TaggedError<FileNotFound>()("FileNotFound", about) {}

/** It is there and cannot be used: a folder, a device, no permission, a full disk. */
export class FileUnavailable extends Schema.TaggedError<FileUnavailable>()("FileUnavailable", about) {}

/** It is no text of ours: binary, not UTF-8, or too large. The same for a text that is to be written. */
export class NotText extends Schema.TaggedError<NotText>()("NotText", about) {}

/** How every operation on a file can fail. */
export const FileError = Schema.Union([OutsideFolder, FileNotFound, FileUnavailable, NotText])
export type FileError = typeof FileError.Type

/** The file that should be created is there. */
export class AlreadyExists extends Schema.TaggedError<AlreadyExists>()("AlreadyExists", about) {}

/** Somebody else changed the file between the moment it was read and the moment it would have been replaced. */
export class ChangedMeanwhile extends Schema.TaggedError<ChangedMeanwhile>()("ChangedMeanwhile", about) {}

/** A glob or a search pattern that cannot be used; the message says what is wrong with it, and where. */
export class BadPattern extends Schema.TaggedError<BadPattern>()("BadPattern", {
  pattern: Schema.String,
  message: Schema.String
}) {}

/** The folder that tools should work in cannot be used. For the application, not for the model: `path` is its own. */
export class FolderUnavailable extends Schema.TaggedError<FolderUnavailable>()("FolderUnavailable", about) {}
