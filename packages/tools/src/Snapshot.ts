/**
 * Reads a regular file of a held folder once, whole, with what tells whether it is still the same later.
 *
 * Invariants
 *   S1  Only regular files: a FIFO, a socket or a device is refused, and opening one cannot hang.
 *   S2  A link is never followed, and what was opened lies in the root.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import { type BigIntStats, constants } from "node:fs"
import { type FileHandle, lstat } from "node:fs/promises"
import { attempt, type Fault, opened, refused } from "./Fault.ts"
import * as FileText from "./FileText.ts"
import type { Held } from "./Held.ts"

export interface Snapshot {
  readonly bytes: Uint8Array
  readonly dev: bigint
  readonly ino: bigint
  /** The permission bits; not setuid and setgid, which were given to another content. */
  readonly mode: number
}

/** Where the system lacks a flag, it is undefined and counts as 0. */
const safe = constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY

/** Takes one. `write`: it must be one that we may write to, since a rename would not ask. */
export const take = (held: Held, name: string, use: "read" | "write"): Effect.Effect<Snapshot, Fault> =>
  Effect.scoped(
    Effect.gen(function* () {
      // Before the open too: opening a device can already do something.
      yield* regular(yield* attempt(() => lstat(held.at(name), { bigint: true })))
      const file = yield* opened(held.at(name), (use === "read" ? constants.O_RDONLY : constants.O_RDWR) | safe)
      yield* held.confirm(file, name)
      const info = yield* attempt(() => file.stat({ bigint: true }))
      yield* regular(info)
      if (info.size > FileText.maxBytes) return yield* FileText.tooLarge
      const bytes = yield* attempt(() => all(file))
      return { bytes, dev: info.dev, ino: info.ino, mode: Number(info.mode & 0o777n) }
    })
  )

/** The same file, with the same content. Times are not compared: their grain is coarser than a quick writer. */
export const equal = (a: Snapshot, b: Snapshot): boolean =>
  a.dev === b.dev && a.ino === b.ino && Buffer.compare(a.bytes, b.bytes) === 0

const regular = (info: BigIntStats): Effect.Effect<void, Fault> => {
  if (info.isFile()) return Effect.void
  if (info.isDirectory()) return Effect.fail(refused("unavailable", "it is a folder"))
  return Effect.fail(
    info.isSymbolicLink()
      ? refused("outside", "it became a link while it was opened")
      : refused("unavailable", "it is no regular file")
  )
}

/** It may grow while it is read: one byte more than allowed is enough to know. */
const all = async (file: FileHandle): Promise<Uint8Array> => {
  const chunks: Array<Uint8Array> = []
  let size = 0
  while (size <= FileText.maxBytes) {
    const { bytesRead, buffer } = await file.read({ buffer: Buffer.alloc(65_536), position: size })
    if (bytesRead === 0) break
    chunks.push(buffer.subarray(0, bytesRead))
    size += bytesRead
  }
  return Buffer.concat(chunks)
}
