import { describe, expect, it } from "@effect/vitest"
import * as Conventions from "../src/Conventions.ts"
import { facts, release } from "./support/Conventions.ts"

const releases = ["latest", "v1.41"] as const

describe("Conventions", () => {
  it.each(releases)("every attribute name is one that the conventions know: %s", (semconv) => {
    const { types } = release(semconv)
    const names = Object.values(Conventions.of(semconv).attributes)
    expect(names.filter((name) => !types.has(name))).toEqual([])
    expect(new Set(names).size).toBe(names.length)
  })

  it("the releases differ where the conventions do", () => {
    expect(Conventions.of("latest").attributes.cacheWrite).toBe("gen_ai.usage.cache_write.input_tokens")
    expect(Conventions.of("v1.41").attributes.cacheWrite).toBe("gen_ai.usage.cache_creation.input_tokens")
    expect(Conventions.of("v1.41").metrics.totals).toBeUndefined()
  })

  it.each(releases)("every metric has the name, unit and buckets of the conventions: %s", (semconv) => {
    const { metrics } = release(semconv)
    const { agentCalls, agentDuration, agentTools, firstChunk, inferenceDuration, sizes, toolDuration, totals } =
      Conventions.of(semconv).metrics
    const counters = totals === undefined ? [] : Object.values(totals)
    const timed = [agentDuration, firstChunk, inferenceDuration, toolDuration]
    const ours = [...timed, agentCalls, agentTools, ...counters, sizes.input, sizes.output]
    for (const { buckets, name, unit } of ours) {
      const known = metrics.find((metric) => metric.name === name)
      expect(known?.unit, name).toBe(unit)
      if (known?.buckets !== undefined) expect(buckets, name).toEqual(known.buckets)
      expect(buckets === undefined, name).toBe(known?.instrument === "counter")
    }
  })

  it("every provider that the AI SDK names otherwise becomes a listed one, and others stay what they are", () => {
    const listed = facts.attributes["gen_ai.provider.name"]?.enum ?? []
    const known = [
      "openai",
      "anthropic",
      "google",
      "vertex",
      "azure",
      "bedrock",
      "mistral",
      "xai",
      "groq",
      "moonshotai"
    ]
    for (const name of known) expect(listed).toContain(Conventions.providerName(name))
    expect(Conventions.providerName("ollama")).toBe("ollama")
    expect(Conventions.providerName("ollama", { ollama: "openai" })).toBe("openai")
    expect(Conventions.providerName(undefined)).toBe("unknown")
    expect(Conventions.providerName("", { unknown: "openai" })).toBe("openai")
  })

  it.each([
    ["api.example.com", { address: "api.example.com", port: 443 }],
    ["localhost:8080", { address: "localhost", port: 8080 }],
    ["[::1]:11434", { address: "::1", port: 11434 }],
    ["[fe80::1]", { address: "fe80::1", port: 443 }],
    ["https://api.example.com", undefined],
    ["", undefined]
  ])("an address never goes out without a port: %s", (server, expected) => {
    expect(Conventions.serverOf(server)).toEqual(expected)
  })

  it("finish reasons are written as the conventions write them", () => {
    expect(["stop", "length", "tool-calls", "content-filter"].map(Conventions.finishReason)).toEqual([
      "stop",
      "length",
      "tool_calls",
      "content_filter"
    ])
  })
})
