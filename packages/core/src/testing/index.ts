export * as PairingChecker from "./PairingChecker.ts"
export * as ScriptedModel from "./ScriptedModel.ts"
