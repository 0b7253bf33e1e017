/**
 * Says in our own words why a command cannot be started.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import { constants } from "node:fs"
import { access, stat } from "node:fs/promises"
import { delimiter, resolve } from "node:path"

export interface Started {
  readonly argv: readonly [string, ...ReadonlyArray<string>]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
}

/** Why it cannot be started, or undefined. On Windows only the system knows which files are programs. */
export const refusal = Effect.fnUntraced(function* ({ argv, cwd, env }: Started) {
  const [program] = argv
  if (program === "") return "the program has no name"
  if (argv.some((part) => part.includes("\0"))) return "an argument contains a NUL character"
  const wrong = Object.entries(env).find(([name, value]) => !/^[^=\0]+$/.test(name) || value.includes("\0"))
  if (wrong !== undefined) return "a variable of its environment has no valid name, or a NUL character"
  if (cwd.includes("\0") || !(yield* is(cwd, "folder"))) return "the folder to start in does not exist"
  if (process.platform === "win32") return undefined
  if (program.includes("/")) {
    return (yield* is(resolve(cwd, program), "program")) ? undefined : "no such program, or it may not be executed"
  }
  // The same folders as execvp(3) looks in, relative ones as seen from the folder that the command starts in.
  for (const folder of (env["PATH"] ?? "/usr/bin:/bin").split(delimiter)) {
    if (yield* is(resolve(cwd, folder, program), "program")) return undefined
  }
  return "no such program in PATH"
})

const is = (path: string, kind: "folder" | "program"): Effect.Effect<boolean> =>
  Effect.tryPromise(async () => {
    const found = await stat(path)
    await access(path, constants.X_OK)
    return kind === "folder" ? found.isDirectory() : found.isFile()
  }).pipe(Effect.orElseSucceed(() => false))
