import { generateText, isStepCount, type LanguageModel, type ModelMessage, streamText, tool } from "ai"
import { z } from "zod"
import { add, answer, description, instructions, type Options, pause, reply, type Subject, task } from "../script.ts"

type Model = Extract<LanguageModel, { readonly specificationVersion: "v4" }>
type Prompt = Parameters<Model["doGenerate"]>[0]["prompt"]
type StreamPart = Awaited<ReturnType<Model["doStream"]>>["stream"] extends ReadableStream<infer Part> ? Part : never

const usage = {
  inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 5, text: 5, reasoning: 0 }
}
const stopped = { unified: "stop", raw: "stop" } as const
const calls = { unified: "tool-calls", raw: "tool-calls" } as const

const lastCall = (prompt: Prompt): string | undefined => {
  const last = prompt.at(-1)
  const result = last?.role === "tool" ? last.content[0] : undefined
  return result?.type === "tool-result" ? result.toolCallId : undefined
}

/** The AI SDK's loop with `stopWhen`. It keeps nothing beyond its process. */
export const make = ({ script, stream, window }: Options): Subject => {
  const next = async (prompt: Prompt) => {
    const paused = pause(script)
    if (paused !== undefined) await paused
    const call = reply(script, lastCall(prompt))
    return call === undefined
      ? undefined
      : ({ type: "tool-call", toolCallId: call.id, toolName: "add", input: JSON.stringify(call.params) } as const)
  }
  const model: Model = {
    specificationVersion: "v4",
    provider: "scripted",
    modelId: "scripted",
    supportedUrls: {},
    doGenerate: async ({ prompt }) => {
      const call = await next(prompt)
      return call === undefined
        ? { content: [{ type: "text", text: answer }], finishReason: stopped, usage, warnings: [] }
        : { content: [call], finishReason: calls, usage, warnings: [] }
    },
    doStream: async ({ prompt }) => {
      const call = await next(prompt)
      const parts: ReadonlyArray<StreamPart> =
        call === undefined
          ? [
              { type: "text-start", id: "0" },
              { type: "text-delta", id: "0", delta: answer },
              { type: "text-end", id: "0" },
              { type: "finish", finishReason: stopped, usage }
            ]
          : [call, { type: "finish", finishReason: calls, usage }]
      return {
        stream: new ReadableStream<StreamPart>({
          start(controller) {
            for (const part of parts) controller.enqueue(part)
            controller.close()
          }
        })
      }
    }
  }
  const tools = {
    add: tool({ description, inputSchema: z.object({ a: z.number(), b: z.number() }), execute: (input) => add(input) })
  }
  const shown = ({ messages }: { readonly messages: Array<ModelMessage> }) => {
    const start = window === undefined ? 0 : Math.max(0, messages.length - window)
    return { messages: messages.slice(messages[start]?.role === "tool" ? start + 1 : start) }
  }
  const options = () => ({
    model,
    tools,
    instructions,
    prompt: task,
    stopWhen: isStepCount(script.steps + 2),
    maxRetries: 0,
    ...(window === undefined ? undefined : { prepareStep: shown })
  })
  return { run: async () => (stream ? await streamText(options()).text : (await generateText(options())).text) }
}
