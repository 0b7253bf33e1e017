/**
 * Holds every name that telemetry uses: one table for each version of the GenAI conventions that back ends understand.
 *
 * `latest` is the first release of semantic-conventions-genai (v0.1.0). `v1.41` is the last release in which these names
 * lived with the others; it differs in a few names, and back ends lag. Nothing else in this package spells a `gen_ai.` name.
 *
 * @since 0.1.0
 */

/** Which release of the conventions is spoken. */
export type Semconv = "latest" | "v1.41"

export interface Instrument {
  readonly name: string
  readonly unit: string
  readonly description: string
  /** Upper bounds of a histogram's buckets. */
  readonly buckets?: ReadonlyArray<number>
}

/** From 10 ms to 82 s, doubling: model and tool calls (the conventions' own advice). */
const callSeconds = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]
/** From 0.1 s to 410 s, doubling: whole agents (the conventions' own advice). */
const agentSeconds = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6]
/** From 1 to 67 million, times four: tokens (the conventions' own advice). */
const tokens = [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864]
/** Calls of one invocation: the conventions advise nothing; core's default limits are of this size. */
const counts = [1, 2, 4, 8, 16, 32, 64, 128, 256]

const seconds = (name: string, description: string, buckets = callSeconds): Instrument => ({
  name,
  unit: "s",
  description,
  buckets
})
const counter = (name: string, description: string): Instrument => ({ name, unit: "{token}", description })

const latest = {
  agentName: "gen_ai.agent.name",
  cacheRead: "gen_ai.usage.cache_read.input_tokens",
  cacheWrite: "gen_ai.usage.cache_write.input_tokens",
  callArguments: "gen_ai.tool.call.arguments",
  callId: "gen_ai.tool.call.id",
  callResult: "gen_ai.tool.call.result",
  conversation: "gen_ai.conversation.id",
  compacted: "gen_ai.conversation.compacted",
  errorType: "error.type",
  finishReasons: "gen_ai.response.finish_reasons",
  firstChunk: "gen_ai.response.time_to_first_chunk",
  frequencyPenalty: "gen_ai.request.frequency_penalty",
  inputMessages: "gen_ai.input.messages",
  inputTokens: "gen_ai.usage.input_tokens",
  maxTokens: "gen_ai.request.max_tokens",
  operation: "gen_ai.operation.name",
  outputMessages: "gen_ai.output.messages",
  outputTokens: "gen_ai.usage.output_tokens",
  outputType: "gen_ai.output.type",
  presencePenalty: "gen_ai.request.presence_penalty",
  provider: "gen_ai.provider.name",
  reasoningLevel: "gen_ai.request.reasoning.level",
  reasoningTokens: "gen_ai.usage.reasoning.output_tokens",
  requestModel: "gen_ai.request.model",
  responseId: "gen_ai.response.id",
  responseModel: "gen_ai.response.model",
  seed: "gen_ai.request.seed",
  serverAddress: "server.address",
  serverPort: "server.port",
  stopSequences: "gen_ai.request.stop_sequences",
  stream: "gen_ai.request.stream",
  temperature: "gen_ai.request.temperature",
  toolName: "gen_ai.tool.name",
  toolType: "gen_ai.tool.type",
  topK: "gen_ai.request.top_k",
  topP: "gen_ai.request.top_p"
} as const

/** What an attribute is for. */
export type Attribute = keyof typeof latest

interface Metrics {
  readonly inferenceDuration: Instrument
  readonly firstChunk: Instrument
  /** Totals, by class of tokens; absent where the conventions had only the histogram with a token type. */
  readonly totals?: Readonly<Record<"input" | "output" | "cacheRead" | "cacheWrite" | "reasoning", Instrument>>
  /** The size of one call; `type` where one histogram has both sides, told apart by an attribute. */
  readonly sizes: { readonly input: Instrument; readonly output: Instrument; readonly type?: string }
  /** Attribute of the totals that must be there. */
  readonly modality?: string
  readonly agentDuration: Instrument
  readonly agentCalls: Instrument
  readonly agentTools: Instrument
  readonly toolDuration: Instrument
}

export interface Conventions {
  readonly attributes: Readonly<Record<Attribute, string>>
  readonly metrics: Metrics
  /** Where the spans' names are defined; OTLP carries it beside them. */
  readonly schemaUrl?: string
}

const agents = {
  agentDuration: seconds("gen_ai.invoke_agent.duration", "Duration of an agent's invocation.", agentSeconds),
  agentCalls: {
    name: "gen_ai.invoke_agent.inference_calls",
    unit: "{inference_call}",
    description: "Model calls of one invocation, failed ones too.",
    buckets: counts
  },
  agentTools: {
    name: "gen_ai.invoke_agent.tool_calls",
    unit: "{tool_call}",
    description: "Tool calls of one invocation, failed ones too.",
    buckets: counts
  },
  toolDuration: seconds("gen_ai.execute_tool.duration", "Duration of a tool call.")
}

