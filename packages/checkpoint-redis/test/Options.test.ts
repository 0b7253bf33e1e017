import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as RedisStore from "../src/RedisStore.ts"

describe("options", () => {
  it.effect.each<readonly [string, unknown]>([
    ["onWeakServer", "fial"],
    ["onWeakServer", null],
    ["commandTimeout", "abc"],
    ["commandTimeout", Number.NaN],
    ["commandTimeout", 0],
    ["commandTimeout", -1],
    ["commandTimeout", "6 seconds"],
    ["commandTimeout", null],
    ["prefix", null],
    ["prefix", 12],
    ["prefix", ["a"]],
    ["prefix", ""],
    ["prefix", "a{b}"],
    ["url", undefined],
    ["url", null],
    ["url", 12],
    ["url", Redacted.make(12)],
    ["url", ""],
    ["url", "localhost:6379"],
    ["url", "redis://u:pw-in-url@host:port"]
  ])("%s = %s is OptionInvalid, which names it, before anybody connects", ([field, value]) =>
    Effect.gen(function* () {
      // Whoever writes JavaScript can pass anything.
      const options = { url: "redis://127.0.0.1:1", ...Object.fromEntries([[field, value]]) }
      const error = yield* Effect.flip(Effect.scoped(Layer.build(RedisStore.layerUrl(options))))
      expect(error).toBeInstanceOf(RedisStore.OptionInvalid)
      expect(error).toMatchObject({ field, message: expect.stringContaining(`"${field}"`) })
      expect(JSON.stringify(error)).not.toContain("pw-in-url")
    })
  )
})
