/**
 * Says whether a shell command reaches the demo itself: its program, its verbs, its store, or the processes of its user.
 *
 * It looks at the parsed command and at where paths really lead. What is certain is denied, and what is known only when it
 * runs is asked. A parsed command does not tell what the programs in it do: a script, a copy of the demo under another name
 * and a tool with settings of its own look like any other. Against those stand `Sandbox`, which hides the store, and
 * `Inside`, which refuses the answers of whatever the agent has started.
 *
 * Invariants
 *   O1  A word that leads to the store, through links, `..`, `cd` or a text within a text, is denied in any quoting.
 *   O2  A command that cannot be parsed, or has a word that is known only when it runs, is never simply let through.
 */
import { RealPaths, ShellCommand } from "@waystone/policy"
import * as Effect from "effect/Effect"
import type { FileSystem } from "effect/FileSystem"
import type { Path } from "effect/Path"
import { mark } from "./Inside.ts"

/** What is the demo's own. Paths are absolute. */
export interface Own {
  /** Files of the store; one with `-wal` or the like at its end is one, too. */
  readonly files: ReadonlyArray<string>
  /** Folders that hold nothing but stores. */
  readonly folders: ReadonlyArray<string>
  /** Files that start the demo. */
  readonly programs: ReadonlyArray<string>
  /** How its server is called: programs that speak to it, and its address. */
  readonly servers: ReadonlyArray<string>
}

export interface Objection {
  readonly action: "ask" | "deny"
  readonly why: string
}

interface Services {
  readonly fs: FileSystem
  readonly path: Path
  /** Where commands start. */
  readonly cwd: string
  /** The variables that commands get. */
  readonly env: Readonly<Record<string, string | undefined>>
}

