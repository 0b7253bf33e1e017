import { describe, expect, it } from "@effect/vitest"
import * as CommandName from "../src/CommandName.ts"

describe("CommandName", () => {
  it.each([
    [["/usr/bin/sleep", "60"], "sleep 60"],
    [["node", "--api-key=sk-proj-abcdef", "x.js"], "node --api-key=[…] x.js"],
    [["mysql", "--password", "hunter2", "db"], "mysql --password […] db"],
    [["env", "OPENAI_API_KEY=abc", "node"], "env OPENAI_API_KEY=[…] node"],
    [["curl", "-H", "Authorization: Bearer abc", "http://a:b@c/"], "curl -H Authorization: […] […] http://[…]@c/"],
    [["gh", "ghp_0123456789abcdefghijABCDEFGHIJ"], "gh […]"],
    [["printf", "a\u001B[31mb\nc"], "printf ab c"],
    [[""], ""]
  ])("%j is shown as %j", ([...argv], shown) => {
    expect(CommandName.of(argv)).toBe(shown)
  })

  // Whoever read all of each would be at it for minutes.
  it.each(["key", "-key-", "a", "+", "=a1", "://", "token ", "\u0090", " ", "😀"])(
    "of hostile arguments of 2 MB only the beginning is read: %j",
    (part) => {
      const text = part.repeat(Math.ceil(2_000_000 / part.length))
      const shown = CommandName.of(["x", text.slice(0, 500), text.slice(0, 500)])
      for (let n = 0; n < 1000; n++) expect(CommandName.of(["x", text, text])).toBe(shown)
      expect(Array.from(CommandName.of([text, text, text])).length).toBeLessThanOrEqual(200)
    }
  )

  it("half a key at the cut is not shown", () => {
    for (let n = 0; n < 30; n++) {
      const shown = CommandName.of(["x", "-".repeat(n), ...Array<string>(30).fill("abc0123456789abcdefghijk")])
      expect(shown).toMatch(/^x -*[ […\]]+$/)
    }
  })

  it("a name is bounded, and never ends within a character", () => {
    const name = CommandName.of(["/x/".padEnd(500, "p"), ...Array(500).fill("😀")])
    expect(Array.from(name).length).toBeLessThanOrEqual(200)
    expect(name).not.toMatch(/\p{Surrogate}/u)
  })
})
