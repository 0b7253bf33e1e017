/**
 * The verbs: everything that can be done with a Run.
 *
 * `start`, `resume`, their streams and `recover` drive Runs and need the agent's services; the others need a store.
 * docs/events.md says what each of them does in each status.
 *
 * @since 0.1.0
 */
export { answer, cancel, pause, send } from "./Control.ts"
export type { ForkInput, ListInput, RunInfo } from "./Runs.ts"
export { checkpoints, fork, get, list, prune, remove } from "./Runs.ts"
export type { EventsError, EventsInput } from "./RunStream.ts"
export { events, stream, streamResume } from "./RunStream.ts"
export type { ResumeError, ResumeInput, StartError, StartInput } from "./Start.ts"
export { accept, resume, start } from "./Start.ts"
export type { Recovered } from "./Sweep.ts"
export { recover } from "./Sweep.ts"
