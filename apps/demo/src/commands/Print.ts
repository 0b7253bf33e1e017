/**
 * Prints what a verb found: lines for people, or one JSON object a line for programs.
 */
import * as Effect from "effect/Effect"
import * as TerminalCapabilities from "effect/cli/TerminalCapabilities"
import * as Style from "../Style.ts"
import { write } from "../View.ts"

export interface Printed {
  readonly json: unknown
  readonly lines: (style: Style.Style) => ReadonlyArray<string>
}

/** How to print, in this process. */
export const printer = Effect.fnUntraced(function* (json: boolean) {
  const out = yield* write
  const { canColor } = yield* TerminalCapabilities.TerminalCapabilities
  const style = canColor ? Style.colours : Style.plain
  return (what: Printed) => {
    const text = json
      ? `${JSON.stringify(what.json)}\n`
      : style.safe(
          what
            .lines(style)
            .map((line) => `${line}\n`)
            .join("")
        )
    return text === "" ? Effect.void : out(text)
  }
}, Effect.provide(TerminalCapabilities.layer))

/** A line, and what it says for programs. */
export const said = (line: string, json: unknown): Printed => ({ json, lines: () => [line] })
