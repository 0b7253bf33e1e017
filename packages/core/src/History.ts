/**
 * Keeps the messages of a Run: an append-only list whose versions share one buffer.
 *
 * Appending to the newest version is O(1); appending to an older one (a branch) copies. Old versions stay right, so a
 * fold can keep them (FACTS 2). Beside the messages it remembers which ids are taken on the wire and where turns begin.
 *
 * @since 0.1.0
 */
import type * as Prompt from "effect/ai/Prompt"

interface Shared {
  readonly messages: Array<Prompt.Message>
  /** Wire id → the length of the list before the message that took it. */
  readonly ids: Map<string, number>
}

export class History {
  private readonly shared: Shared
  /** How many messages this version has. */
  readonly length: number

  private constructor(shared: Shared, length: number) {
    this.shared = shared
    this.length = length
  }

  static empty(): History {
    return new History({ messages: [], ids: new Map() }, 0)
  }

  /** This list with one more message; `ids` are the call ids that it takes. */
  append(message: Prompt.Message, ids: ReadonlyArray<string> = []): History {
    const shared = this.shared.messages.length === this.length ? this.shared : this.branch()
    shared.messages.push(message)
    for (const id of ids) shared.ids.set(id, this.length)
    return new History(shared, this.length + 1)
  }

  /** The message at `index`, counted from 0. */
  at(index: number): Prompt.Message | undefined {
    return index < this.length ? this.shared.messages[index] : undefined
  }

  /** The messages from `start` to `end` (exclusive). */
  slice(start = 0, end = this.length): Array<Prompt.Message> {
    return this.shared.messages.slice(start, Math.min(end, this.length))
  }

  /** True if a call of this version has that id on the wire. */
  has(id: string): boolean {
    const position = this.shared.ids.get(id)
    return position !== undefined && position < this.length
  }

  private branch(): Shared {
    const ids = new Map<string, number>()
    for (const [id, position] of this.shared.ids) if (position < this.length) ids.set(id, position)
    return { messages: this.shared.messages.slice(0, this.length), ids }
  }
}
