/** Real folders for tests: one that tools are confined to, and what lies around it. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import * as Confined from "../../src/Confined.ts"
import type { Hold } from "../../src/Held.ts"
import * as HeldByDescriptor from "../../src/HeldByDescriptor.ts"
import * as HeldByPath from "../../src/HeldByPath.ts"

export interface Around {
  /** The folder that holds all of it. */
  readonly base: string
  /** The real path of the confined folder. */
  readonly root: string
  readonly outside: string
}

/** `<base>/root` and `<base>/outside`, removed with the scope. */
export const around: Effect.Effect<Around, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => {
    const base = realpathSync(mkdtempSync(join(tmpdir(), "waystone-tools-")))
    const [root, outside] = [join(base, "root"), join(base, "outside")]
    mkdirSync(root)
    mkdirSync(outside)
    return { base, root, outside }
  }),
  ({ base }) => Effect.sync(() => rmSync(base, { recursive: true, force: true }))
)

/** Writes files below a folder, by path. */
export const put = (folder: string, files: Readonly<Record<string, string | Uint8Array>>): void => {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), content)
  }
}

/** A confined folder with these files in it. */
export const confined = (
  files: Readonly<Record<string, string | Uint8Array>> = {},
  hold?: Hold
): Effect.Effect<Around & { readonly folder: Confined.Confined }, never, Scope.Scope> =>
  Effect.gen(function* () {
    const places = yield* around
    put(places.root, files)
    return { ...places, folder: yield* Effect.orDie(Confined.make(places.root, hold)) }
  })

/** Both ways in which folders are held; the second one is that of macOS and Windows. */
export const holds: ReadonlyArray<readonly [string, Hold]> = [
  ...(process.platform === "linux" ? [["descriptors", HeldByDescriptor.hold] as const] : []),
  ["paths", HeldByPath.hold]
]
