/**
 * Makes the tools do what they say, in the Workspace and nowhere else.
 */
import * as Effect from "effect/Effect"
import { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import * as TestRun from "./TestRun.ts"
import { FileUnavailable, NotUnique } from "./ToolErrors.ts"
import { toolkit } from "./Tools.ts"
import { Workspace } from "./Workspace.ts"

const maxFiles = 200
/** Less than the 16,000 units that a model is shown of a result. */
const maxText = 12_000

/** The handlers of all four tools. */
export const layer = toolkit.toLayer(
  Effect.gen(function* () {
    const { list, read, root, write } = yield* Workspace
    const spawner = yield* ChildProcessSpawner
    return toolkit.of({
      list_files: () =>
        list.pipe(
          Effect.map((files) => ({ files: files.slice(0, maxFiles), truncated: files.length > maxFiles })),
          Effect.mapError(({ reason }) => new FileUnavailable({ path: ".", message: reason._tag }))
        ),
      read_file: ({ path }) =>
        Effect.map(read(path), (text) => ({ path, text: text.slice(0, maxText), truncated: text.length > maxText })),
      edit_file: Effect.fnUntraced(function* ({ new_text, old_text, path }) {
        const text = yield* read(path)
        const at = text.indexOf(old_text)
        if (at === -1) return yield* new NotUnique({ path, message: "the old text does not occur in the file" })
        if (at !== text.lastIndexOf(old_text)) {
          return yield* new NotUnique({
            path,
            message: "the old text occurs more than once; take in the lines around it"
          })
        }
        yield* write(path, text.slice(0, at) + new_text + text.slice(at + old_text.length))
        return { path, line: text.slice(0, at).split("\n").length }
      }),
      run_tests: () => Effect.provideService(TestRun.run(root), ChildProcessSpawner, spawner)
    })
  })
)
