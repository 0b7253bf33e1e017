/**
 * Declares the four tools that the agent has: list, read, edit by exact replacement, run the tests.
 *
 * No tool is Destructive: an edit names the text that it replaces, so it can be taken back from the journal. None is
 * OpenWorld: what they say comes from the project folder and from nobody else.
 */
import * as Schema from "effect/Schema"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import { FileError, NotUnique, TestsUnavailable } from "./ToolErrors.ts"

const path = Schema.String.annotate({ description: "Relative to the project folder, with forward slashes" })

export const ListFiles = Tool.make("list_files", {
  description: "List the files of the project",
  parameters: Schema.Struct({}),
  success: Schema.Struct({ files: Schema.Array(Schema.String), truncated: Schema.Boolean }),
  failure: FileError
})
  .annotate(Tool.Readonly, true)
  .annotate(Tool.Destructive, false)
  .annotate(Tool.OpenWorld, false)

export const ReadFile = Tool.make("read_file", {
  description: "Read a text file; a long one is cut off and marked as truncated",
  parameters: Schema.Struct({ path }),
  success: Schema.Struct({ path: Schema.String, text: Schema.String, truncated: Schema.Boolean }),
  failure: FileError
})
  .annotate(Tool.Readonly, true)
  .annotate(Tool.Destructive, false)
  .annotate(Tool.OpenWorld, false)

/** Not Idempotent: where the new text contains the old one, a second run would change the file again. */
export const EditFile = Tool.make("edit_file", {
  description: "Replace a piece of a file by another. The old text must occur exactly once, white space included",
  parameters: Schema.Struct({ path, old_text: Schema.NonEmptyString, new_text: Schema.String }),
  success: Schema.Struct({ path: Schema.String, line: Schema.Int }),
  failure: Schema.Union([FileError, NotUnique])
})
  .annotate(Tool.Destructive, false)
  .annotate(Tool.OpenWorld, false)

/**
 * Idempotent: it runs the project's code, so it is not Readonly, but running the tests of a working copy once more does
 * no harm. A Run that died meanwhile runs them again; as an unsafe tool it would ask a person first.
 */
export const RunTests = Tool.make("run_tests", {
  description: "Run the project's tests with Node's test runner. Failing tests are a result, not an error",
  parameters: Schema.Struct({}),
  success: Schema.Struct({ exitCode: Schema.Int, output: Schema.String }),
  failure: TestsUnavailable
})
  .annotate(Tool.Idempotent, true)
  .annotate(Tool.Destructive, false)
  .annotate(Tool.OpenWorld, false)

export const toolkit = Toolkit.make(ListFiles, ReadFile, EditFile, RunTests)
