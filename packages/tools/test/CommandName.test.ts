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

  it.each([
    ["key".repeat(40_000)],
    ["-key-".repeat(20_000)],
    ["a".repeat(100_000)],
    ["+".repeat(100_000)],
    ["=a1".repeat(40_000)],
    ["://".repeat(40_000)],
    ["token ".repeat(20_000)],
    ["\u0090".repeat(60_000)],
    [" ".repeat(100_000)],
    ["😀".repeat(50_000)]
  ])("a hostile name takes no time: %#", (text) => {
    const from = performance.now()
    for (let n = 0; n < 100; n++) {
      CommandName.of([text, text, text])
      CommandName.of(["x", ...Array<string>(50).fill(text.slice(0, 399))])
      CommandName.of(["x", text.slice(0, 390)])
    }
    expect(performance.now() - from).toBeLessThan(500)
  })

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
