import { readFileSync } from "node:fs"
import * as Result from "effect/Result"
import { describe, expect, it } from "vitest"
import * as Run from "../src/Run.ts"
import * as RunEvent from "../src/RunEvent.ts"
import * as Text from "../src/Text.ts"

const page = readFileSync(new URL("../../../docs/events.md", import.meta.url), "utf8")
const cellsOf = (line: string) =>
  line
    .split("|")
    .slice(1, -1)
    .map((cell) => cell.trim())

/** `agent, task?` → { agent: false, task: true }: is it optional? */
const fieldsOf = (cell: string) => {
  const names = (cell.match(/^`([^`]*)`/)?.[1] ?? "").replace(/\([^)]*\)/g, "").split(",")
  return Object.fromEntries(names.map((name) => [name.trim().replace("?", ""), name.includes("?")]))
}

const section = (title: string) => page.slice(page.indexOf(title)).split("\n## ")[0] ?? ""
const documented = section("## 2. Every event kind")
  .split("\n")
  .filter((line) => /^\| `[A-Z]/.test(line))
  .map(cellsOf)
  .map(([kind = "", nature = "", , fields = ""]) => ({
    kind: kind.replaceAll("`", ""),
    nature,
    fields: fieldsOf(fields)
  }))

const schemas = RunEvent.RunEvent.ast.types.flatMap((ast) => {
  if (ast._tag !== "Objects") return []
  const tag = ast.propertySignatures.find((field) => field.name === "_tag")?.type
  const fields = ast.propertySignatures.filter((field) => field.name !== "_tag" && field.name !== "at")
  return [
    {
      kind: tag?._tag === "Literal" ? String(tag.literal) : "",
      fields: Object.fromEntries(fields.map((field) => [String(field.name), field.type.context?.isOptional === true]))
    }
  ]
})

describe("docs/events.md", () => {
  it("lists every event kind, in the order of the schema", () => {
    expect(documented.map(({ kind }) => kind)).toEqual(schemas.map(({ kind }) => kind))
  })

  it.each(schemas)("says which fields $kind has, and which are optional", ({ fields, kind }) => {
    expect(documented.find((row) => row.kind === kind)?.fields).toEqual(fields)
  })

  it("says of every kind whether it is a fact or an intent", () => {
    const intents = documented.filter(({ nature }) => nature === "intent").map(({ kind }) => kind)
    expect(intents.toSorted()).toEqual([...RunEvent.intents].toSorted())
    expect(documented.filter(({ nature }) => nature !== "intent" && nature !== "fact")).toEqual([])
  })

  it("has a row for every verb that a status matters to, and no other", () => {
    const rows = section("## 4. Every verb in every status")
      .split("\n")
      .filter((line) => line.startsWith("| `"))
      .map((line) => line.match(/^\| `(\w+)`/)?.[1] ?? "")
    const same = new Map([
      ["checkpoints", "events"],
      ["stream", "start"],
      ["streamResume", "resume"]
    ])
    const verbs = Object.keys(Run).map((verb) => same.get(verb) ?? verb)
    expect([...new Set(rows)].toSorted()).toEqual([...new Set(verbs)].toSorted())
  })
})

describe("RunEvent", () => {
  const line = RunEvent.encode({ _tag: "PauseRequested", at: 1, by: "ann" })

  it("E1 migrates an older format by ordered steps", () => {
    const steps: ReadonlyArray<RunEvent.Migration> = [
      (record) => ({ ...record, by: `${String(record["by"])}-1` }),
      (record) => ({ ...record, by: `${String(record["by"])}-2` })
    ]
    expect(RunEvent.decode(line, steps)).toEqual(Result.succeed({ _tag: "PauseRequested", at: 1, by: "ann-1-2" }))
    const newer = line.replace('"v":1', '"v":2')
    expect(RunEvent.decode(newer, steps)).toEqual(Result.succeed({ _tag: "PauseRequested", at: 1, by: "ann-2" }))
  })

  it("E1 refuses a newer format and says which", () => {
    expect(RunEvent.decode(line.replace('"v":1', '"v":7'))).toEqual(Result.fail({ _tag: "TooNew", version: 7 }))
  })

  it.each([
    ["not JSON", "{", "$"],
    ["a number", "7", "$"],
    ["no version", '{"_tag":"PauseRequested","at":1,"by":"ann"}', "$.v"],
    ["an unknown kind", '{"v":1,"_tag":"Nope","at":1}', "$._tag"],
    ["a missing field", '{"v":1,"_tag":"PauseRequested","at":1}', "$.by"],
    ["a field of the wrong type", '{"v":1,"_tag":"TurnStarted","at":1,"turn":"1","stream":true}', "$.turn"],
    [
      "damage deep inside",
      '{"v":1,"_tag":"TurnCompleted","at":1,"turn":1,"reply":[{"type":"text","text":"a"},{"type":"text"}],"finish":"stop","usage":{"input":0,"cacheRead":0,"cacheWrite":0,"output":0,"reasoning":0}}',
      "$.reply[1].text"
    ]
  ])("E2 reports %s with its path (RI-106)", (_, line, path) => {
    expect(RunEvent.decode(line)).toEqual(Result.fail({ _tag: "Corrupt", path }))
  })

  it("RI-042 keeps NUL and lone surrogates, in lines that have neither", () => {
    const by = "a\u0000b\ud800c"
    const line = RunEvent.encode({ _tag: "PauseRequested", at: 1, by })
    expect(line.includes("\u0000")).toBe(false)
    expect(Text.wellFormed(line)).toBe(line)
    expect(RunEvent.decode(line)).toEqual(Result.succeed({ _tag: "PauseRequested", at: 1, by }))
  })
})
