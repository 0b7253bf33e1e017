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
/**
 * What is looked at, in UTF-16 units: a process chooses its own name, of up to 2 MB, and naming it must take no time.
 * More than is shown, since what was taken out makes room.
 */
const maxRead = 400

/** The program's name and the beginning of its arguments; `argv` as the system gives it. At most 200 characters. */
export const of = ([program = "", ...rest]: ReadonlyArray<string>): string => {
  const file = program.slice(Math.max(program.lastIndexOf("/"), program.lastIndexOf("\\")) + 1)
  const shown = keyless(line(beginning(rest)))
  return `${shortened(line(file.slice(0, maxRead)), maxProgram)} ${shortened(shown, maxArguments)}`.trim()
}

/** Half a word at the cut is left out: it may be half a key that does not look like one. */
const beginning = (parts: ReadonlyArray<string>): string => {
  let text = ""
  for (const part of parts) {
    if (text.length + part.length >= maxRead) {
      const cut = `${text} ${part.slice(0, maxRead)}`.slice(0, maxRead)
      return cut.slice(0, cut.lastIndexOf(" ") > 0 ? cut.lastIndexOf(" ") : cut.length)
    }
    text = `${text} ${part}`
  }
  return text
}

const line = (text: string): string => plain(text).replace(/\s+/g, " ").trim()

const shortened = (text: string, max: number): string => {
  const characters = Array.from(text)
  return characters.length <= max ? text : `${characters.slice(0, max - 1).join("")}…`
}

/** Each expression takes linear time: it begins at the start of a word, and reads no word twice. */
const keyless = (text: string): string =>
  text
    .replace(/(:\/\/)[^\s/@]+@/g, "$1[…]@")
    .replace(/\b(bearer|basic|token)\s+\S+/gi, "$1 […]")
    .replace(
      /(?<![\w-])(?=[\w-]*(?:key|token|secret|passw|pwd|auth|credential|cookie))([\w-]+["']?)(\s*[:=]\s*|\s+)\S+/gi,
      "$1$2[…]"
    )
    .replace(/[\w+=-]+/g, (run, at: number, all: string) => {
      // What follows a slash or a dot is a name of a file; what follows = or + is a value again.
      const from = /[/.]/.test(all.charAt(at - 1)) ? run.search(/[+=]/) + 1 || run.length : 0
      const value = run.slice(from)
      return isRandom(value) ? `${run.slice(0, from)}[…]` : run
    })

/** Long, with letters and digits. */
const isRandom = (text: string): boolean => text.length >= 20 && /\d/.test(text) && /[A-Za-z]/.test(text)
