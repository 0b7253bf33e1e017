/**
 * Names a process in few words, without what looks like a key.
 *
 * A command line can hold secrets, so of the arguments at most 80 characters are shown, after what looks like a key was
 * taken out. That is a net with holes: a secret that looks like a word is shown.
 *
 * @since 0.1.0
 */
import { plain } from "./CommandOutput.ts"

/** In characters: what tells two processes apart, and little more. */
const maxProgram = 60
const maxArguments = 80

/** The program's name and the beginning of its arguments; `argv` as the system gives it. At most 200 characters. */
export const of = (argv: ReadonlyArray<string>): string => {
  const [program = "", ...rest] = argv.map((part) => plain(part).replace(/\s+/g, " ").trim())
  const name = program.slice(Math.max(program.lastIndexOf("/"), program.lastIndexOf("\\")) + 1)
  const shown = keyless(rest.join(" ").slice(0, maxArguments * 20))
  return `${shortened(name, maxProgram)} ${shortened(shown, maxArguments)}`.trim()
}

const shortened = (text: string, max: number): string => {
  const characters = Array.from(text)
  return characters.length <= max ? text : `${characters.slice(0, max - 1).join("")}…`
}

const keyless = (text: string): string =>
  text
    .replace(/(:\/\/)[^\s/@]+@/g, "$1[…]@")
    .replace(/\b(bearer|basic|token)\s+\S+/gi, "$1 […]")
    .replace(/([\w-]*(?:key|token|secret|passw|pwd|auth|credential|cookie)[\w-]*["']?)(\s*[:=]\s*|\s+)\S+/gi, "$1$2[…]")
    .replace(/(?<![\w/.-])(?=[\w+=-]*\d)(?=[\w+=-]*[A-Za-z])[\w+=-]{20,}/g, "[…]")
