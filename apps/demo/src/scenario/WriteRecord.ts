/**
 * Records every write of a file that really happens, whichever process makes it: what the outside world says, beside the
 * journal.
 *
 * The record lies beside the folder that the agent works on, so the agent does not see it.
 */
import type { Folder } from "@waystone/tools"
import * as Effect from "effect/Effect"
import { appendFile, readFile } from "node:fs/promises"
import { dirname, join } from "node:path"

/** A file was written by a process. */
export interface Write {
  readonly pid: number
  readonly path: string
}

const fileOf = (root: string): string => join(dirname(root), "writes")

/** The folder, with every change of a file recorded as soon as it is made; then `after` happens. */
export const recorded = (
  folder: Folder.Folder["Service"],
  after: Effect.Effect<void> = Effect.void
): Folder.Folder["Service"] => {
  const note = (path: string) =>
    Effect.andThen(
      Effect.promise(() => appendFile(fileOf(folder.root), `${process.pid} ${path}\n`)),
      after
    )
  return {
    ...folder,
    create: (path, text) => Effect.tap(folder.create(path, text), () => note(path)),
    update: (path, change) => Effect.tap(folder.update(path, change), () => note(path))
  }
}

/** What was recorded, in order. */
export const read = (root: string): Effect.Effect<ReadonlyArray<Write>> =>
  Effect.map(
    Effect.orElseSucceed(
      Effect.tryPromise(() => readFile(fileOf(root), "utf8")),
      () => ""
    ),
    (text) =>
      text
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => {
          const [pid = "", ...path] = line.split(" ")
          return { pid: Number(pid), path: path.join(" ") }
        })
  )
