import { describe, expect, it } from "@effect/vitest"
import { Agent, MemoryStore, ModelInfo, Run, type RunEvent } from "@waystone/core"
import { ScriptedModel } from "@waystone/core/testing"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import { Blocks } from "../src/Blocks.ts"
import * as Whole from "../src/Whole.ts"
import * as TextProtocol from "../src/TextProtocol.ts"

const { delta, stream, text } = ScriptedModel

const Look = Tool.make("look", {
  description: "Looks there",
  parameters: Schema.Struct({ at: Schema.Number }),
  success: Schema.Struct({ seen: Schema.Number })
}).annotate(Tool.Readonly, true)
/** Every argument is optional, so that nothing but its reader keeps half a call from running. */
const Delete = Tool.make("delete", {
  parameters: Schema.Struct({ path: Schema.optionalKey(Schema.String), note: Schema.optionalKey(Schema.String) }),
  success: Schema.String
})
const Kit = Toolkit.make(Look, Delete)

const block = (json: string, name = "tool") => `\`\`\`${name}\n${json}\n\`\`\``
const look = (at: number) => block(`{"name": "look", "arguments": {"at": ${at}}}`)

/** A Run over a model without tools that writes these texts; what was run, asked, journaled and streamed. */
const ran = (script: ScriptedModel.Script, streaming = true) =>
  Effect.gen(function* () {
    const model = yield* ScriptedModel.make(script)
    const executed: Array<unknown> = []
    const handlers = Kit.toLayer({
      look: ({ at }) => Effect.sync(() => ({ seen: (executed.push(at), at * 2) })),
      delete: (given) => Effect.sync(() => (executed.push(given), "deleted"))
    })
    const agent = Agent.make("worker", { instructions: "Work.", tools: [Kit], stream: streaming })
    const info = Layer.succeed(ModelInfo.ModelInfo, { provider: "ollama", model: "small" })
    const layer = Layer.mergeAll(TextProtocol.layer(Layer.merge(model.layer, info)), MemoryStore.layer, handlers)
    return yield* Effect.gen(function* () {
      const updates = yield* Stream.runCollect(Run.stream(agent, { runId: "r", task: "go" }))
      const events = updates.flatMap((update) => (update._tag === "Committed" ? [update.event] : []))
      const shown = updates.flatMap((update) => (update._tag === "TextDelta" ? [update.text] : []))
      const requests = (yield* model.requests).map(({ messages, tools }) => ({ messages, tools }))
      return { executed, events, shown, requests, last: updates.at(-1) }
    }).pipe(Effect.provide(layer))
  })

const only = <Tag extends RunEvent.RunEvent["_tag"]>(events: ReadonlyArray<RunEvent.RunEvent>, tag: Tag) =>
  events.filter((event): event is Extract<RunEvent.RunEvent, { readonly _tag: Tag }> => event._tag === tag)

