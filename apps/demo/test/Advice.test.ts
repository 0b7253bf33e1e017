import { once } from "node:events"
import { readFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { vi } from "vitest"
import * as Script from "../../../packages/models/test/servers/Script.ts"
import { serve } from "../../../packages/models/test/servers/serve.ts"
import * as Bugs from "../src/Bugs.ts"
import { discreet } from "../src/model/Discreet.ts"
import { providers } from "../src/model/Providers.ts"
import { finished, standardFile, startWith } from "./process.ts"

vi.setConfig({ testTimeout: 240_000 })

const key = "my-lan-gateway-passphrase"
const idIn = (text: string) => /demo-[0-9a-f-]{36}/.exec(text)?.[0] ?? ""
const done = (...args: ReadonlyArray<string>) =>
  Effect.promise(() => finished(startWith({ OPENAI_COMPATIBLE_API_KEY: key }, ...args)))

/** The demo asks a server that always answers so; what it printed. */
const asking = (fault: Script.Fault) =>
  Effect.gen(function* () {
    const server = yield* serve({ protocol: "openai-chat", script: () => fault, apiKey: key })
    const args = ["--model", "openai-compatible:m", "--base-url", `${server.url}/v1`]
    return { args, server, ...(yield* done(...args)) }
  })

const refusal = (message: string) => JSON.stringify({ error: { message, type: "api_error", code: null } })

describe("what a provider refuses is explained", () => {
  it.live.each([
    {
      what: "an address that is none of an API",
      fault: Script.status(404, { "content-type": "text/html" }, "<html>404 Not Found</html>"),
      advice: "has no model m there, or the address is wrong",
      goesOn: "/v1\n"
    },
    {
      what: "a page with status 200",
      fault: Script.raw("<html>wrong page</html>", "text/html"),
      advice: "name its address by --base-url (most end in /v1)",
      goesOn: "/v1\n"
    },
    {
      what: "a redirect",
      fault: Script.status(307, { location: "http://localhost:1/v1" }),
      advice: "name its address by --base-url (most end in /v1)",
      goesOn: "/v1\n"
    },
    {
      what: "a model without tools",
      fault: Script.status(400, {}, refusal("registry.ollama.ai/library/m does not support tools")),
      advice: "m has no tools of its own: tell it of them in text, by --text-protocol.",
      goesOn: "/v1 --text-protocol\n"
    },
    {
      what: "a request that it does not like",
      fault: Script.status(400, {}, refusal("temperature must be 1")),
      advice: "takes no request of this run, for the reason above: name another model by --model.",
      goesOn: "/v1\n"
    }
  ])("$what", ({ advice, fault, goesOn }) =>
    Effect.gen(function* () {
      const { code, err, out } = yield* asking(fault)
      const runId = idIn(out)
      expect({ code, err }).toEqual({ code: 1, err: "" })
      const line = out.split("\n").find((line) => line.includes("Then the run can go on")) ?? ""
      expect(line).toContain(advice)
      expect(`${line}\n`).toContain(goesOn)
      expect(line).not.toContain("API_KEY")
      expect(out).toContain("The run failed (ModelRejected).")
      expect((yield* done("show", runId)).out).toContain(`npm run demo -- resume ${runId} --model …\n`)
    })
  )
})

describe("a Run that rests because its model does not answer", () => {
  it.live("says until when, in every verb, exits 1, and a fork of it goes on at once with another model", () =>
    Effect.gen(function* () {
      const busy = Script.status(429, { "retry-after": "1800" })
      const { args, server, ...ran } = yield* asking(busy)
      const runId = idIn(ran.out)
      const at = /until (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z);/.exec(ran.out)?.[1] ?? "no time"
      const line = (resume: string) =>
        `until ${at}; then: npm run demo -- resume ${resume} ; to go on at once, as a new run: npm run demo -- fork ${runId}\n`
      expect({ code: ran.code, err: ran.err }).toEqual({ code: 1, err: "" })
      expect(ran.out).toContain("The run rests. ")
      expect(ran.out).not.toContain("The tests, run once more")
      expect(ran.out).not.toContain("The run failed")
      expect(ran.out).toContain(`The run waits ${line([runId, ...args].join(" "))}`)
      const asked = (yield* server.requests).length

      const again = yield* done("resume", runId, ...args)
      expect({ code: again.code, err: again.err }).toEqual({ code: 1, err: "" })
      expect(again.out).toContain(`The run waits ${line([runId, ...args].join(" "))}`)
      expect((yield* server.requests).length).toBe(asked)
      expect((yield* done("show", runId)).out).toContain(`it waits ${line(`${runId} --model …`)}`)

      const forked = yield* done("fork", runId)
      const fork = /New run: (\S+),/.exec(forked.out)?.[1] ?? ""
      const other = yield* done("resume", fork)
      expect({ code: other.code, err: other.err }, other.out).toEqual({ code: 0, err: "" })
      expect(other.out).toContain(`+  return ${Bugs.bundled.right}`)
    })
  )
})

describe("a key that the server repeats within a stream", () => {
  it.live("is neither shown nor stored", () =>
    Effect.gen(function* () {
      const event = `data: ${JSON.stringify({ error: { message: `No such key: ${key}.`, type: "x", code: 400 } })}\n\n`
      const { err, out } = yield* asking(Script.raw(event))
      expect(out).toContain("No such key: ….")
      expect(out + err + readFileSync(standardFile(), "latin1")).not.toContain(key)
    })
  )

  it.live.each([
    { what: "whole", given: "a key-01/2 b", known: "key-01/2", kept: "a … b" },
    { what: "in many pieces, twice", given: "éa key-01/2key-01/2 b key-0", known: "key-01/2", kept: "éa …… b key-0" },
    { what: "as JSON writes it", given: String.raw`{"a":"key-\"012"}`, known: 'key-"012', kept: '{"a":"…"}' },
    { what: "though it is but a word", given: "an ollama", known: "ollama", kept: "an ollama" }
  ])("goes $what", ({ given, kept, known, what }) =>
    Effect.promise(async () => {
      const bytes = Buffer.from(given)
      const pieces = what === "whole" ? [bytes] : Array.from(bytes, (byte) => Buffer.of(byte))
      const server = createServer(async (_, response) => {
        for (const piece of pieces) {
          response.write(piece)
          await new Promise(setImmediate)
        }
        response.end()
      }).listen(0, "127.0.0.1")
      await once(server, "listening")
      const { port } = server.address() as AddressInfo
      const response = await discreet(known)(`http://127.0.0.1:${port}`)
      expect(await response.text()).toBe(kept)
      server.close()
    })
  )
})

it.live("the help names every provider, and every variable that holds its key or its address", () =>
  Effect.gen(function* () {
    const words = new Set((yield* done("--help")).out.split(/[^\w:<>-]+/))
    for (const [provider, { addressIn, keys }] of Object.entries(providers)) {
      expect(words).toContain(`${provider}:<name>`)
      for (const variable of [...keys, ...(addressIn === undefined ? [] : [addressIn])])
        expect(words).toContain(variable)
    }
  })
)
