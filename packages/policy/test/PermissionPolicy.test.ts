import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import { Permissions } from "@waystone/policy"
import * as Policies from "../src/PermissionPolicy.ts"
import { explained, type Policy } from "./support/office.ts"

const rule = { action: "deny" }
const amount = (condition: unknown) => ({ rules: [rule, rule, rule, { ...rule, when: { amount: condition } }] })
/** 128 alternatives, of which a glob library may leave out some. */
const braces = `${"{a,b}".repeat(7)}/secret`

describe("a policy as data", () => {
  it.effect.each([
    [null, "$"],
    [{}, "rules"],
    [{ rules: 1 }, "rules"],
    [{ rules: [{}] }, "rules[0].action"],
    [{ rules: [rule, { action: "Allow" }] }, "rules[1].action"],
    [{ rules: [{ ...rule, tool: "x" }] }, "rules[0].tool"],
    [{ rules: [{ ...rule, tools: [] }] }, "rules[0].tools"],
    [{ rules: [{ ...rule, tools: ["a", 1] }] }, "rules[0].tools[1]"],
    [{ rules: [{ ...rule, roles: "admin" }] }, "rules[0].roles"],
    [{ rules: [{ ...rule, effects: ["writes"] }] }, "rules[0].effects[0]"],
    [amount({}), "rules[3].when.amount"],
    [amount({ max: "5" }), "rules[3].when.amount.max"],
    [amount({ min: 5, max: 1 }), "rules[3].when.amount"],
    [amount({ maximum: 5 }), "rules[3].when.amount.maximum"],
    [amount({ command: ["ls", "ls | sh"] }), "rules[3].when.amount.command[1]"],
    [amount({ command: ["git status", "A=1 git status"] }), "rules[3].when.amount.command[1]"],
    [{ rules: [{ ...rule, when: { "a..b": { max: 1 } } }] }, "rules[0].when.a..b"],
    [{ rules: [{ ...rule, when: { ".a": { max: 1 } } }] }, "rules[0].when..a"],
    [amount({ totalMax: -1 }), "rules[3].when.amount.totalMax"],
    [amount({ totalMax: 5, totalAbove: 9 }), "rules[3].when.amount"],
    ...[
      "./secret/**",
      "a/./b",
      "secrets/",
      "~/.ssh/**",
      "~",
      "../x/**",
      "{a,b/}",
      "a//b",
      "x".repeat(1001),
      braces
    ].map((glob) => [amount({ path: ["ok/**", glob] }), "rules[3].when.amount.path[1]"] as const),
    [amount({ inside: ["~"] }), "rules[3].when.amount.inside[0]"],
    [amount({ outside: [".", "~/x"] }), "rules[3].when.amount.outside[1]"],
    [{ rules: [], afterUntrusted: "deny" }, "afterUntrusted"],
    [{ rules: [], afteruntrusted: "ask" }, "afteruntrusted"]
  ])("D1 %j is refused with its place %s", ([data, field]) =>
    Effect.map(Effect.flip(Policies.decode(data)), (error) => {
      expect(error).toMatchObject({ _tag: "OptionsInvalid", policy: "Permissions", field })
      expect(error.message).toContain(field)
    })
  )

  const fromFile = (text: string | undefined) =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const folder = yield* fs.makeTempDirectoryScoped()
      const file = `${folder}/policy.json`
      if (text !== undefined) yield* fs.writeFileString(file, text)
      return yield* Permissions.Permissions.use(({ explain, policy }) =>
        Effect.map(explain({ tool: "t", effect: "unsafe", arguments: {} }), (decision) => ({ decision, policy }))
      ).pipe(Effect.provide(Permissions.layerFile(file)))
    }).pipe(Effect.provide(NodeServices.layer))

  it.live("comes from a JSON file", () =>
    Effect.map(fromFile('{"rules":[{"name":"all","action":"allow"}]}'), ({ decision, policy }) => {
      expect(policy).toEqual({ rules: [{ name: "all", action: "allow" }] })
      expect(decision).toEqual({ action: "allow", rule: "all", reason: "t is allowed" })
    })
  )

  it.live("a file that is missing, no JSON or no policy fails, naming what", () =>
    Effect.gen(function* () {
      expect(yield* Effect.flip(fromFile(undefined))).toMatchObject({ field: "$", detail: /cannot read .*NotFound/ })
      expect(yield* Effect.flip(fromFile("{"))).toMatchObject({ field: "$", detail: "is not valid JSON" })
      expect(yield* Effect.flip(fromFile('{"rules":[{"action":1}]}'))).toMatchObject({ field: "rules[0].action" })
    })
  )

  it.effect.each([
    ['{"rules":[{"action":"deny"}],"rules":[]}', "rules"],
    ['{"rules":[{"action":"allow","when":{"a":{"max":1},"b":{"equals":"a\\": "},"a":{"max":9}}}]}', "a"]
  ] as const)("D1 %s says something twice, of which only the last would count: refused", ([text, field]) =>
    Effect.map(Effect.flip(Policies.decodeJson(text)), (error) =>
      expect(error).toMatchObject({ field, detail: /twice/ })
    )
  )

  it.effect("the same key in two objects, and texts that look like keys, are not said twice", () =>
    Effect.gen(function* () {
      const when = { a: { equals: ['"a":', { a: 1 }] }, "b.a": { oneOf: [{ a: "x\\" }, 'a": 1'] } }
      const rules = [
        { action: "allow", when },
        { action: "deny", name: "a" }
      ]
      expect(yield* Policies.decodeJson(JSON.stringify({ rules }, undefined, 1))).toEqual({ rules })
    })
  )

  it.effect("a root that cannot be looked up fails, naming it", () =>
    Effect.map(
      Effect.flip(explained({ rules: [] }, { tool: "t", effect: "unsafe", arguments: {} }, { root: "/no/such" })),
      (error) => expect(error).toMatchObject({ field: "root" })
    )
  )
})

