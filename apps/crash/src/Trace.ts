/**
 * What the processes of one Run met: a file that they append to, and that is still there when they are not.
 */
import { appendFileSync, existsSync, readFileSync } from "node:fs"

/**
 * `point`: it passed a point. The others are what a second process meets: `busy` (somebody else holds the Run), `lost`
 * (its Attempt was taken over), `fenced` (the store refused its append).
 */
export type What = "point" | "busy" | "lost" | "fenced"

export interface Mark {
  readonly pid: number
  readonly what: What
}

export const mark = (file: string, what: What): void => appendFileSync(file, `${process.pid} ${what}\n`)

/** Marks a point, and says how many were passed before it by any process. Lines have an order even where processes race. */
export const pass = (file: string): number => {
  mark(file, "point")
  const points = read(file).filter(({ what }) => what === "point")
  return points.findLastIndex(({ pid }) => pid === process.pid)
}

export const read = (file: string): ReadonlyArray<Mark> =>
  existsSync(file)
    ? readFileSync(file, "utf8")
        .split("\n")
        .flatMap((line) => {
          const [, pid, what] = /^(\d+) (point|busy|lost|fenced)$/.exec(line) ?? []
          return isWhat(what) ? [{ pid: Number(pid), what }] : []
        })
    : []

const isWhat = (what: string | undefined): what is What => what !== undefined
