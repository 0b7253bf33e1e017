/**
 * Declares the five file tools.
 *
 * The two that write are not Destructive: an edit names the text that it replaces and a new file replaces nothing, so
 * both can be taken back from the journal. Only overwriting destroys, and that asks a person. They are not Idempotent:
 * where the new text contains the old one, a second run would change the file again. After a crash the file itself says
 * what happened (`FileReconcile`). None is OpenWorld: what they say comes from the folder.
 *
 * @since 0.1.0
 */
import { ToolOptions } from "@waystone/core"
import * as Schema from "effect/Schema"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import { AlreadyExists, BadPattern, ChangedMeanwhile, FileError } from "./FileError.ts"

/** No file of those asked for could be read; the message says why for each. */
export class NothingRead extends Schema.TaggedError<NothingRead>()("NothingRead", { message: Schema.String }) {}

/** The edit is not possible: the text occurs not at all, or more than once, or nothing would change. */
export class EditRefused extends Schema.TaggedError<EditRefused>()("EditRefused", {
  path: Schema.String,
  reason: Schema.Literals(["same", "absent", "several"]),
  message: Schema.String
}) {}

const path = Schema.String.annotate({ description: "Path of a file, relative to the folder, with forward slashes" })
const glob = Schema.String.annotate({
  description: "Only files whose path matches, such as 'src/**/*.ts'; without a slash the name of a file in any folder"
})
const line = Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))

/** `list_files`: what is in the folder, without what `.gitignore` leaves out. */
export const ListFiles = Tool.make("list_files", {
  description: "List the files of the folder, all or those that a glob matches. Ignored files are left out",
  parameters: Schema.Struct({ glob: Schema.optionalKey(glob) }),
  success: Schema.Struct({ files: Schema.Array(Schema.String), truncated: Schema.Boolean }),
  failure: Schema.Union([FileError, BadPattern])
})
  .annotate(Tool.Readonly, true)
  .annotate(Tool.Destructive, false)
  .annotate(Tool.OpenWorld, false)

const Asked = Schema.Struct({ path, from_line: Schema.optionalKey(line), to_line: Schema.optionalKey(line) })

const Read = Schema.Union([
  Schema.Struct({
    path: Schema.String,
    text: Schema.String,
    from_line: Schema.Int,
    to_line: Schema.Int,
    total_lines: Schema.Int,
    /** What was cut, and how to go on. */
    truncated: Schema.optionalKey(Schema.String)
  }),
  Schema.Struct({ path: Schema.String, error: Schema.String })
])

/** `read_files`: up to twenty files, or parts of them, which share 12,000 characters. Fails only if all of them do. */
export const ReadFiles = Tool.make("read_files", {
  description:
    "Read text files, or some of their lines (from 1, to_line included). All together give about 12,000 characters; " +
    "where 'truncated' says so, go on from the line that it names",
  parameters: Schema.Struct({ files: Schema.Array(Asked).check(Schema.isMinLength(1), Schema.isMaxLength(20)) }),
  success: Schema.Struct({ files: Schema.Array(Read) }),
  failure: NothingRead
})
  .annotate(Tool.Readonly, true)
  .annotate(Tool.Destructive, false)
  .annotate(Tool.OpenWorld, false)

/** `search_files`: at most 100 lines that a pattern matches, from at most 10 s. */
export const SearchFiles = Tool.make("search_files", {
  description:
    "Search the lines of text files with a regular expression (RE2 syntax: no look-around, no back references). " +
    "Ignored, binary and very large files are left out",
  parameters: Schema.Struct({
    pattern: Schema.NonEmptyString,
    glob: Schema.optionalKey(glob),
    ignore_case: Schema.optionalKey(Schema.Boolean)
  }),
  success: Schema.Struct({
    matches: Schema.Array(Schema.Struct({ path: Schema.String, line: Schema.Int, text: Schema.String })),
    truncated: Schema.Boolean
  }),
  failure: Schema.Union([FileError, BadPattern])
})
  .annotate(Tool.Readonly, true)
  .annotate(Tool.Destructive, false)
  .annotate(Tool.OpenWorld, false)

/** `write_file`: a new file. Writing the same text again succeeds; overwriting another text needs an approval. */
export const WriteFile = Tool.make("write_file", {
  description:
    "Create a text file, and the folders that it lies in. To change a file that exists use edit_file; " +
    "'overwrite' replaces all of it and asks the user first",
  parameters: Schema.Struct({ path, text: Schema.String, overwrite: Schema.optionalKey(Schema.Boolean) }),
  success: Schema.Struct({ path: Schema.String, created: Schema.Boolean, diff: Schema.String }),
  failure: Schema.Union([FileError, AlreadyExists, ChangedMeanwhile]),
  needsApproval: ({ overwrite }) => overwrite === true
})
  .annotate(Tool.Destructive, false)
  .annotate(Tool.Idempotent, false)
  .annotate(Tool.OpenWorld, false)
  .annotate(ToolOptions.Sequential, true)

/** `edit_file`: exact replacement. `line` is 0 where, after a crash, the file cannot say where the edit was made. */
export const EditFile = Tool.make("edit_file", {
  description:
    "Replace a piece of a text file by another one. old_text must occur exactly once, white space included; " +
    "take in lines around it where it does not",
  parameters: Schema.Struct({ path, old_text: Schema.NonEmptyString, new_text: Schema.String }),
  success: Schema.Struct({ path: Schema.String, line: Schema.Int, diff: Schema.String }),
  failure: Schema.Union([FileError, EditRefused, ChangedMeanwhile])
})
  .annotate(Tool.Destructive, false)
  .annotate(Tool.Idempotent, false)
  .annotate(Tool.OpenWorld, false)
  .annotate(ToolOptions.Sequential, true)

/** All five. */
export const toolkit = Toolkit.make(ListFiles, ReadFiles, SearchFiles, WriteFile, EditFile)

/** The three that change nothing. */
export const readonly = Toolkit.make(ListFiles, ReadFiles, SearchFiles)
