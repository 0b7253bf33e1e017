/**
 * @since 0.1.0
 */
export * as LoopGuard from "./LoopGuard.ts"
export * as Permissions from "./Permissions.ts"
