/**
 * Gives an agent tools for the files of one folder: list, read, search, write, edit.
 *
 * @example
 * const coder = Agent.make("coder", { instructions: "Work in the folder.", tools: [FileTools.toolkit] })
 * Run.start(coder, { runId, task }).pipe(Effect.provide(Layer.provide(FileTools.layer, Folder.layer("."))))
 *
 * @since 0.1.0
 */
import * as Layer from "effect/Layer"
import * as FileHandlers from "./FileHandlers.ts"
import * as FileReconcile from "./FileReconcile.ts"

export {
  EditFile,
  EditRefused,
  ListFiles,
  NothingRead,
  ReadFiles,
  readonly,
  SearchFiles,
  toolkit,
  WriteFile
} from "./FileToolkit.ts"

/** Handlers of all five tools, and what tells after a crash whether a write or an edit happened. Needs a `Folder`. */
export const layer = Layer.merge(FileHandlers.handlers, FileReconcile.reconcilers)
