/**
 * Tells what a model thinks aloud, in `<think>…</think>` at the beginning of its text, from what it says.
 *
 * @since 0.1.0
 */

const opens = "<think>"
const closes = "</think>"

/** One text; `thought` ends with the closing tag, `text` is all behind it. A tag that never closes is all thought. */
export class Thoughts {
  private state: "unknown" | "thinking" | "speaking" = "unknown"
  private held = ""

  push(delta: string): { readonly thought: string; readonly text: string } {
    if (this.state === "speaking") return { thought: "", text: delta }
    this.held += delta
    if (this.state === "unknown") {
      const begin = this.held.trimStart()
      if (begin.length < opens.length && opens.startsWith(begin)) return { thought: "", text: "" }
      this.state = begin.startsWith(opens) ? "thinking" : "speaking"
      if (this.state === "speaking") return this.rest((text) => ({ thought: "", text }))
    }
    const end = this.held.indexOf(closes)
    if (end !== -1) {
      this.state = "speaking"
      const at = end + closes.length
      return this.rest((all) => ({ thought: all.slice(0, at), text: all.slice(at) }))
    }
    // The end may be the beginning of the closing tag.
    const at = Math.max(0, this.held.length - closes.length + 1)
    const thought = this.held.slice(0, at)
    this.held = this.held.slice(at)
    return { thought, text: "" }
  }

  end(): { readonly thought: string; readonly text: string } {
    const thinking = this.state === "thinking"
    return this.rest((all) => (thinking ? { thought: all, text: "" } : { thought: "", text: all }))
  }

  private rest<A>(use: (held: string) => A): A {
    const all = this.held
    this.held = ""
    return use(all)
  }
}
