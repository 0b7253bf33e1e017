export * from "../index.ts"
