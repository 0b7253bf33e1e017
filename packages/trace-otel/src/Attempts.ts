/**
 * Follows the attempts of a Run, and what stands above them: the Run itself, its waits, its caller.
 *
 * @since 0.1.0
 */
import { type RunEvent, type RunHead } from "@waystone/core"
import * as AgentSpan from "./AgentSpan.ts"
import type * as ChatSpan from "./ChatSpan.ts"
import { own } from "./Conventions.ts"
import { attributes, type Attributes, type FinishedSpan, type SpanEvent, type SpanLink } from "./FinishedSpan.ts"
import * as SpanIds from "./SpanIds.ts"
import type { Writing } from "./Writing.ts"

/** Where an event stands; `owned`: the owner of the Run wrote it. */
export interface Place {
  readonly seq: number
  readonly at: number
  readonly owned: boolean
}

type Caller = NonNullable<RunEvent.Of<"AttemptStarted">["caller"]>

interface Open {
  readonly spanId: string
  readonly number: number
  readonly seq: number
  readonly start: number
  readonly links: ReadonlyArray<SpanLink>
  readonly caller: Caller | undefined
  readonly more: Attributes
}

/** Events that a span keeps: the limit of OpenTelemetry's own SDKs. */
const maxEvents = 128

export class Attempts {
  private readonly runId: string
  private readonly writing: Writing
  private parent: RunEvent.Parent | undefined
  private firstCaller: Caller | undefined
  /** Every span asks for it. */
  private derived: { readonly rootId: string; readonly traceId: string } | undefined
  private open: Open | undefined
  private previous: Open | undefined
  private rested: { readonly at: number; readonly seq: number; readonly kinds: ReadonlyArray<string> } | undefined
  private totals = AgentSpan.noTotals
  private all = AgentSpan.noTotals
  private events: Array<SpanEvent> = []
  private forkOf: SpanLink | undefined
  private acceptedAt = 0
  private from: number | undefined
  private until = 0
  /** The span that stands above all others, once it has been given. */
  private root: string | undefined
  /** When an owner was last seen at work. */
  lastAt = 0

  constructor(runId: string, writing: Writing) {
    this.runId = runId
    this.writing = writing
  }

  accepted({ at, parent }: RunEvent.Of<"RunAccepted">): void {
    this.parent = parent
    this.acceptedAt = at
  }

  traceId(head: RunHead.Head): string {
    if (this.firstCaller !== undefined) return this.firstCaller.traceId
    const rootId = head.parent?.rootId ?? this.runId
    if (this.derived?.rootId !== rootId) this.derived = { rootId, traceId: SpanIds.traceId(rootId) }
    return this.derived.traceId
  }

  /** When the open attempt began. What ends a sub-agent's calls from outside is one moment: its caller's call ends in it, too. */
  get start(): number {
    return this.open?.start ?? (this.parent === undefined ? 0 : Infinity)
  }

  /** What a call stands under: the open attempt, or what is above it. */
  spanId(head: RunHead.Head): string | undefined {
    return this.open?.spanId ?? this.above(head, undefined)
  }

  seen(at: number): void {
    this.lastAt = Math.max(this.lastAt, at)
  }

  note(event: SpanEvent): void {
    if (this.events.length < maxEvents) this.events.push(event)
  }

  /** A new attempt; the one before has ended, or was lost. Gives the spans that end with it. */
  begin(head: RunHead.Head, event: RunEvent.Of<"AttemptStarted">, { at, seq }: Place): ReadonlyArray<FinishedSpan> {
    const { attempt, caller, owner, recovered } = event
    const lost = this.finish(head, { _tag: "Lost", at: this.lastAt }, { cut: 0, events: [] })
    if (this.from === undefined) this.firstCaller = caller
    const waited = this.waited(head, at)
    this.enter(
      head,
      { number: attempt, seq, start: at, spanId: SpanIds.attempt(this.runId, attempt), caller },
      { [own.owner]: owner, [own.recovered]: recovered }
    )
    return [...lost, ...waited]
  }

  /** Owners work in attempts only; one that rested and found its answer there goes on as a further segment. */
  ensure(head: RunHead.Head, { at, seq }: Place): ReadonlyArray<FinishedSpan> {
    const { previous } = this
    if (this.open !== undefined || previous === undefined) return []
    const waited = this.waited(head, at)
    const { caller, more, number } = previous
    this.enter(head, { number, seq, start: at, spanId: SpanIds.event(this.runId, seq), caller }, more)
    return waited
  }

  private enter(head: RunHead.Head, open: Omit<Open, "links" | "more">, more: Attributes): void {
    const links: Array<SpanLink> = []
    const traceId = this.traceId(head)
    const link = (spanId: string, kind: string, of = traceId) =>
      links.push({ traceId: of, spanId, attributes: { "waystone.link": kind } })
    if (this.previous !== undefined) link(this.previous.spanId, "previous_attempt")
    if (this.from === undefined && this.forkOf !== undefined) links.push(this.forkOf)
    const { caller } = open
    if (caller !== undefined && this.previous !== undefined && this.parent === undefined)
      link(caller.spanId, "caller", caller.traceId)
    this.open = { ...open, links, more }
    this.from ??= open.start
    this.lastAt = open.start
    this.totals = AgentSpan.noTotals
  }

  spend(event: Exclude<ChatSpan.End, { readonly _tag: "Lost" }>): void {
    const add = (totals: AgentSpan.Totals) => {
      const more = AgentSpan.spent(totals, event.usage, event.costNanoUsd)
      return event._tag.startsWith("Turn") ? { ...more, turns: more.turns + 1 } : more
    }
    this.totals = add(this.totals)
    this.all = add(this.all)
  }

