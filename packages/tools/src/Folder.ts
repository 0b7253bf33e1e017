/**
 * Confines file tools to one folder, for real: whoever writes the paths, and whoever swaps folders for links meanwhile.
 *
 * A path may be relative to the folder, or absolute and inside of it. Links that stay inside are followed. Writes are
 * atomic. What it does not do: guard against somebody who moves a folder that is in use out of the root, or bound what
 * may be written where inside of it (`.git` included): that is a matter of permissions.
 *
 * Invariants
 *   F1  Nothing outside of the root is read, written or listed (RI-002).
 *   F2  A file is one whole version at every moment, and a text that somebody else wrote is never overwritten unseen.
 *   F3  One change at a time; texts are UTF-8 of at most 1 MB.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import * as Confined from "./Confined.ts"
import type { FolderUnavailable } from "./FileError.ts"

export type { ListOptions } from "./Confined.ts"
export type { Updated } from "./FileOperations.ts"
export type { Listed } from "./Listing.ts"

export class Folder extends Context.Service<Folder, Confined.Confined>()("@waystone/tools/Folder") {}

/** The folder at a path, absolute or relative to where the process runs. Fails, naming it, if it cannot be used. */
export const layer = (path: string): Layer.Layer<Folder, FolderUnavailable> => Layer.effect(Folder, Confined.make(path))
