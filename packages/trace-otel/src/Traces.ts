/**
 * Decides about a trace when no Run of it is at work here any more: all of its Runs and all spans inside them, or nothing.
 *
 * @since 0.1.0
 */
import type { Foreign } from "./Foreign.ts"
import type { Held } from "./Held.ts"
import type { Parcel } from "./Sender.ts"

interface Open {
  /** Runs that are at work: a root, and its sub-agents while they are. */
  runs: number
  kept: boolean
  readonly parcels: Array<Parcel>
}

export class Traces {
  private readonly open = new Map<string, Open>()
  private readonly foreign: Foreign
  private readonly held: Held
  private readonly deliver: (parcel: Parcel) => void
  private readonly byRun = new Map<string, string>()

  constructor(foreign: Foreign, held: Held, deliver: (parcel: Parcel) => void) {
    this.foreign = foreign
    this.held = held
    this.deliver = deliver
  }

  /** The trace of a Run that is at work here. */
  of(runId: string): string | undefined {
    return this.byRun.get(runId)
  }

  enter(runId: string, traceId: string): void {
    this.byRun.set(runId, traceId)
    const open = this.open.get(traceId)
    if (open !== undefined) {
      open.runs++
      return
    }
    this.open.set(traceId, { runs: 1, kept: false, parcels: [] })
    this.foreign.open(traceId)
  }

  /** A segment of a Run has ended, or its attempt has without one: then there is no parcel, and the next attempt has it. */
  leave(runId: string, kept: boolean, parcel?: Parcel): void {
    const traceId = this.byRun.get(runId)
    const open = traceId === undefined ? undefined : this.open.get(traceId)
    this.byRun.delete(runId)
    if (traceId === undefined || open === undefined) return
    if (parcel !== undefined) open.parcels.push(parcel)
    open.kept ||= kept
    if (--open.runs > 0) return
    this.open.delete(traceId)
    this.foreign.close(traceId, open.kept)
    for (const waiting of open.parcels) {
      if (open.kept) this.deliver(waiting)
      else this.held.give(waiting.spans?.length ?? 0)
    }
  }
}
