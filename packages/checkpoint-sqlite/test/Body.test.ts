import { describe, expect, it } from "@effect/vitest"
import { pack, unpack } from "../src/Body.ts"

const begin = '{"v":1,"_tag":"'

describe("the body of an append", () => {
  it.each([
    [[""]],
    [["", ""]],
    [["=", "==", "\n="]],
    [[begin, `${begin}=`, `${begin}==x`, `${begin}RunStarted"}`]],
    [[`${begin}A"}`, '{"v":2,"_tag":"A"}', `=${begin}`, begin.slice(0, -1)]],
    [["a\nb", "\r\n", "\uFEFF", "ž🧭\u2028"]],
    [["\uFEFF", "[]", "null"]]
  ])("comes back as it was: %j", (events) => {
    expect(unpack(pack(events))).toEqual(events)
  })

  it("leaves out what all events of core begin with", () => {
    expect(pack([`${begin}A"}`, `${begin}B"}`])).toBe('A"}\nB"}')
  })

  it.each([[null], [undefined], [1], [new Uint8Array([255])], [new TextEncoder().encode('{"a":1}')]])(
    "is never made of %j",
    (value) => {
      expect(unpack(value)).toBeUndefined()
    }
  )
})
