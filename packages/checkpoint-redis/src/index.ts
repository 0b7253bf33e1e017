export * as RedisStore from "./RedisStore.ts"
