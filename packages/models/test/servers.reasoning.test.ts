/** Reasoning that must come back unchanged, and what the fake servers say when it does not. */
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Client from "./servers/client.ts"
import { type Answer, anthropic, outputs, responses, short } from "./servers/requests.ts"
import type * as Script from "./servers/Script.ts"
import { serve } from "./servers/serve.ts"
import * as Wire from "./servers/Wire.ts"

const calling: Script.Reply = { reasoning: { text: "Let me look." }, calls: [{ name: "f" }, { name: "f" }] }
const answers = (...replies: ReadonlyArray<Script.Reply>) => ({
  script: (_: unknown, number: number) => replies[number] ?? { text: "Done." }
})

const manual = { thinking: { type: "enabled", budget_tokens: 1024 } }
const adaptive = { thinking: { type: "adaptive" } }
const sealed = { store: false, include: ["reasoning.encrypted_content"] }

/** Sends what `change` makes of the first answer, and gives the errors. */
const second = (
  protocol: Client.Name,
  change: (answer: Answer) => object,
  options: { readonly first?: object; readonly reply?: Script.Reply } = {}
) =>
  Effect.gen(function* () {
    const server = yield* serve({ protocol, ...answers(options.reply ?? calling) })
    const first = yield* Client.post(server, protocol, { ...short[protocol], max_tokens: 2048, ...options.first })
    const got = yield* Client.post(server, protocol, change(Wire.object(first.json)))
    return [got.status, ...(yield* server.rejected)]
  })

const content = (answer: Answer) => Wire.objects(answer["content"])
const without = (type: string, parts: ReadonlyArray<Answer>) => parts.filter((part) => part["type"] !== type)
const edit = (type: string, parts: ReadonlyArray<Answer>, change: object) =>
  parts.map((part) => (part["type"] === type ? { ...part, ...change } : part))

describe("anthropic's thinking", () => {
  const is = (
    title: string,
    change: (answer: Answer) => object,
    expected: RegExp | undefined,
    reply: Script.Reply = calling
  ) =>
    it.live(`${title} is ${expected === undefined ? "taken" : "rejected"}`, () =>
      Effect.map(second("anthropic", change, { first: manual, reply }), (got) =>
        expect(got).toEqual(expected === undefined ? [200] : [400, expect.stringMatching(expected)])
      )
    )
  const unverified = /Invalid `signature` in `thinking`/
  const modified = /latest assistant message cannot be modified/
  is("that comes back as it was", (a) => ({ ...anthropic(content(a)), ...manual }), undefined)
  is(
    "with another text",
    (a) => ({ ...anthropic(edit("thinking", content(a), { thinking: "x" })), ...manual }),
    unverified
  )
  is("with another signature", (a) => anthropic(edit("thinking", content(a), { signature: "x" })), unverified)
  is("without its signature", (a) => anthropic(edit("thinking", content(a), { signature: undefined })), unverified)
  is(
    "dropped in manual mode",
    (a) => ({ ...anthropic(without("thinking", content(a))), ...manual }),
    /Expected `thinking`/
  )
  is("dropped in adaptive mode", (a) => ({ ...anthropic(without("thinking", content(a))), ...adaptive }), modified)
  is("dropped with thinking off", (a) => anthropic(without("thinking", content(a))), undefined)
  is(
    "dropped in a turn that is over",
    (a) => {
      const body = anthropic(without("thinking", content(a)))
      return {
        ...body,
        ...manual,
        messages: [...body.messages, { role: "assistant", content: "Ok" }, ...body.messages.slice(0, 1)]
      }
    },
    undefined
  )
  const hidden: Script.Reply = { ...calling, reasoning: { text: "a", redacted: true } }
  is("that is redacted and comes back", (a) => ({ ...anthropic(content(a)), ...manual }), undefined, hidden)
  is(
    "that is redacted and changed",
    (a) => anthropic(edit("redacted_thinking", content(a), { data: "x" })),
    /Invalid/,
    hidden
  )

  it.live("of a later step in the loop must be there too, and of an earlier one may come from another server", () =>
    Effect.gen(function* () {
      const server = yield* serve({ protocol: "anthropic", ...answers(calling, calling) })
      const one = content(Wire.object((yield* Client.post(server, "anthropic", short.anthropic)).json))
      const two = content(Wire.object((yield* Client.post(server, "anthropic", anthropic(one))).json))
      const good = { ...anthropic(one, two), ...manual }
      const bad = { ...anthropic(one, without("thinking", two)), ...manual }
      const other = yield* serve({ protocol: "anthropic", ...answers() })
      expect((yield* Client.post(server, "anthropic", good)).status).toBe(200)
      expect((yield* Client.post(server, "anthropic", bad)).text).toMatch(modified)
      expect((yield* Client.post(other, "anthropic", good)).status).toBe(200)
    })
  )
})

const output = (answer: Answer) => Wire.objects(answer["output"])

describe("the reasoning of openai-responses", () => {
  const is = (
    title: string,
    change: (answer: Answer) => object,
    expected: ReadonlyArray<unknown>,
    first: object = {}
  ) =>
    it.live(`${title} is ${expected[0] === 200 ? "taken" : "rejected"}`, () =>
      Effect.map(second("openai-responses", change, { first }), (got) => expect(got).toEqual(expected))
    )
  const no = (status: number, message: RegExp) => [status, expect.stringMatching(message)]
  const references = (answer: Answer) => [
    ...output(answer).map(({ id }) => ({ type: "item_reference", id })),
    ...outputs(output(answer))
  ]
  is("that comes back stored", (a) => responses(output(a)), [200])
  is("that comes back sealed", (a) => responses(output(a), sealed), [200], sealed)
  is("that comes back by reference", (a) => ({ model: "m", input: references(a) }), [200])
  is(
    "that comes back by reference and was not stored",
    (a) => ({ model: "m", input: references(a) }),
    no(404, /rs_0/),
    sealed
  )
  is(
    "that comes back with the whole response by its id",
    (a) => ({ model: "m", previous_response_id: a["id"], input: outputs(output(a)) }),
    [200]
  )
  is(
    "of a response that was not stored, by its id",
    (a) => ({ model: "m", previous_response_id: a["id"], input: outputs(output(a)) }),
    no(400, /previous_response_not_found/),
    sealed
  )
  is(
    "dropped before its calls",
    (a) => responses(without("reasoning", output(a))),
    no(400, /'fc_0_0'.*required 'reasoning' item: 'rs_0'/)
  )
  is("after its calls", (a) => responses([...output(a)].reverse()), no(400, /'fc_0_1'.*required 'reasoning'/))
  is(
    "without its calls",
    (a) => responses(without("function_call", output(a))),
    no(400, /'rs_0'.*required following item/)
  )
  is(
    "with another seal",
    (a) => responses(edit("reasoning", output(a), { encrypted_content: "x" }), sealed),
    no(400, /invalid_encrypted_content/),
    sealed
  )
  is(
    "without its seal",
    (a) => responses(edit("reasoning", output(a), { encrypted_content: null }), sealed),
    no(404, /not persisted/),
    sealed
  )
  is(
    "before a user message instead of its calls",
    (a) => responses([...without("function_call", output(a)), { role: "user", content: "So?" }]),
    no(400, /'rs_0'.*required following item/)
  )
  is(
    "dropped with the ids of its calls",
    (a) => responses(without("reasoning", edit("function_call", output(a), { id: undefined }))),
    [200]
  )
})
