import { readdirSync, readFileSync } from "node:fs"
import * as Result from "effect/Result"
import { describe, expect, it } from "vitest"
import * as RunEvent from "../src/RunEvent.ts"
import * as RunState from "../src/RunState.ts"
import { project } from "./project.ts"

const folder = new URL("./fixtures/", import.meta.url)
const stories = readdirSync(folder).map((file) => ({
  file,
  ...JSON.parse(readFileSync(new URL(file, folder), "utf8"))
}))

const read = (record: unknown) => Result.getOrThrow(RunEvent.decode(JSON.stringify(record)))

describe("RunState", () => {
  it.each(stories)("S1 folds $file into the state that was written by hand: $story", ({ events, state }) => {
    expect(project(RunState.fromEvents(events.map(read)))).toEqual(state)
  })
})