describe("shadowed rules", () => {
  const shadowed = (rules: Policy["rules"]) =>
    Permissions.Permissions.use(({ shadowed }) => Effect.succeed(shadowed)).pipe(
      Effect.provide(Layer.provide(Permissions.layer({ rules }), NodeServices.layer))
    )
  const max = { amount: { max: 5 } }

  it.effect.each([
    ["one for all", [{ action: "allow" }, { action: "deny", tools: ["a"] }]],
    [
      "a wider pattern",
      [
        { action: "allow", tools: ["a*"] },
        { action: "deny", tools: ["ab", "a*c"] }
      ]
    ],
    [
      "more roles",
      [
        { action: "allow", roles: ["x", "y"] },
        { action: "deny", roles: ["y"] }
      ]
    ],
    [
      "more classes",
      [
        { action: "ask", effects: ["unsafe", "readonly"] },
        { action: "deny", effects: ["unsafe"] }
      ]
    ],
    [
      "the same condition",
      [
        { action: "deny", when: max },
        { action: "allow", tools: ["a"], when: { ...max, b: { equals: 1 } } }
      ]
    ]
  ] as ReadonlyArray<[string, Policy["rules"]]>)("are reported: %s", ([, rules]) =>
    Effect.map(shadowed(rules), (found) => expect(found).toEqual([{ rule: "rules[1]", by: "rules[0]" }]))
  )

  it.effect.each([
    [
      "a narrower pattern",
      [
        { action: "allow", tools: ["ab"] },
        { action: "deny", tools: ["a*"] }
      ]
    ],
    ["fewer roles", [{ action: "allow", roles: ["x"] }, { action: "deny" }]],
    ["a condition of its own", [{ action: "allow", when: max }, { action: "deny" }]],
    [
      "another limit",
      [
        { action: "allow", when: max },
        { action: "allow", when: { amount: { max: 9 } } }
      ]
    ],
    // Of several values the first needs all, the second one.
    [
      "other quantifiers",
      [
        { action: "allow", when: max },
        { action: "deny", when: max }
      ]
    ],
    [
      "a sum",
      [
        { action: "allow", when: { a: { totalMax: 5 } } },
        { action: "allow", tools: ["x"], when: { a: { totalMax: 5 } } }
      ]
    ]
  ] as ReadonlyArray<[string, Policy["rules"]]>)("are not those that can decide: %s", ([, rules]) =>
    Effect.map(shadowed(rules), (found) => expect(found).toEqual([]))
  )
})
