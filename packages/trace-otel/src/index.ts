export * as Trace from "./Trace.ts"
