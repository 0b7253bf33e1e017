/**
 * Reads a shell command into the simple commands that it runs, so that a rule is about what is run and not about text.
 *
 * `unbash` parses; what it cannot parse is never *plain*, and neither is anything whose meaning is not in its words.
 *
 * Invariants
 *   C1  Only a sequence (`;`, `&&`, `||`, new lines) of programs with literal arguments is plain. Substitutions,
 *       variables, globs, pipes, redirects, assignments, functions, background jobs and programs that run other programs
 *       (`eval`, `sh`, `env`, `xargs`, …) are not (RI-020).
 *   C2  Every simple command that can be seen anywhere in it, in a substitution too, is among `commands`.
 *
 * @since 0.1.0
 */
import { forEachChild, parse, type Command, type SyntaxNode, type Word } from "unbash"
import * as Wildcard from "./Wildcard.ts"

export interface ShellCommand {
  /** The words of each simple command; undefined for a word that is known only when it runs. */
  readonly commands: ReadonlyArray<ReadonlyArray<string | undefined>>
  /** Every word in it: of commands, redirects, assignments and substitutions, in the order of the text. */
  readonly words: ReadonlyArray<ShellWord>
  /** Why it is more than a sequence of simple commands; undefined if it is plain. */
  readonly beyond?: string
  /** True if all of it was understood, so that nothing that it runs is missing here. */
  readonly parsed: boolean
}

export interface ShellWord {
  /** As it is written, quotes included. */
  readonly text: string
  /** What the program gets; undefined if that is known only when it runs. */
  readonly value: string | undefined
}

/** In UTF-16 units. Longer ones are not read: nobody wrote a rule with them in mind. */
const longest = 16_384

/** Programs that run what their arguments or their input say, and words that change what later words mean. */
const indirect: ReadonlySet<string> = new Set(
  (
    "eval exec source . command builtin env sudo doas su xargs parallel nohup setsid stdbuf timeout time nice ionice " +
    "chroot unshare nsenter flock watch script ssh busybox toybox alias trap coproc enable hash " +
    "sh bash dash zsh ksh mksh ash fish csh tcsh rbash pwsh cmd cmd.exe"
  ).split(" ")
)

/** Reads a command of a POSIX shell or bash. */
export const read = (text: string): ShellCommand => {
  if (text.length > longest) return { ...unread, beyond: "it is very long" }
  try {
    const script = parse(text)
    const words: Array<ShellWord> = []
    const commands: Array<ReadonlyArray<string | undefined>> = []
    let beyond: string | undefined = strange.test(text) ? "it contains control characters or odd spaces" : undefined
    const visit = (node: SyntaxNode): void => {
      beyond ??= unplain(node)
      if (node.type === "Command") commands.push(wordsOf(node))
      if (node.type === "Word") words.push({ text: node.text, value: literal(node) })
      forEachChild(node, visit)
    }
    visit(script)
    if (commands.length === 0) beyond ??= "it runs nothing"
    const parsed = !strange.test(text) && (script.errors ?? []).length === 0
    return { commands, words, parsed, ...(beyond === undefined ? undefined : { beyond }) }
  } catch {
    return { ...unread, beyond: "it cannot be parsed" }
  }
}

const unread = { commands: [], words: [], parsed: false }

/** True if the program runs what its arguments or its input say, or changes what later words mean. */
export const isIndirect = (program: string): boolean => indirect.has(baseOf(program))

/** Shells differ in what they make of these. */
// oxlint-disable-next-line no-control-regex -- control characters are what it looks for
const strange = /[\u0000-\u0008\u000b-\u001f\u007f\u0085]|[^\S \t\n]/

/** Kinds of nodes that leave a command plain, each under its own conditions. */
const unplain = (node: SyntaxNode): string | undefined => {
  switch (node.type) {
    case "Script":
      return "errors" in node && node.errors !== undefined && node.errors.length > 0 ? "it cannot be parsed" : undefined
    case "Statement":
      return node.background === true ? "it runs in the background" : undefined
    case "Command":
      return unplainCommand(node)
    case "Word":
      return literal(node) === undefined ? `${node.text.slice(0, 80)} is known only when it runs` : undefined
    case "AndOr":
    case "Literal":
    case "SingleQuoted":
    case "DoubleQuoted":
      return undefined
    default:
      return `it contains ${said[node.type] ?? node.type}`
  }
}

const said: { readonly [type: string]: string } = {
  Pipeline: "a pipe or a negation",
  Redirect: "a redirect",
  HereDoc: "a here-document",
  HereString: "a here-string",
  Assignment: "an assignment",
  Function: "a function",
  CommandExpansion: "a substitution",
  ProcessSubstitution: "a substitution"
}

const unplainCommand = ({ name, prefix }: Command): string | undefined => {
  if (prefix.length > 0) return "it begins with an assignment or a redirect"
  const program = name === undefined ? undefined : literal(name)
  if (program === undefined || program === "") return "its program is known only when it runs"
  return isIndirect(program) ? `${program.slice(0, 80)} runs other programs` : undefined
}