describe("the text protocol", () => {
  it.effect.each([true, false])(
    "tells of tools in text, reads calls, and gives results back as text (stream %s)",
    (streaming) =>
      Effect.gen(function* () {
        const { events, executed, last, requests } = yield* ran([text(`I look.\n${look(2)}\n`), text("4")], streaming)
        expect(last).toMatchObject({ _tag: "Ended", outcome: { _tag: "Completed", output: "4" } })
        expect(executed).toEqual([2])
        expect(requests.map(({ tools }) => tools)).toEqual([[], []])
        const [first, second] = requests
        expect(first?.messages.map(({ role }) => role)).toEqual(["system", "user"])
        const told = String(first?.messages[0]?.content)
        for (const part of ["Work.", "Looks there", '"at"', "```tool\n{", "This is wrong"]) expect(told).toContain(part)
        expect(second?.messages.map(({ role }) => role)).toEqual(["system", "user", "assistant", "user"])
        expect(JSON.stringify(second?.messages.at(-1))).toContain('Result of look:\\n```result\\n{\\"seen\\":4}')
        const [turn] = only(events, "TurnCompleted")
        expect(turn).toMatchObject({
          finish: "tool-calls",
          reply: [{ text: "I look.\n" }, { name: "look", params: { at: 2 } }]
        })
        expect(only(events, "TurnStarted")[0]).toMatchObject({ provider: "ollama", model: "small" })
      })
  )

  const written: ReadonlyArray<readonly [string, string]> = [
    ["a fence of JSON", block('{"name":"look","arguments":{"at":2}}', "json")],
    ["a fence without a name", block('{"name":"look","arguments":{"at":2}}', "")],
    ["prose around it", `Let me see.\n\n${look(2)}\n\nThat should do.`],
    ["trailing commas", block('{"name":"look","arguments":{"at":2,},}')],
    ["single quotes and Python's words", block("{'name': 'look', 'arguments': {'at': 2, 'now': True}}")],
    ["names without quotes and a comment", block('{name: "look", // there\n arguments: {at: 2}}')],
    ["a fence in the same line", 'I look: ```tool {"name":"look","arguments":{"at":2}}```'],
    ["a fence that was not closed", '```tool\n{"name":"look","arguments":{"at":2}}'],
    ["Windows line ends", block('{"name":"look","arguments":{"at":2}}').replaceAll("\n", "\r\n")],
    ["arguments that are text", block('{"name":"look","arguments":"{\\"at\\":2}"}')],
    ["a longer fence", block('{"name":"look","arguments":{"at":2}}').replaceAll("```", "````")],
    ["a fence of tildes", block('{"name":"look","arguments":{"at":2}}').replaceAll("```", "~~~")],
    ["a block behind thoughts", `<think>\nOslo, say.\n</think>\n${look(2)}`],
    ["an array of one call", block('[{"name":"look","arguments":{"at":2}}]')]
  ]
  it.effect.each(written)("RI-116 reads a call in %s", ([, reply]) =>
    Effect.gen(function* () {
      const { executed, shown } = yield* ran([text(reply), text("done")])
      expect(executed).toEqual([2])
      expect(shown.join("")).not.toMatch(/name|arguments|```/)
    })
  )

  it.effect.each([
    ["nothing", '{"name":"look","arguments":{"at":2}}'],
    ["a tag", 'I look.\n<tool_call>\n{"name":"look","arguments":{"at":2}}\n</tool_call>'],
    ["a block of another language", `I look.\n${block('{"name":"look","arguments":{"at":2}}', "python")}`]
  ] as const)(
    "RI-073 a call at the end of a reply with %s around it is no answer: the model hears how it is written",
    ([, reply]) =>
      Effect.gen(function* () {
        const { executed, last, requests } = yield* ran([text(reply), text(look(2)), text("done")])
        expect(last).toMatchObject({ _tag: "Ended", outcome: { _tag: "Completed", output: "done" } })
        expect(executed).toEqual([2])
        expect(JSON.stringify(requests[1]?.messages.at(-1))).toContain("A call was not in its block")
      })
  )

  it.effect.each([
    ["within a longer fence", `So:\n${"`".repeat(4)}md\n${look(7)}\n${look(8)}\n${"`".repeat(4)}`],
    ["within a longer fence without a name", `So:\n${"`".repeat(4)}\n${look(7)}\n${look(8)}\n${"`".repeat(4)}`],
    ["within thoughts", `<think>\n${look(7)}\n</think>\nNothing to do.`],
    ["within a thought", `\n<thought>${look(7)}</thought>\nNothing to do.`],
    ["within thinking", `<thinking>\n${look(7)}\n</thinking>Nothing to do.`],
    ["within reasoning, where another tag closes nothing", `<reasoning></think>${look(7)}</reasoning>Nothing to do.`],
    [
      "with words behind it, in another language",
      `${block('{"name":"look","arguments":{"at":2}}', "python")}\nSo it goes.`
    ]
  ] as const)("B2 an example %s is not run, in whatever pieces it comes", ([, reply]) =>
    Effect.gen(function* () {
      for (const said of [text(reply), stream([...reply].map((letter) => delta(letter)))]) {
        const { executed, last } = yield* ran([said])
        expect(last).toMatchObject({ _tag: "Ended", outcome: { _tag: "Completed", output: reply } })
        expect(executed).toEqual([])
      }
    })
  )

  it.effect.each(["<think>", "<thought>", "<thinking>", "<reasoning>"])(
    "B2 a reply that is all %s, which does not end, is no answer and runs nothing: the model is asked again",
    (tag) =>
      Effect.gen(function* () {
        const reply = `${tag}\n${look(7)}`
        for (const said of [text(reply), stream([...reply].map((letter) => delta(letter)))]) {
          const { executed, last, requests } = yield* ran([said, text("done")])
          expect(last).toMatchObject({ _tag: "Ended", outcome: { _tag: "Completed", output: "done" } })
          expect(executed).toEqual([])
          expect(JSON.stringify(requests[1]?.messages.at(-1))).toContain("all thought, which did not end")
        }
      })
  )

  // Each of these takes minutes where a delta is not read once; the limit says only that they do not hang.
  it.each([
    ["a fence and spaces", "```", "    "],
    ["a fence and tabs, behind words", "text ```", "\t\t\t\t"],
    ["spaces", "", "    "],
    ["backticks", "", "````"],
    ["tildes and words", "", "~ x~"],
    ["fences with names", "", "```js "],
    ["a thought", "<think>", "a </thin"],
    ["what begins like a thought", "  ", " \n  "]
  ])(
    "F1 %s: 400,000 characters in small deltas are read once",
    (_, begin, piece) => {
      const blocks = new Blocks()
      const pieces = [...blocks.push(begin)]
      const count = Math.ceil(400_000 / piece.length)
      for (let i = 0; i < count; i++) pieces.push(...blocks.push(piece))
      pieces.push(...blocks.push("x\n"), ...blocks.end())
      const all = `${begin}${piece.repeat(count)}x\n`
      const whole = new Blocks()
      for (const read of [pieces, [...whole.push(all), ...whole.end()]])
        expect(read.map((one) => (one._tag === "Text" ? one.text : "a block")).join("") === all).toBe(true)
    },
    10_000
  )

  it.effect(
    "F1 a Run over 200,000 spaces and a long text in small deltas ends",
    () =>
      Effect.gen(function* () {
        const pieces = [
          ...Array.from({ length: 50_000 }, () => "    "),
          ...Array.from({ length: 50_000 }, () => "word")
        ]
        const { last } = yield* ran([stream(pieces.map((piece) => delta(piece)))])
        expect(last).toMatchObject({ _tag: "Ended", outcome: { _tag: "Completed" } })
      }),
    20_000
  )

  it.each(['{"a": "', "{'a': '", '{"a": 1 /* '])("F1 JSON that is cut off behind %j is read once", (begin) => {
    const cut = begin + "\\\" /* \\' ".repeat(50_000)
    expect(Result.isFailure(Whole.parse(cut))).toBe(true)
  })

  it("a line of 400,000 characters in small deltas is read, held and given back", () => {
    const blocks = new Blocks()
    const long = `{"name":"look","arguments":{"note":"${"x".repeat(400_000)}"}}`
    const pieces = [...blocks.push("```tool\n")]
    for (let at = 0; at < long.length; at += 10) pieces.push(...blocks.push(long.slice(at, at + 10)))
    expect(pieces).toEqual([])
    expect([...blocks.push("\n```\n")]).toMatchObject([{ _tag: "Block", body: `${long}\n` }])
    const fences = new Blocks()
    const shown = Array.from({ length: 20_000 }, () => fences.push("```json { ")).flat()
    expect(shown).toEqual([])
    expect(fences.end()).toEqual([{ _tag: "Text", text: "```json { ".repeat(20_000) }])
  }, 5000)

  it.effect("what the agent is told comes first and in its order, then how to call, in one message", () =>
    Effect.gen(function* () {
      const model = yield* ScriptedModel.make([text("done")])
      yield* Effect.flatMap(LanguageModel.LanguageModel, (one) =>
        one.generateText({
          prompt: [
            { role: "system", content: "First." },
            { role: "system", content: "Second." },
            { role: "user", content: [{ type: "text", text: "go" }] }
          ],
          toolkit: Kit,
          disableToolCallResolution: true
        })
      ).pipe(Effect.provide(TextProtocol.layer(model.layer)))
      const [asked] = yield* model.requests
      expect(asked?.messages.map(({ role }) => role)).toEqual(["system", "user"])
      expect(asked?.messages[0]?.content).toMatch(/^First\.\n\nSecond\.\n\nYou can call tools/)
    })
  )

  it.effect("several blocks are several calls in their order, under ids that never repeat", () =>
    Effect.gen(function* () {
      const two = `${block('{"name":"look","arguments":{"at":2}}\n{"name":"look","arguments":{"at":3}}')}`
      const { events, executed } = yield* ran([text(`${look(1)}\nthen\n${two}`), text(look(4)), text("done")])
      expect(executed).toEqual([1, 2, 3, 4])
      const ids = only(events, "TurnCompleted").flatMap(({ reply }) =>
        reply.map((part) => ("id" in part ? part.id : ""))
      )
      expect(ids.filter((id) => id !== "")).toEqual(["text_1", "text_2", "text_3", "text_4"])
    })
  )

  const cut: ReadonlyArray<readonly [string, string]> = [
    ["inside of a string", block('{"name":"delete","arguments":{"path":"/data/a')],
    ["inside of a string, at the very end", '```tool\n{"name":"delete","arguments":{"path":"/data/a'],
    ["a string without its end", block('{"name":"delete","arguments":{"path":"/data/a}}')],
    ["a single-quoted string without its end", block("{'name':'delete','arguments':{'path':'/data/a}}")],
    ["behind the arguments", block('{"name":"delete","arguments":{"path":"/data/a"}')],
    ["a value that is missing", block('{"name":"delete","arguments":{"path":}}')],
    ["an ellipsis", block('{"name":"delete","arguments":{"path":"/a", ...}}')],
    ["no arguments", block('{"name":"delete"}')],
    ["no name", block('{"arguments":{}}')],
    ["a function call", block("delete(path='/data/a')")],
    ["nothing", block("")]
  ]
  it.effect.each(cut)("RI-104 T1 never runs what cannot be read: %s", ([, reply]) =>
    Effect.gen(function* () {
      const { events, executed, requests, shown } = yield* ran([
        text(`${look(9)}\n${reply}`),
        text(look(1)),
        text("done")
      ])
      expect(executed).toEqual([1])
      const [turn] = only(events, "TurnCompleted")
      expect(turn?.rejected?.kind).toBe("protocol")
      expect(only(events, "ToolCallCompleted")[0]).toMatchObject({ ending: "not-executed" })
      for (const { messages } of requests)
        expect(messages.filter(({ role }, i) => role === messages[i - 1]?.role)).toEqual([]) // templates want turns
      const heard = JSON.stringify(requests[1]?.messages.at(-1))
      expect(heard).toContain("could not be read")
      expect(heard).toContain(JSON.stringify(reply.split("\n")[1] ?? "").slice(1, -1))
      expect(shown.join("")).toBe("done")
    })
  )

  it.effect("T1 the third reply in a row that cannot be read fails the Run", () =>
    Effect.gen(function* () {
      const { executed, last, requests } = yield* ran([text(block("{")), text(block("{")), text(block("{"))])
      expect(last).toMatchObject({ _tag: "Failed", error: { _tag: "Fatal", reason: { _tag: "ModelRejected" } } })
      expect([executed.length, requests.length]).toEqual([0, 3])
    })
  )

  it.effect("a name that is no tool gets core's error result; other code stays text", () =>
    Effect.gen(function* () {
      const json = block('{"name":"waystone","arguments":{"version":1}}', "json")
      const code = `Like this:\n${block("print(1)", "python")}\n${json}\n${block("a\n", "")}`
      const { events, executed, last } = yield* ran([text(block('{"name":"lok","arguments":{}}')), text(code)])
      expect(executed).toEqual([])
      expect(JSON.stringify(only(events, "ToolCallCompleted")[0]?.result)).toContain("Did you mean look?")
      expect(last).toMatchObject({ outcome: { output: code } })
    })
  )

  it.effect("T2 text passes as it comes, and no piece of a call is shown, however the stream is cut", () =>
    Effect.gen(function* () {
      const reply = `One \`x\` two\n${look(2)}\nthree \`\`\`tool {"name":"look","arguments":{"at":3}}\`\`\`\nfour`
      for (const size of [1, 2, 3, 5, 7, 11, 1000]) {
        const pieces = Array.from({ length: Math.ceil(reply.length / size) }, (_, i) =>
          delta(reply.slice(i * size, (i + 1) * size))
        )
        const { executed, shown } = yield* ran([stream(pieces), text("done")])
        expect(executed).toEqual([2, 3])
        expect(shown.slice(0, -1).join("")).toBe("One `x` two\nthree four")
        if (size === 1) expect(shown.slice(0, 4)).toEqual(["O", "n", "e", " "])
      }
    })
  )

  it.effect("reasoning and usage pass through, and a reply that was cut off runs nothing", () =>
    Effect.gen(function* () {
      const long = ScriptedModel.reply([ScriptedModel.reasoning("hm"), text(look(2))], { finish: "length" })
      const { events, executed } = yield* ran([
        long,
        ScriptedModel.reply([ScriptedModel.reasoning("hm"), text("done")])
      ])
      expect(executed).toEqual([])
      expect(only(events, "TurnCompleted")[0]).toMatchObject({ finish: "length", usage: { input: 10, output: 5 } })
      expect(only(events, "TurnCompleted")[1]?.reply).toMatchObject([
        { type: "reasoning", text: "hm" },
        { text: "done" }
      ])
    })
  )
})

describe("what a provider hangs on a text", () => {
  it.effect.each([true, false])("goes with its first piece, once (stream %s)", (streaming) =>
    Effect.gen(function* () {
      const metadata = { acme: { item: "i-1" } }
      const said = `One\n${look(2)}\ntwo`
      const script = streaming
        ? stream([
            { type: "text-start", id: "t", metadata },
            { type: "text-delta", id: "t", delta: said },
            { type: "text-end", id: "t", metadata: { acme: { item: "i-1", end: true } } }
          ])
        : ScriptedModel.reply([{ type: "text", text: said, metadata }])
      const { events } = yield* ran([script, text("done")], streaming)
      const texts = only(events, "TurnCompleted")[0]?.reply.filter(({ type }) => type === "text") ?? []
      expect(texts.map((part) => "text" in part && part.text.trim())).toEqual(["One", "two"])
      expect(texts[0]).toMatchObject({ options: metadata })
      expect(JSON.stringify(texts).split('"i-1"')).toHaveLength(streaming ? 3 : 2)
    })
  )
})

it.effect("generateObject is refused before anything is asked", () =>
  Effect.gen(function* () {
    const model = yield* ScriptedModel.make([])
    const schema = Schema.Struct({ a: Schema.Number })
    const error = yield* LanguageModel.generateObject({ prompt: "go", schema }).pipe(
      Effect.provide(TextProtocol.layer(model.layer)),
      Effect.flip
    )
    expect(error).toMatchObject({ reason: { _tag: "InvalidRequestError" } })
    expect(yield* model.requests).toHaveLength(0)
  })
)

describe("a repair", () => {
  it.each([
    ["{'a': 'it\\'s', \"b\": [1, 2,],}", { a: "it's", b: [1, 2] }],
    ['{"a": "x\ny"}', { a: "x\ny" }],
    ["{a: True, b: None}", { a: true, b: null }]
  ])("W2 changes how %s is written, not what it says", (given, expected) => {
    expect(Whole.parse(given)).toEqual(Result.succeed(expected))
  })

  it.each(['{"a": [1, 2, ...]}', '{"a": }', '{"a": "b" "c"}', '{"a": 1', "a b c", '{"a": "b', "{'a': 'b}", "[1 2", ""])(
    "W1 W2 does not guess what %s should be",
    (given) => {
      expect(Result.isFailure(Whole.parse(given))).toBe(true)
    }
  )
})

describe("blocks", () => {
  it.each([
    ["```tool", "Block"],
    ["```tool\r", "Block"],
    ["``` tool \t", "Block"],
    ["```tool x", "Text"],
    [`\`\`\`${"n".repeat(21)}`, "Text"],
    ["``tool", "Text"],
    ["``~```tool", "Block"],
    ["```js ```tool", "Block"],
    ['```tool{"a\u2028": "\r', "Block"],
    ["```tool\rx", "Text"]
  ])("%j opens a %s", (line, expected) => {
    const blocks = new Blocks()
    expect([...blocks.push(`${line}\n`), ...blocks.end()].at(-1)?._tag).toBe(expected)
  })

  it.each([
    ["```", true],
    ["x\u2028```  \r", true],
    ["````", true],
    ["``", false],
    ["~~~", false],
    ["~```", false],
    ["```x", false]
  ])("%j closes one: %s", (line, closes) => {
    const blocks = new Blocks()
    expect(blocks.push(`\`\`\`tool\n${line}\n`).length).toBe(closes ? 1 : 0)
  })

  it("B1 are the same however the text is cut", () => {
    const given = `a\n${look(1)}\nb \`c\` \`\`\`js\n\`\`\`py\nx\n\`\`\`\n${block("{}", "json")}`
    const all = (size: number) => {
      const blocks = new Blocks()
      const pieces = Array.from({ length: Math.ceil(given.length / size) }, (_, i) =>
        blocks.push(given.slice(i * size, (i + 1) * size))
      ).concat([blocks.end()])
      const flat = pieces.flat()
      return [
        flat.map((piece) => (piece._tag === "Text" ? piece.text : piece.raw)).join(""),
        flat.flatMap((piece) => (piece._tag === "Block" ? [piece.body] : []))
      ]
    }
    for (let size = 1; size <= given.length; size++) expect(all(size)).toEqual(all(given.length))
    expect(all(1)[0]).toBe(given)
  })
})
