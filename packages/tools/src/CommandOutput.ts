/**
 * Turns the bytes of a command's two pipes into one bounded, plain text.
 *
 * Both pipes are merged in the order in which their chunks arrive. Bytes that are no UTF-8 become U+FFFD.
 *
 * Invariants
 *   O1  Memory is bounded whatever arrives: `limit` units of text, and 2,048 units of an unfinished sequence a pipe.
 *   O2  A character or an escape sequence that is split over chunks is treated as if it were not; the pipes are
 *       decoded apart, so one never breaks a character of the other.
 *   O3  No control character but \n and \t is left, and nothing of an escape sequence.
 *   O4  It takes linear time: no try at a sequence reads beyond the start of the next one of its kind.
 *
 * @since 0.1.0
 */
import * as BoundedText from "./BoundedText.ts"

/** One pipe. */
export interface Pipe {
  readonly add: (bytes: Uint8Array) => void
  /** No more comes: what was held back is written. */
  readonly end: () => void
}

export interface CommandOutput {
  readonly open: () => Pipe
  /** What is kept so far. */
  readonly kept: () => BoundedText.BoundedText
}

/** Keeps at most `limit` UTF-16 units. */
export const make = (limit: number): CommandOutput => {
  const add = BoundedText.add(limit)
  let kept = BoundedText.empty
  const open = (): Pipe => {
    const decoder = new TextDecoder()
    let held = ""
    const take = (text: string, last: boolean) => {
      const all = held + text
      const end = last ? all.length : all.length - unfinishedLength(all)
      held = all.slice(end)
      kept = add(kept, plain(all.slice(0, end)))
    }
    return {
      add: (bytes) => take(decoder.decode(bytes, { stream: true }), false),
      end: () => take(decoder.decode(), true)
    }
  }
  return { open, kept: () => kept }
}

/** The text without escape sequences, and without control characters but \n and \t. */
export const plain = (text: string): string => text.replace(sequences, "").replace(controls, "")

// ECMA-48: CSI (5.4), then the strings DCS, SOS, OSC, PM and APC (5.6; BEL ends them too, as xterm does), then the rest.
// A string holds no start of another one: a terminal begins anew there, and a try that read on would make this quadratic.
// Not node:util's stripVTControlCharacters: it keeps the text of some strings, and has no notion of an unfinished one.
/* oxlint-disable no-control-regex -- they are what this is about */
const sequences =
  /(?:\u001B\[|\u009B)[0-?]*[ -/]*[@-~]|(?:\u001B[PX\]^_]|[\u0090\u0098\u009D-\u009F])[^\u0007\u001B\u0090\u0098\u009C-\u009F]*(?:\u0007|\u001B\\|\u009C)|\u001B[ -/]*[0-~]/g
const controls = /[\u0000-\u0008\u000B-\u001F\u007F-\u009F]/g
/** A sequence that the next chunk may end; one that is longer than `maxUnfinished` is none. */
const unfinished =
  /(?:(?:\u001B\[|\u009B)[0-?]*[ -/]*|(?:\u001B[PX\]^_]|[\u0090\u0098\u009D-\u009F])[^\u0007\u001B\u0090\u0098\u009C-\u009F]*\u001B?|\u001B[ -/]*)$/
const maxUnfinished = 2048
const unfinishedLength = (text: string): number => unfinished.exec(text.slice(-maxUnfinished))?.[0].length ?? 0
/* oxlint-enable no-control-regex */
