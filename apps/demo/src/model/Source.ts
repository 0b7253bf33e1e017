/**
 * Looks at JavaScript as a reader does who knows what code looks like: declarations, what they use, where operators and
 * numbers stand. No parser; formatted code is enough.
 */

/** A declaration at the top level of a file. */
export interface Declaration {
  readonly name: string
  readonly isFunction: boolean
  /** From the first character of its line to that of the next declaration. */
  readonly start: number
  readonly end: number
}

/** An operator, a rounding or a number in the code. */
export interface Site {
  readonly token: string
  readonly at: number
  /** The code of the same declaration on its left and right. */
  readonly left: string
  readonly right: string
}

/** The same text with blanks instead of comments and strings, so that offsets stay. */
export const code = (text: string): string =>
  text.replace(/\/\*[\s\S]*?\*\/|\/\/[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`/g, (masked) =>
    masked.replace(/[^\n]/g, " ")
  )

export const declarations = (code: string): ReadonlyArray<Declaration> => {
  const found = [
    ...code.matchAll(
      /^(?:export )?(?:default )?(?:async )?(function|class|const|let|var|(?:module\.)?exports\.)\*?\s*(?<![\w$])([\w$]+)/gm
    )
  ]
  return found.map(({ 1: keyword, 2: name = "", index }, i) => {
    const end = found[i + 1]?.index ?? code.length
    const isFunction = keyword === "function" || keyword === "class" || code.slice(index, end).includes("=>")
    return { name, isFunction, start: index, end }
  })
}

/** How many calls lie between `text` and each declaration that it uses; a constant is as near as what uses it. */
export const reached = (code: string, text: string): ReadonlyMap<Declaration, number> => {
  const all = declarations(code)
  const depths = new Map<Declaration, number>()
  const visit = (user: string, calls: number): void => {
    for (const one of all) {
      const depth = one.isFunction ? calls : Math.max(0, calls - 1)
      const known = depths.get(one)
      if (!mentions(user, one.name) || (known !== undefined && known <= depth)) continue
      depths.set(one, depth)
      if (one.isFunction) visit(code.slice(one.start, one.end), calls + 1)
    }
  }
  visit(text, 0)
  return depths
}

const mentions = (text: string, name: string): boolean =>
  new RegExp(`(?<![\\w$.])${escaped(name)}(?![\\w$])`).test(text)
const escaped = (name: string): string => name.replaceAll("$", "\\$")

const tokens =
  /=>|[!=]==?|[<>]=?|&&|\|\||(?<=\s)[-+*/](?=\s)|Math\.(?:floor|ceil|round|min|max)\b|(?<![\w.$])\d[\d_]*(?:\.\d+)?(?![\w$])/g

export const sites = (code: string, { end, start }: Declaration): ReadonlyArray<Site> =>
  [...code.slice(start, end).matchAll(tokens)].map(({ 0: token, index }) => ({
    token,
    at: start + index,
    left: code.slice(start, start + index),
    right: code.slice(start + index + token.length, end)
  }))

/** What a number, or the name of a constant of the same file, is worth. */
export const valueOf = (code: string, operand: string | undefined): number | undefined => {
  if (operand === undefined) return undefined
  const literal = /^\d/.test(operand)
    ? operand
    : new RegExp(`\\b(?:const|let) ${escaped(operand)} = ([\\d_.]+)\\s*$`, "m").exec(code)?.[1]
  return literal === undefined ? undefined : Number(literal.replaceAll("_", ""))
}

/** All numbers that are written in a text. */
export const numbers = (text: string): ReadonlySet<number> =>
  new Set(
    [...text.matchAll(/(?<![\w.$])\d[\d_]*(?:\.\d+)?(?![\w$])/g)].map(([digits]) => Number(digits.replaceAll("_", "")))
  )

/** What is imported, re-exported or required by relative paths. */
export const imports = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(/(?:\bfrom|^\s*import|\brequire\(|\bimport\()\s*["'](\.[^"']*)["']/gm)].map(
    ({ 1: specifier = "" }) => specifier
  )

/** The test that the given line (from 1) stands in: up to the next one at the same indentation. */
export const testAt = (text: string, line: number): string => {
  const lines = text.split("\n")
  const starts = (one: string) => /^\s*(?:test|it)(?:\.\w+)?\(/.test(one)
  const first = Math.max(0, lines.slice(0, line).findLastIndex(starts))
  const next = lines.findIndex((one, index) => index > first && starts(one))
  return lines.slice(first, next === -1 ? undefined : next).join("\n")
}
