import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import * as Choice from "../src/model/Choice.ts"
import { providers } from "../src/model/Providers.ts"
import { finished, start } from "./process.ts"

const readme = readFileSync(join(import.meta.dirname, "../../../README.md"), "utf8")

/** The rows whose line asks for a model: provider, what follows `npm run demo --`, variables. */
const rows = readme.split("\n").flatMap((line) => {
  const [, name, words, keys = ""] =
    /^\| ([^|]+) \| `npm run demo -- (--model [^`|]+)` \| ([^|]*?) ?\|$/.exec(line) ?? []
  if (name === undefined || words === undefined) return []
  return [{ name, words: words.split(" "), keys: [...keys.matchAll(/`(\w+)`/g)].map(([, key]) => key) }]
})

const after = (words: ReadonlyArray<string>, flag: string) =>
  words.includes(flag) ? Option.fromUndefinedOr(words[words.indexOf(flag) + 1]) : Option.none()

const parsed = (words: ReadonlyArray<string>) =>
  Choice.parse({
    model: after(words, "--model"),
    baseUrl: after(words, "--base-url"),
    textProtocol: words.includes("--text-protocol")
  })

describe("the table of providers in README.md", () => {
  it.effect("has six rows, among them every provider that --model takes", () =>
    Effect.gen(function* () {
      expect(rows).toHaveLength(6)
      const choices = yield* Effect.forEach(rows, ({ words }) => parsed(words))
      const named = choices.map((choice) => (choice._tag === "Named" ? choice.provider : choice._tag))
      expect([...new Set(named)].toSorted()).toEqual(Choice.providers.toSorted())
    })
  )

  it.effect.each(rows)("names for $name the variables that hold its key", ({ keys, words }) =>
    Effect.gen(function* () {
      const choice = yield* parsed(words)
      if (choice._tag === "Offline") return expect.unreachable("no model is named")
      const about = providers[choice.provider]
      return expect(keys).toEqual(about.keys)
    })
  )

  it.live("has nothing to type that --help does not know: flags, providers, variables", () =>
    Effect.gen(function* () {
      const { code, out } = yield* Effect.promise(() => finished(start("--help")))
      expect(code).toBe(0)
      for (const { keys, words } of rows) {
        const [provider = ""] = Option.getOrElse(after(words, "--model"), () => "").split(":")
        expect(out).toMatch(new RegExp(`[ ,]${provider}:<name>`))
        for (const flag of words.filter((word) => word.startsWith("--")))
          expect(out).toMatch(new RegExp(`^  ${flag} `, "m"))
        for (const key of keys) expect(out).toMatch(new RegExp(`\\b${key}\\b`))
      }
    })
  )
})
