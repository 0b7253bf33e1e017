/**
 * What all subjects share: the scripted conversation and the tool.
 *
 * The model is stateless and instant: it reads the number of the last call from the last message, so it costs the same
 * however long the history is and whatever part of it a window shows. It asks for `add` `steps` times, then says "done".
 */

export interface Script {
  /** Tool calls before the answer; read at each model call, so a warm-up can be shorter. */
  steps: number
  /** How long each model call takes; 0 is at once, without a timer. */
  delayMs: number
  /** Hears of each model call before it is answered. */
  readonly asked?: () => void
}

/** One agent on one runtime. */
export interface Subject {
  readonly run: (id: string) => Promise<string>
}

export interface Options {
  readonly script: Script
  readonly stream: boolean
  /** Messages that the model is shown; undefined is the whole history. */
  readonly window?: number
}

export const instructions = "Add the numbers until you are done."
export const description = "Adds two numbers."
export const task = "go"
export const answer = "done"

const callId = (step: number): string => `call_${step}`

/** What the model does after the message with this call's result, or at the start. */
export const reply = ({ steps }: Script, lastCall: string | undefined) => {
  const step = lastCall === undefined ? 0 : Number(lastCall.slice("call_".length)) + 1
  return step < steps ? { id: callId(step), params: { a: step, b: 1 } } : undefined
}

/** Undefined for an instant model: then nobody waits for a promise. */
export const pause = (script: Script): Promise<void> | undefined => {
  script.asked?.()
  const { delayMs } = script
  return delayMs === 0 ? undefined : new Promise((resolve) => setTimeout(resolve, delayMs))
}

/** 200 bytes of JSON. */
export const add = ({ a, b }: { readonly a: number; readonly b: number }) => {
  const sum = a + b
  return { sum, pad: "x".repeat(200 - `{"sum":${sum},"pad":""}`.length) }
}
