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

  it("a name is bounded, and never ends within a character", () => {
    const name = CommandName.of(["/x/".padEnd(500, "p"), ...Array(500).fill("😀")])
    expect(Array.from(name).length).toBeLessThanOrEqual(200)
    expect(name).not.toMatch(/\p{Surrogate}/u)
  })
})
