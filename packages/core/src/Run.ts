/**
 * The verbs: everything that can be done with a Run.
 *
 * `start`, `resume`, their streams, `recover` and `work` drive Runs and need the agent's services; the others need a store.
 * docs/events.md says what each of them does in each status.
 *
 * @since 0.1.0
 */
export type { Refusal } from "./Answers.ts"
export { answer, cancel, pause, send } from "./Control.ts"
export type { ReadError } from "./Journal.ts"
export { checkpoints, fork, type ForkInput, get, list, type ListInput, type RunInfo } from "./Runs.ts"
export { prune, remove } from "./Removal.ts"
export { events, type EventsError, type EventsInput, stream, streamResume } from "./RunStream.ts"
export { accept, resume, type ResumeError, type ResumeInput, start, type StartError, type StartInput } from "./Start.ts"
export { recover, type Recovered } from "./Sweep.ts"
export { work, type WorkInput } from "./Worker.ts"
