export * as SqliteDriver from "./SqliteDriver.ts"
export * as SqliteError from "./SqliteError.ts"
export * as SqliteStore from "./SqliteStore.ts"
