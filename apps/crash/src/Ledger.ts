/**
 * The world outside: a file that every effect appends one line to, in one write, whatever process it happens in.
 */
import { appendFileSync, existsSync, readFileSync } from "node:fs"

/** One effect that took place. */
export interface Entry {
  readonly key: string
  readonly item: string
}

/** Makes an effect happen. The kernel appends the whole line or nothing of it. */
export const happen = (file: string, { item, key }: Entry): void => appendFileSync(file, `${key} ${item}\n`)

export const read = (file: string): ReadonlyArray<Entry> =>
  existsSync(file)
    ? readFileSync(file, "utf8")
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => {
          const [key = "", item = ""] = line.split(" ")
          return { key, item }
        })
    : []

/** What the tool returns for an item: another text for each, so that results can be told apart. */
export const receipt = (item: string): string =>
  `receipt of ${item}: ${"=".repeat(item.charCodeAt(item.length - 1) % 7)}`
