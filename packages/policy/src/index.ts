/**
 * @since 0.1.0
 */
export * as Approvals from "./Approvals.ts"
export * as Approver from "./Approver.ts"
export * as Breaker from "./Breaker.ts"
export * as Budget from "./Budget.ts"
export * as LoopGuard from "./LoopGuard.ts"
export * as OptionsInvalid from "./OptionsInvalid.ts"
export * as Permissions from "./Permissions.ts"
export * as Prices from "./Prices.ts"
export * as Quota from "./Quota.ts"
export * as RealPaths from "./RealPaths.ts"
export * as Sanitizer from "./Sanitizer.ts"
export * as ShellCommand from "./ShellCommand.ts"
