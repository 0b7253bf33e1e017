export * as AiSdk from "./AiSdk.ts"
export * as TextProtocol from "./TextProtocol.ts"