/** Why a command is not simply run; undefined if nothing is wrong with it. */
export const objection = Effect.fnUntraced(function* (
  { cwd, env, fs, path }: Services,
  own: Own,
  command: string
): Effect.fn.Return<Objection | undefined> {
  const all = unfolded(command)
  const words = all.flatMap(({ words }) => words)
  const texts = words.map(({ text, value }) => value ?? expanded(text, env))
  const seen = said(all, texts, own)
  if (seen !== undefined) return seen
  const paths = RealPaths.make(fs, path, cwd)
  const placesOf = (file: string) => Effect.map(paths.lookup(file), (found) => found ?? [file])
  const files = (yield* Effect.forEach(own.files, placesOf)).flat()
  const folders = (yield* Effect.forEach(own.folders, placesOf)).flat()
  const programs = (yield* Effect.forEach(own.programs, placesOf)).flat()
  const wanted = candidates(all, texts)
  if (wanted.length > maxPaths) return ask("it names very many files")
  let above: string | undefined
  for (const wish of wanted) {
    if (/^\/proc\/\d/.test(path.resolve(cwd, wish))) return deny(looking)
    for (const place of (yield* paths.lookup(wish)) ?? []) {
      if (programs.includes(place)) return deny(starting)
      const isFile = files.some((file) => place === file || /^-\w+$/.test(after(file, place)))
      if (isFile || folders.some((folder) => RealPaths.isInside(path, folder, place))) return deny(storing)
      if ([...files, ...folders].some((one) => RealPaths.isInside(path, place, one))) above = wish
    }
  }
  // A glob there stands for the store, too.
  if (above !== undefined && texts.some((text) => /[*?[]/.test(text) && text.includes("/"))) return deny(storing)
  if (above !== undefined) return ask(`the store of the demo lies below ${above}`)
  return unclear(all, words, texts)
})

const deny = (why: string): Objection => ({ action: "deny", why })
const ask = (why: string): Objection => ({ action: "ask", why })
const starting = "it starts the demo itself: what waits for a person is answered by a person"
const storing = "it reaches the store of the demo, which holds what persons have answered"
const looking = "it looks into another process, such as the demo itself"

/** What stands behind a beginning; empty if it is none. */
const after = (beginning: string, text: string): string =>
  text.startsWith(beginning) ? text.slice(beginning.length) : ""

/** As deep as one command is looked for in another one's words, and as many paths as are looked up. */
const maxDepth = 4
const maxPaths = 512

/** The command, and those in the words of programs that run others (`sh -c "…"`, `eval`, `xargs`). */
const unfolded = (command: string, depth = 0): ReadonlyArray<ShellCommand.ShellCommand> => {
  const read = ShellCommand.read(command)
  if (depth === maxDepth) return [{ ...read, parsed: false }]
  const inner = read.commands.flatMap((given) => {
    const at = given.findIndex((word) => word !== undefined && ShellCommand.isIndirect(word))
    if (at < 0) return []
    const rest = given.slice(at + 1).flatMap((word) => word ?? [])
    // `eval` joins its words.
    return [...rest.filter((word) => /\s/.test(word)), ...(rest.length > 1 ? [rest.join(" ")] : [])]
  })
  return [read, ...inner.flatMap((text) => unfolded(text, depth + 1))]
}

/** A word that is known only when it runs, as far as it is known now: home and variables in their places, no quotes. */
const expanded = (text: string, env: Services["env"]): string =>
  text
    .replaceAll(/["'\\]/g, "")
    .replace(/(^|[=:])~(?=\/|$)/, (_, before: string) => `${before}${env["HOME"] ?? "~"}`)
    .replaceAll(/\$\{?(\w+)\}?/g, (whole, name: string) => env[name] ?? whole)

const runners = /^(npm|pnpm|npx|pnpx|yarn|bun|bunx|corepack)$/
const answering = /^(approve|deny|answer|approvals)$/

/** What the words alone say. */
const said = (
  all: ReadonlyArray<ShellCommand.ShellCommand>,
  texts: ReadonlyArray<string>,
  { programs, servers }: Own
): Objection | undefined => {
  if (texts.some((text) => text.includes(mark))) {
    return deny(`it touches ${mark}, by which the demo knows the agent's commands`)
  }
  const starts = all
    .flatMap(({ commands }) => commands)
    .some((words) => {
      const known = words.map((word) => word ?? "")
      const runs = known.some((word) => runners.test(ShellCommand.baseOf(word)))
      const named = known.some((word) => /(^|[:/@=])(demo|waystone)$/.test(word))
      return named && (runs || known.some((word) => answering.test(word)))
    })
  if (starts || texts.some((text) => programs.some((program) => text.includes(program)))) return deny(starting)
  if (texts.some((text) => servers.some((server) => text.includes(server)))) return deny(storing)
  return texts.some((text) => /\/proc\/[^/]*[\d*?[$][^/]*\//.test(text)) ? deny(looking) : undefined
}

/** Whatever in the words may be a path, from each folder that the command may be in. */
const candidates = (
  all: ReadonlyArray<ShellCommand.ShellCommand>,
  texts: ReadonlyArray<string>
): ReadonlyArray<string> => {
  // Whatever a glob stands for lies below the folder that it begins with.
  const fixed = texts.map((text) => /^[^*?[]*\/(?=[^/]*[*?[])/.exec(text)?.[0] ?? text)
  const parts = fixed.flatMap((text) => [text, ...(text.match(/[^\s'"`(){}[\],;:=@<>|&*?$]+/g) ?? [])])
  const folders = all.flatMap(({ commands }) =>
    commands.flatMap(([program, folder]) => (program === "cd" || program === "pushd" ? [folder ?? ""] : []))
  )
  // A `cd` whose target is expanded is among the texts.
  const from = [...new Set([...folders, ...texts.filter((text) => folders.length > 0 && text.startsWith("/"))])]
  const below = parts.flatMap((part) => (part.startsWith("/") ? [] : from.map((folder) => `${folder}/${part}`)))
  return [...new Set([...parts, ...below])].filter((part) => part !== "" && part !== "/" && part.length < 4096)
}

/** Programs that run the code of an argument. */
const interpreters = /^(node|nodejs|deno|bun|tsx|python[\d.]*|perl|ruby|php|lua|osascript)$/
const code = /^(-\w*[ecpr]|--eval|--print|eval)$/

const unclear = (
  all: ReadonlyArray<ShellCommand.ShellCommand>,
  words: ReadonlyArray<ShellCommand.ShellWord>,
  texts: ReadonlyArray<string>
): Objection | undefined => {
  if (all.some(({ parsed }) => !parsed)) return ask("it cannot be parsed")
  const commands = all.flatMap(({ commands }) => commands)
  // A home or a variable that is known now has been looked at. A glob may stand for a link.
  const open = words.find(({ value }, index) => value === undefined && !/^[\w./-]+$/.test(texts[index] ?? ""))
  if (open !== undefined) return ask(`${open.text.slice(0, 80)} is known only when it runs`)
  const hidden = commands.find(([program = ""]) => program !== "" && ShellCommand.isIndirect(program))
  if (hidden !== undefined) return ask(`${(hidden[0] ?? "").slice(0, 80)} runs other programs`)
  const coding = commands.find(
    ([program = "", ...rest]) =>
      interpreters.test(ShellCommand.baseOf(program)) && rest.some((word) => code.test(word ?? ""))
  )
  return coding === undefined ? undefined : ask("it runs code that is not looked at")
}
