import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as OfflineModel from "../src/model/OfflineModel.ts"
import { vi } from "vitest"
import { finished, standardFile, startSources } from "./process.ts"
import { demo, real, written } from "./support.ts"
import { readFileSync } from "node:fs"
import { join } from "node:path"

vi.setConfig({ testTimeout: 120_000 })

/** No line of this file is a key that a scanner finds. */
const body = "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2"
const key = `ghp_${body}`

/** The key stands beside the mistake, in the file that is read, changed and shown, and in what a test prints. */
const project = written({
  "a.js": `export const key = "${key}"\nexport const over = (n) => n > 10\n`,
  "a.test.js": `import assert from "node:assert/strict"
import { test } from "node:test"
import { key, over } from "./a.js"
test("over", () => assert.equal(over(10), true, "with " + key))
`
})

/** The offline model, whose requests are kept. */
const listening = (requests: Array<string>) =>
  Layer.effect(
    LanguageModel.LanguageModel,
    Effect.map(Layer.build(OfflineModel.layer()), (built) => {
      const model = Effect.runSync(Effect.provideContext(LanguageModel.LanguageModel, built))
      // Its type has a parameter that no function expression can give back.
      const streamText = ((options: { readonly prompt: unknown }) => {
        requests.push(JSON.stringify(options.prompt))
        return model.streamText(options as never)
      }) as typeof model.streamText
      return { ...model, streamText }
    })
  )

describe("a key in a file", () => {
  it.live("reaches neither model nor journal nor what is shown, and stays in the file", () =>
    real(
      Effect.gen(function* () {
        const folder = yield* project
        const requests: Array<string> = []
        const { code, events, shown, verified } = yield* demo(folder, { override: listening(requests) })
        expect(code).toBe(0)
        expect(verified?.changes).toMatchObject([{ path: "a.js" }])
        expect(verified?.changes[0]?.before).toContain('key = "[redacted:github-token]"')
        expect(readFileSync(join(folder, "a.js"), "utf8")).toBe(
          `export const key = "${key}"\nexport const over = (n) => n >= 10\n`
        )
        expect(requests.length).toBeGreaterThan(3)
        for (const text of [requests, events, shown].map((all) => JSON.stringify(all))) {
          expect(text).toContain("[redacted:github-token]")
          expect(text).not.toContain(body)
        }
      })
    )
  )

  it.live("reaches neither terminal nor store", () =>
    real(
      Effect.gen(function* () {
        const folder = yield* project
        const { code, err, out } = yield* Effect.promise(() => finished(startSources("--dir", folder)))
        expect({ code, err }).toEqual({ code: 0, err: "" })
        expect(out).toContain("over")
        expect(out).not.toContain(body)
        const stored = readFileSync(standardFile(), "latin1")
        expect(stored).toContain("[redacted:github-token]")
        expect(stored).not.toContain(body)
      })
    )
  )
})

describe("the policies of a Run", () => {
  it.live("are in its journal, so that no process goes on without them", () =>
    real(
      Effect.gen(function* () {
        const { events } = yield* demo(yield* project)
        const started = events.find((event) => event._tag === "RunStarted")
        expect(started).toMatchObject({
          plugins: [
            "approvals",
            "budget",
            "loop-guard",
            "own",
            "permissions",
            expect.stringMatching(/^rules-/),
            "sanitizer"
          ]
        })
      })
    )
  )
})
