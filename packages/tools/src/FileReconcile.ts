/**
 * Asks the file itself what became of a write or an edit whose process died.
 *
 * The file could be the result and not the start: it is done. It could be the start and not the result: it never began.
 * Both or neither: unknown, and a person decides. That is right where nobody else changes the file meanwhile; a file
 * keeps no key, so an owner that froze in the middle and wakes up later is only stopped by the text that it expects.
 *
 * Invariants
 *   C1  After an edit it never says that the edit never began; before it, never that it is done.
 *
 * @since 0.1.0
 */
import { Reconcile } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Edit from "./Edit.ts"
import * as FileDiff from "./FileDiff.ts"
import { unmarked } from "./FileHandlers.ts"
import { EditFile, WriteFile } from "./FileToolkit.ts"
import { Folder } from "./Folder.ts"
import * as LineEnds from "./LineEnds.ts"

const unknown = { _tag: "Unknown" } as const
const neverStarted = { _tag: "NeverStarted" } as const

const edit = Reconcile.layer(EditFile, ({ arguments: encoded }) =>
  Effect.gen(function* () {
    const { new_text, old_text, path } = yield* Schema.decodeUnknownEffect(EditFile.parametersSchema)(encoded)
    const folder = yield* Folder
    const where = yield* folder.locate(path)
    const traced = Edit.trace(yield* folder.read(path), { oldText: old_text, newText: new_text })
    if (traced._tag !== "Done") return traced
    const { edited } = traced
    // What was done is certain, where is not: the new text stands in several places that it may have been put to.
    if (edited === undefined) return { _tag: "Done", result: { path: where, line: 0, diff: nowhere } } as const
    const diff = FileDiff.unified(where, edited.before, edited.after)
    return { _tag: "Done", result: { path: where, line: edited.line, diff } } as const
  }).pipe(Effect.orElseSucceed(() => unknown))
)

const nowhere = "(the edit was made before a restart; the file does not say at which of several places)"

const write = Reconcile.layer(WriteFile, ({ arguments: encoded }) =>
  Effect.gen(function* () {
    const { overwrite = false, path, text } = yield* Schema.decodeUnknownEffect(WriteFile.parametersSchema)(encoded)
    const folder = yield* Folder
    const where = yield* folder.locate(path)
    const now = yield* Effect.catchTag(folder.read(path), "FileNotFound", () => Effect.void)
    if (now === undefined) return neverStarted
    // It may have held that text before: then writing it changed nothing, and is done as well.
    if (now === LineEnds.kept(now, unmarked(text))) {
      // A file of CRLF was there before: a new one has the line ends of the text.
      const created = !overwrite && now === unmarked(text)
      const diff = created ? FileDiff.unified(where, undefined, text) : replaced
      return { _tag: "Done", result: { path: where, created, diff } } as const
    }
    return overwrite ? neverStarted : unknown
  }).pipe(Effect.orElseSucceed(() => unknown))
)

const replaced = "(the file was written before a restart; what it held before is not known)"

/** The reconcilers of `write_file` and `edit_file`. */
export const reconcilers: Layer.Layer<never, never, Folder> = Layer.merge(edit, write)
