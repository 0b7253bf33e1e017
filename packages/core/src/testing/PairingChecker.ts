/**
 * Checks that a history is one that every provider takes.
 *
 * Invariants
 *   K1  An assistant message with calls is followed directly by the results for exactly these ids, in order.
 *   K2  No result is without its call, and call ids are not empty and unique over the whole history.
 *   K3  No message is empty, and no text is empty or only whitespace.
 *   K4  All text is well-formed Unicode.
 *   K5  No assistant message ends with reasoning: it needs what it led to (RI-011, RI-120).
 *   K6  Names of tools are valid on the wire (RI-083), and no approval parts are sent.
 *
 * Calls and results that the provider executed itself stand inside the assistant message and need no answer of ours.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type * as Prompt from "effect/ai/Prompt"
import { CheckpointStore } from "../CheckpointStore.ts"
import { type ReadError, readEvents } from "../Journal.ts"
import { type Lift, lift, RunNotFound } from "../RunError.ts"
import * as RunState from "../RunState.ts"
import { wellFormed } from "../Text.ts"
import * as ToolName from "../ToolName.ts"

/** How to check a history. */
export interface Options {
  /** The last message may have calls without results: they are being run. Default false. */
  readonly open?: boolean
}

/** Everything that is wrong with these messages; empty if a provider takes them. */
export const violations = (
  messages: ReadonlyArray<Prompt.Message>,
  { open = false }: Options = {}
): ReadonlyArray<string> => {
  const found: Array<string> = []
  const ids = new Set<string>()
  const providerIds = new Set<string>()
  messages.forEach((message, index) => {
    const say = (what: string) => found.push(`message ${index} (${message.role}): ${what}`)
    texts(message, say)
    if (message.role === "tool") toolMessage(message, messages[index - 1], say)
    if (message.role !== "assistant") return
    calls(message, { ids, providerIds, say })
    const expected = ownCalls(message).map((call) => call.id)
    const next = messages[index + 1]
    if (expected.length === 0 || (open && next === undefined)) return
    const got = next?.role === "tool" ? resultsOf(next).map((result) => result.id) : undefined
    if (got === undefined) say(`the calls ${list(expected)} have no results in the next message`)
    else if (list(got) !== list(expected)) say(`the calls ${list(expected)} are followed by results for ${list(got)}`)
  })
  return found
}

/** What is wrong with the history of a Run after one of its events. */
export interface Violation {
  readonly seq: number
  readonly problem: string
}

/** Folds a stored Run and checks its history after every event. */
export const ofRun = (
  runId: string
): Effect.Effect<ReadonlyArray<Violation>, Lift<ReadError | RunNotFound>, CheckpointStore> =>
  lift(
    Effect.gen(function* () {
      const store = yield* CheckpointStore
      const entry = yield* store.head(runId)
      if (entry === undefined) return yield* new RunNotFound({ runId })
      const found: Array<Violation> = []
      let state = RunState.empty()
      yield* readEvents(store, runId, {
        after: 0,
        seq: entry.seq,
        each: ({ event, seq }) => {
          const before = state
          state = RunState.evolve(before, event)
          if (state.history === before.history && state.calls === before.calls) return
          for (const problem of ofState(state)) found.push({ seq, problem: `after ${event._tag}: ${problem}` })
        }
      })
      return found
    })
  )

/** The history of a state: open calls belong to its last message, and without open calls it can be sent. */
const ofState = ({ calls, history }: RunState.RunState): ReadonlyArray<string> => {
  const messages = history.slice()
  const found = violations(messages, { open: calls.length > 0 })
  if (calls.length === 0) return found
  const last = messages.at(-1)
  const open = last?.role === "assistant" ? ownCalls(last).map((call) => call.id) : []
  const known = calls.map((call) => call.wireId)
  return list(open) === list(known)
    ? found
    : [...found, `the open calls ${list(known)} are not those of the last message: ${list(open)}`]
}

type Say = (what: string) => void

const list = (ids: ReadonlyArray<string>): string => `[${ids.map((id) => JSON.stringify(id)).join(", ")}]`

/** Calls that we have to answer. */
const ownCalls = ({ content }: Prompt.AssistantMessage): ReadonlyArray<Prompt.ToolCallPart> =>
  content.filter((part) => part.type === "tool-call").filter((part) => !part.providerExecuted)

const resultsOf = ({ content }: Prompt.ToolMessage): ReadonlyArray<Prompt.ToolResultPart> =>
  content.filter((part) => part.type === "tool-result")

const calls = (
  { content }: Prompt.AssistantMessage,
  { ids, providerIds, say }: { readonly ids: Set<string>; readonly providerIds: Set<string>; readonly say: Say }
): void => {
  for (const part of content) {
    if (part.type === "tool-approval-request") say("an approval part is sent")
    if (part.type === "tool-call") {
      if (part.id === "") say(`the call of ${part.name} has an empty id`)
      else if (ids.has(part.id)) say(`the id ${part.id} is taken by an earlier call`)
      if (!part.providerExecuted && !ToolName.isValid(part.name)) say(`${part.name} is no valid name on the wire`)
      ids.add(part.id)
      if (part.providerExecuted) providerIds.add(part.id)
    }
    if (part.type === "tool-result" && !providerIds.has(part.id)) say(`the result ${part.id} has no call`)
  }
  if (content.at(-1)?.type === "reasoning") say("it ends with reasoning that nothing follows")
}

const toolMessage = (message: Prompt.ToolMessage, before: Prompt.Message | undefined, say: Say): void => {
  const asked = new Map(before?.role === "assistant" ? ownCalls(before).map((call) => [call.id, call.name]) : [])
  for (const part of message.content) {
    if (part.type !== "tool-result") {
      say("an approval part is sent")
      continue
    }
    const name = asked.get(part.id)
    if (name === undefined) say(`the result ${part.id} has no call`)
    else if (name !== part.name) say(`the result ${part.id} is named ${part.name}, its call ${name}`)
  }
}

const texts = (message: Prompt.Message, say: Say): void => {
  const { content } = message
  if (typeof content === "string") {
    if (content.trim() === "") say("its text is empty")
  } else {
    if (content.length === 0) say("it has no content")
    for (const part of content) {
      const inner = part.type === "tool-result" ? (part.modelOutput ?? []) : [part]
      if (inner.some((one) => one.type === "text" && one.text.trim() === "")) say("a text is empty")
    }
  }
  if (wellFormedMessages.has(message)) return
  if (hasLone(content)) say("a string is not well-formed Unicode")
  else wellFormedMessages.add(message)
}

/** Messages are immutable and stand in request after request, so each is looked through once. */
const wellFormedMessages = new WeakSet<Prompt.Message>()

const hasLone = (value: unknown): boolean => {
  if (typeof value === "string") return wellFormed(value) !== value
  if (typeof value !== "object" || value === null || value instanceof Uint8Array) return false
  return Object.entries(value).some(([key, inner]) => hasLone(key) || hasLone(inner))
}
