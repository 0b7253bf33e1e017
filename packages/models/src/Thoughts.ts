/**
 * Tells what a model thinks aloud, in `<think>…</think>` or its like at the beginning of its text, from what it says.
 *
 * @since 0.1.0
 */

/** What models call it. */
const opens = ["<think>", "<thought>", "<thinking>", "<reasoning>"]

interface Told {
  readonly thought: string
  readonly text: string
}

const nothing: Told = { thought: "", text: "" }

/** One text; `thought` ends with the closing tag, `text` is all behind it. A tag that never closes is all thought. */
export class Thoughts {
  private state: "unknown" | "thinking" | "speaking" = "unknown"
  /** White space before anything else: it may be long, and is looked at once. */
  private space = ""
  private held = ""
  private closes = ""

  /** A thought has begun and has not ended. */
  get open(): boolean {
    return this.state === "thinking"
  }

  push(delta: string): Told {
    if (this.state === "speaking") return { thought: "", text: delta }
    return this.state === "unknown" ? this.begin(delta) : this.think(delta)
  }

  end(): Told {
    const all = this.space + this.held
    this.space = ""
    this.held = ""
    return this.state === "thinking" ? { thought: all, text: "" } : { thought: "", text: all }
  }

  private begin(delta: string): Told {
    const more = this.held === "" ? delta.trimStart() : delta
    this.space += delta.slice(0, delta.length - more.length)
    this.held += more
    const tag = opens.find((open) => this.held.startsWith(open))
    if (tag === undefined && opens.some((open) => open.startsWith(this.held))) return nothing
    const space = this.space
    const all = this.held
    this.space = ""
    this.held = ""
    this.state = tag === undefined ? "speaking" : "thinking"
    if (tag === undefined) return { thought: "", text: space + all }
    this.closes = tag.replace("<", "</")
    const { text, thought } = this.think(all)
    return { thought: space + thought, text }
  }

  private think(delta: string): Told {
    const all = this.held + delta
    const end = all.indexOf(this.closes)
    const closed = end !== -1
    if (closed) this.state = "speaking"
    // The end may be the beginning of the closing tag.
    const at = closed ? end + this.closes.length : Math.max(0, all.length - this.closes.length + 1)
    this.held = closed ? "" : all.slice(at)
    return { thought: all.slice(0, at), text: closed ? all.slice(at) : "" }
  }
}