const wordsOf = ({ name, suffix }: Command): ReadonlyArray<string | undefined> => {
  const words = suffix.flatMap((part) =>
    part.type === "Word" ? [literal(part)] : part.type === "Assignment" ? [part.text] : []
  )
  return name === undefined ? words : [literal(name), ...words]
}

/** The text of a word, if every shell sees the same one, whatever the files and variables are. */
const literal = (word: Word): string | undefined => {
  for (const part of word.parts ?? []) {
    if (part.type === "Literal" || part.type === "SingleQuoted") continue
    if (part.type !== "DoubleQuoted" || part.parts.some(({ type }) => type !== "Literal")) return undefined
  }
  return /^~|[=:]~/.test(word.text) ? undefined : word.value
}

/** A program's name without its folder. */
export const baseOf = (program: string): string => program.slice(program.lastIndexOf("/") + 1)

/** Texts among the words of a command that may be commands themselves: of `sh -c`, `ssh`, `watch`, `find -exec sh -c` and the like. */
export const texts = (words: ReadonlyArray<string | undefined>): ReadonlyArray<string> => {
  let runs = false
  return words.flatMap((word, i) => {
    const before = words[i - 1]
    const isText =
      word !== undefined && /\s/.test(word) && (runs || (before !== undefined && commandOption.test(before)))
    runs ||= word !== undefined && isIndirect(word)
    return isText ? [word] : []
  })
}

/** `-c`, `-lc`, `--command`. */
const commandOption = /^(?:-\w*c|--command)$/

/** Options of git that stand before its verb; those of the second kind have a value, which may be a word of its own. */
const gitFlag =
  /^(?:-[pP]|--(?:no-pager|paginate|bare|no-replace-objects|no-lazy-fetch|no-optional-locks|no-advice|\w+-pathspecs|[\w-]+=.*))$/
const gitOption = /^(?:-[cC]|--(?:git-dir|work-tree|namespace|exec-path|super-prefix|config-env|attr-source))$/

/** Without the options that git takes before its verb. */
const verbFirst = (words: ReadonlyArray<string | undefined>): ReadonlyArray<string | undefined> => {
  const [program, ...rest] = words
  if (program === undefined || baseOf(program) !== "git") return words
  let at = 0
  while (at < rest.length) {
    const word = rest[at] ?? ""
    if (gitOption.test(word)) at += 2
    else if (gitFlag.test(word)) at += 1
    else break
  }
  return [program, ...rest.slice(at)]
}

/** A pattern of a rule: words; see `PermissionPolicy`. */
export interface Pattern {
  /** True if the pattern is about exactly this command: for rules that allow. */
  readonly covers: (words: ReadonlyArray<string | undefined>) => boolean
  /**
   * True if the command is, or may run, one of the pattern: for rules that ask or deny. The program may stand behind others
   * that run it (`nice`, `strace`, `find -exec`: no list of them is complete), its folder is ignored, and so are git's options
   * before its verb.
   */
  readonly touches: (words: ReadonlyArray<string | undefined>) => boolean
}

/** Words of a pattern are split at spaces; a last word `**` stands for any further words, options too. */
export const pattern = (text: string): Pattern => {
  const words = text.trim().split(/\s+/)
  const open = words.length > 1 && words.at(-1) === "**"
  const fixed = (open ? words.slice(0, -1) : words).map((word) => {
    const matches = Wildcard.compile(word)
    // A star that comes first must not let an option in: `git log *` is not about `git log --output=x`.
    return word.startsWith("*") ? (given: string) => !given.startsWith("-") && matches(given) : matches
  })
  const fits = (count: number) => (open ? count >= fixed.length : count === fixed.length)
  // Any word could be the program of a pattern that leaves it open.
  const anywhere = words[0]?.includes("*") !== true
  const isProgram = (word: string) => fixed[0]?.(word) === true || fixed[0]?.(baseOf(word)) === true
  const matching = (given: ReadonlyArray<string | undefined>) =>
    fits(given.length) &&
    fixed.every((matches, i) => {
      const word = given[i]
      return word !== undefined && (i === 0 ? isProgram(word) : matches(word))
    })
  return {
    covers: (given) =>
      fits(given.length) &&
      given.every((word) => word !== undefined) &&
      fixed.every((matches, i) => matches(given[i] ?? "")),
    touches: (given) =>
      given.some((word, from) => {
        if (word === undefined || (from > 0 && !(anywhere && isProgram(word)))) return false
        // What ends a command of `find -exec` is none of its words.
        const end = from > 0 && (given.at(-1) === ";" || given.at(-1) === "+") ? -1 : undefined
        const rest = given.slice(from, end)
        return matching(rest) || matching(verbFirst(rest))
      })
  }
}