  count({ child }: RunEvent.Of<"ToolCallCompleted">): void {
    const add = (totals: AgentSpan.Totals) => ({
      ...AgentSpan.spent(totals, child?.usage, child?.costNanoUsd),
      calls: totals.calls + 1
    })
    this.totals = add(this.totals)
    this.all = add(this.all)
  }

  /** The Run rests from here on. */
  rest(head: RunHead.Head, { at, seq }: Place): void {
    const kinds = new Set<string>(head.waits.map(({ kind }) => kind))
    if (head.paused !== undefined) kinds.add("paused")
    if (head.retry !== undefined) kinds.add("retry")
    this.rested = { at, seq, kinds: [...kinds] }
  }

  /** The attempt ends, and the Run if it is finished. */
  end(
    head: RunHead.Head,
    event: RunEvent.Of<"RunSuspended"> | RunEvent.Of<"RunFinished">,
    more: { readonly cut: number; readonly events: ReadonlyArray<SpanEvent> }
  ): ReadonlyArray<FinishedSpan> {
    const spans = [...this.waited(head, event.at), ...this.finish(head, event, more)]
    if (event._tag === "RunSuspended" || this.parent !== undefined || this.root !== undefined) return spans
    return [...spans, this.whole(head, event, more)]
  }

  fork(head: RunHead.Head, { at, from }: RunEvent.Of<"RunForked">): void {
    const traceId = this.firstCaller?.traceId ?? SpanIds.traceId(head.parent?.rootId ?? from.runId)
    if (head.attempts > 0) {
      const spanId = SpanIds.attempt(from.runId, head.attempts)
      this.forkOf = { traceId, spanId, attributes: { "waystone.link": "forked_from" } }
    }
    this.parent = this.firstCaller = this.open = this.previous = this.rested = this.from = this.root = undefined
    this.totals = this.all = AgentSpan.noTotals
    this.events = []
    this.acceptedAt = at
    this.until = 0
  }

  /** Ends the open attempt, if there is one. */
  private finish(
    head: RunHead.Head,
    end: AgentSpan.End,
    { cut, events }: { readonly cut: number; readonly events: ReadonlyArray<SpanEvent> }
  ): ReadonlyArray<FinishedSpan> {
    const { open } = this
    if (open === undefined) return []
    const alone = end._tag === "RunFinished" && this.previous === undefined && this.parent === undefined
    const parentId = alone ? this.firstCaller?.spanId : this.above(head, open)
    const { more, number, seq, spanId, start } = open
    const span = this.agent(head, parentId, {
      spanId,
      start,
      end,
      totals: this.totals,
      events: [...this.events, ...events],
      links: open.links,
      more: { [own.attempt]: number, [own.seq]: seq, ...more },
      cut
    })
    if (alone) this.root = spanId
    this.until = Math.max(this.until, span.end)
    this.previous = open
    this.open = undefined
    this.events = []
    return [span]
  }

  /** The span above all attempts. */
  private whole(head: RunHead.Head, end: RunEvent.Of<"RunFinished">, { cut }: { readonly cut: number }): FinishedSpan {
    const start = this.from ?? this.acceptedAt
    this.root = SpanIds.run(this.runId)
    const links = this.forkOf === undefined || this.from !== undefined ? [] : [this.forkOf]
    const last = { ...end, at: Math.max(end.at, this.until) }
    const about = { spanId: this.root, start, end: last, totals: this.all, events: this.events, links, cut }
    return this.agent(head, this.firstCaller?.spanId, { ...about, more: { "waystone.attempts": head.attempts } })
  }

  private agent(head: RunHead.Head, parentId: string | undefined, about: Omit<AgentSpan.About, "agent">): FinishedSpan {
    const { agent, session } = head
    const { names } = this.writing
    const common = attributes({ [own.runId]: this.runId, [names.agentName]: agent, [names.conversation]: session })
    const span = AgentSpan.make(this.writing, common, { ...about, agent })
    return { ...span, traceId: this.traceId(head), ...(parentId === undefined ? undefined : { parentId }) }
  }

  /**
   * What an attempt stands under: of a sub-agent, the call that started it; outside of any, the call's span that ends it from
   * outside, which comes after those that started it.
   */
  private above(head: RunHead.Head, open: Open | undefined): string | undefined {
    if (this.parent === undefined) return this.root ?? SpanIds.run(this.runId)
    const { callId, runId } = this.parent
    return open?.caller?.spanId ?? SpanIds.call(runId, callId, open?.number ?? head.attempts + 1)
  }

  /** The time that a root Run rested. A sub-agent's is its root's. */
  private waited(head: RunHead.Head, at: number): ReadonlyArray<FinishedSpan> {
    const { rested } = this
    this.rested = undefined
    if (rested === undefined || this.parent !== undefined || this.root !== undefined) return []
    const end = Math.max(rested.at, at)
    this.until = Math.max(this.until, end)
    const kinds = rested.kinds.length === 0 ? ["nothing"] : rested.kinds
    return [
      {
        traceId: this.traceId(head),
        spanId: SpanIds.event(this.runId, rested.seq),
        parentId: SpanIds.run(this.runId),
        name: `wait ${kinds.join(" ")}`,
        kind: "internal",
        start: rested.at,
        end,
        attributes: { [own.runId]: this.runId, [own.seq]: rested.seq, "waystone.wait.kinds": kinds },
        events: [],
        links: []
      }
    ]
  }
}
