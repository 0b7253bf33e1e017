/** The code of a document, and what it has in common with the file that compiles it. */
import { readFileSync } from "node:fs"

/** A file beside the tests. */
export const read = (path: string): string => readFileSync(new URL(`../${path}`, import.meta.url), "utf8")

export const blocksOf = (document: string): ReadonlyArray<string> =>
  [...document.matchAll(/```ts\n([\s\S]*?)```/g)].map((match) => match[1] ?? "")

/** Code without white space, comments and what only one of the two places needs. */
export const bare = (code: string): string =>
  code
    .split("\n")
    .filter((line) => !/^(import|\} from) /.test(line))
    .map((line) => line.replace(/(^|\s)\/\/.*$/, ""))
    .join("")
    .replaceAll("export ", "")
    .replace(/\s/g, "")

/** A block is whole statements. */
export const statementsOf = (block: string): ReadonlyArray<string> => block.split(/\n(?=\S)(?![}\])])/).map(bare)
