export * as AiSdk from "./AiSdk.ts"
export * as Redirects from "./Redirects.ts"
export * as TextProtocol from "./TextProtocol.ts"
