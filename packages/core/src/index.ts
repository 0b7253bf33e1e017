export * as Guard from "./Guard.ts"
export * as RunEvent from "./RunEvent.ts"
export * as RunState from "./RunState.ts"
export * as Step from "./Step.ts"