const total = "gen_ai.client.inference.usage"
const size = (name: string, description: string): Instrument => ({
  name,
  unit: "{token}",
  description,
  buckets: tokens
})
const tokenUsage = size("gen_ai.client.token.usage", "Tokens of one model call.")

const tables: Readonly<Record<Semconv, Conventions>> = {
  latest: {
    attributes: latest,
    metrics: {
      ...agents,
      inferenceDuration: seconds("gen_ai.client.inference.duration", "Duration of a model call, its tries included."),
      firstChunk: seconds("gen_ai.client.inference.time_to_first_chunk", "Time to the first part of a streamed reply."),
      totals: {
        input: counter(`${total}.input_tokens`, "Input tokens, cached ones included."),
        output: counter(`${total}.output_tokens`, "Output tokens, reasoning included."),
        cacheRead: counter(`${total}.cache_read.input_tokens`, "Input tokens that were read from a cache."),
        cacheWrite: counter(`${total}.cache_write.input_tokens`, "Input tokens that were written to a cache."),
        reasoning: counter(`${total}.reasoning.output_tokens`, "Output tokens that are reasoning.")
      },
      modality: "gen_ai.token.modality",
      sizes: {
        input: size("gen_ai.client.inference.operation.input_tokens", "Input tokens of one model call."),
        output: size("gen_ai.client.inference.operation.output_tokens", "Output tokens of one model call.")
      }
    }
  },
  "v1.41": {
    attributes: { ...latest, cacheWrite: "gen_ai.usage.cache_creation.input_tokens" },
    metrics: {
      ...agents,
      inferenceDuration: seconds("gen_ai.client.operation.duration", "Duration of a model call, its tries included."),
      firstChunk: seconds("gen_ai.client.operation.time_to_first_chunk", "Time to the first part of a streamed reply."),
      sizes: { input: tokenUsage, output: tokenUsage, type: "gen_ai.token.type" }
    },
    schemaUrl: "https://opentelemetry.io/schemas/1.41.0"
  }
}

/** The table of a release. */
export const of = (semconv: Semconv): Conventions => tables[semconv]

/**
 * What the conventions call the providers that the AI SDK's packages name otherwise. A listed name must be used where it
 * fits; others go out as they are.
 */
const providers: Readonly<Record<string, string>> = {
  azure: "azure.ai.openai",
  bedrock: "aws.bedrock",
  "amazon-bedrock": "aws.bedrock",
  gemini: "gcp.gemini",
  google: "gcp.gemini",
  mistral: "mistral_ai",
  moonshotai: "moonshot_ai",
  vertex: "gcp.vertex_ai",
  vertex_ai: "gcp.vertex_ai",
  xai: "x_ai"
}

/** What stands for a provider that nobody named: the attribute is required. */
const unknownProvider = "unknown"

/** The conventions' name of a provider; `own` comes first. */
export const providerName = (name: string | undefined, own: Readonly<Record<string, string>> = {}): string => {
  if (name === undefined || name === "") return own[unknownProvider] ?? unknownProvider
  return own[name] ?? providers[name] ?? name
}

const finishes: Readonly<Record<string, string>> = { "content-filter": "content_filter", "tool-calls": "tool_calls" }

/** The conventions' word for how a reply ended. */
export const finishReason = (finish: string): string => finishes[finish] ?? finish

/** Default ports, since an address is never given without one: providers are asked over HTTPS. */
const httpsPort = 443

/** Host and port of `host`, `host:port` or `[v6]:port`; undefined for what is none of them. */
export const serverOf = (server: string): { readonly address: string; readonly port: number } | undefined => {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:/]+))(?::(\d{1,5}))?$/.exec(server)
  const address = match?.[1] ?? match?.[2]
  return address === undefined ? undefined : { address, port: Number(match?.[3] ?? httpsPort) }
}

/** Names of our own, the same in every release. */
export const own = {
  attempt: "waystone.attempt",
  callId: "waystone.call.id",
  cost: "waystone.cost.usd",
  costUnknown: "waystone.cost.unknown",
  cut: "waystone.trace.spans_cut",
  estimated: "waystone.usage.estimated",
  ending: "waystone.tool.ending",
  guard: "waystone.guard",
  outcome: "waystone.outcome",
  owner: "waystone.owner",
  rejected: "waystone.reply.rejected",
  recovered: "waystone.recovered",
  runId: "waystone.run.id",
  seq: "waystone.seq",
  stopReason: "waystone.stop.reason",
  tries: "waystone.tries",
  toolCalls: "waystone.tool_calls",
  truncated: "waystone.trace.truncated",
  turn: "waystone.turn",
  turns: "waystone.turns"
} as const
