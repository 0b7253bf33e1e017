/**
 * Makes the file tools do what they say, in the `Folder` and nowhere else.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Confined } from "./Confined.ts"
import { sizeInJson } from "./Cut.ts"
import * as Edit from "./Edit.ts"
import * as Excerpts from "./Excerpts.ts"
import * as FileDiff from "./FileDiff.ts"
import { AlreadyExists } from "./FileError.ts"
import { EditRefused, type EditFile, NothingRead, type ReadFiles, toolkit, type WriteFile } from "./FileToolkit.ts"
import { Folder } from "./Folder.ts"
import * as LineEnds from "./LineEnds.ts"
import * as Search from "./Search.ts"

/** The handlers of all five tools. */
export const handlers = toolkit.toLayer(
  Effect.gen(function* () {
    const folder = yield* Folder
    return toolkit.of({
      list_files: (options) => Effect.map(folder.list(options), fitting),
      read_files: (parameters) => read(folder, parameters),
      search_files: ({ ignore_case: ignoreCase = false, ...options }) =>
        Search.search(folder, { ...options, ignoreCase }),
      write_file: (parameters) => write(folder, parameters),
      edit_file: (parameters) => edit(folder, parameters)
    })
  })
)

/** As many paths as a model can be shown. */
const fitting = ({ files, truncated }: Effect.Success<ReturnType<Confined["list"]>>) => {
  let room = Excerpts.maxTotal
  const shown = files.filter((path) => (room -= sizeInJson(path) + 3) >= 0) // quotes and comma
  return { files: shown, truncated: truncated || shown.length < files.length }
}

const read = Effect.fnUntraced(function* (folder: Confined, { files }: (typeof ReadFiles)["parametersSchema"]["Type"]) {
  const found = yield* Effect.forEach(files, ({ from_line: from = 1, path, to_line: to }) =>
    folder.read(path).pipe(
      Effect.map((text) => Excerpts.select(text, to === undefined ? { from } : { from, to })),
      Effect.catch(({ message }) => Effect.succeed(message))
    )
  )
  if (found.every((one) => typeof one === "string")) {
    const all = files.map(({ path }, index) => `${path}: ${found[index]}`)
    return yield* new NothingRead({ message: all.join("\n") })
  }
  const excerpts = Excerpts.share(found.filter((one) => typeof one !== "string"))[Symbol.iterator]()
  return {
    files: files.map(({ path }, index) => {
      const one = found[index]
      if (typeof one === "string") return { path, error: one }
      const { from, text, to, total, truncated } = excerpts.next().value ?? nothing
      const cut = truncated === undefined ? {} : { truncated }
      return { path, text, from_line: from, to_line: to, total_lines: total, ...cut }
    })
  }
})

/** There is an excerpt for each text. */
const nothing: Excerpts.Excerpt = { text: "", from: 1, to: 0, total: 0 }

const write = (folder: Confined, { overwrite = false, path, text }: (typeof WriteFile)["parametersSchema"]["Type"]) =>
  Effect.gen(function* () {
    const where = yield* folder.locate(path)
    const made = yield* Effect.result(folder.create(path, text))
    if (Result.isSuccess(made)) return { path: where, created: true, diff: FileDiff.unified(where, undefined, text) }
    if (made.failure._tag !== "AlreadyExists") return yield* made.failure
    const replace = (before: string) => {
      const wanted = LineEnds.kept(before, unmarked(text))
      return before === wanted || overwrite ? Effect.succeed(wanted) : Effect.fail(existing(path))
    }
    const { after, before } = yield* folder.update(path, replace)
    return { path: where, created: false, diff: FileDiff.unified(where, before, after) }
  })

/** The text as it is read again: a byte order mark is no part of it. */
export const unmarked = (text: string): string => text.replace(/^\uFEFF/, "")

const existing = (path: string): AlreadyExists =>
  new AlreadyExists({
    path,
    message: "the file exists with another text; change it with edit_file, or set overwrite to replace all of it"
  })

const edit = (folder: Confined, parameters: (typeof EditFile)["parametersSchema"]["Type"]) =>
  Effect.gen(function* () {
    const { new_text: newText, old_text: oldText, path } = parameters
    const where = yield* folder.locate(path)
    let line = 0
    const { after, before } = yield* folder.update(path, (text) =>
      Result.match(Edit.apply(text, { oldText, newText }), {
        onFailure: (refusal) => Effect.fail(new EditRefused({ path, ...refusal })),
        onSuccess: (edited) => Effect.sync(() => ((line = edited.line), edited.after))
      })
    )
    return { path: where, line, diff: FileDiff.unified(where, before, after) }
  })
