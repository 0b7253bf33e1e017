import { describe, expect, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import * as Capture from "../src/Capture.ts"

const message = (content: string) => ({ role: "user", parts: [{ type: "text", content }] })
const parse = (json: string): ReadonlyArray<ReturnType<typeof message>> => JSON.parse(json)

describe("Capture", () => {
  it.prop(
    "C3 what is cut stays valid JSON of the same shape and within its limit",
    [Schema.Array(Schema.String)],
    ([texts]) => {
      const { messages, object } = Capture.make({ maxBytes: 256 })
      const long = texts.map((text) => message(text.repeat(50)))
      const json = messages(long)
      expect(Buffer.byteLength(json)).toBeLessThanOrEqual(256)
      for (const { parts, role } of parse(json)) expect([role, parts[0]?.type]).toEqual(["user", "text"])
      const arguments_ = object({ texts: texts.map((text) => text.repeat(50)) })
      expect(Buffer.byteLength(arguments_)).toBeLessThanOrEqual(256)
      expect(JSON.parse(arguments_)).toBeTypeOf("object")
    }
  )

  it("C3 the newest messages are the ones that are kept", () => {
    const all = Array.from({ length: 200 }, (_, n) => message(`message ${n} ${"x".repeat(100)}`))
    const kept = parse(Capture.make({ maxBytes: 1000 }).messages(all))
    expect(kept.at(-1)?.parts[0]?.content).toContain("message 199")
    expect(kept.length).toBeLessThan(200)
  })

  it("C2 a secret is redacted before anything is cut, in names of fields too, and the shape of a message is left alone", () => {
    const secret = `key-${"9".repeat(300)}`
    const redact = (text: string) => text.replaceAll(secret, "***").replaceAll("user", "***")
    const { messages, object, text } = Capture.make({ maxBytes: 256, redact })
    const out = [messages([message(`my ${secret}`)]), object({ [secret]: [{ a: secret }] }), text(secret)].join()
    expect(out).not.toContain("999")
    expect(parse(messages([message(secret)]))[0]).toEqual({ role: "user", parts: [{ type: "text", content: "***" }] })
  })

  it("C2 a redaction that throws lets nothing out", () => {
    const redact = () => {
      throw new Error("bug")
    }
    const { object } = Capture.make({ redact })
    expect(object({ a: "SENTINEL" })).not.toContain("SENTINEL")
  })

  it("what is no object becomes the value of one", () => {
    const { object } = Capture.make({})
    expect([object("x"), object([1]), object(undefined)]).toEqual(['{"value":"x"}', '{"value":[1]}', '{"value":null}'])
  })
})
