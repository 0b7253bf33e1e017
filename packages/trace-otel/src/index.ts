export * as OtelTrace from "./OtelTrace.ts"
export * as RunLogs from "./RunLogs.ts"
export * as Trace from "./Trace.ts"
