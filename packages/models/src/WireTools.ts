/**
 * Describes the tools of a request, and which of them the model may or must call.
 *
 * @since 0.1.0
 */
import type {
  LanguageModelV4CallOptions,
  LanguageModelV4FunctionTool,
  LanguageModelV4ToolChoice
} from "@ai-sdk/provider"
import type * as LanguageModel from "effect/ai/LanguageModel"
import * as Tool from "effect/ai/Tool"
import { toObject } from "./Json.ts"
import * as WireNames from "./WireNames.ts"

type Described = Pick<LanguageModelV4CallOptions, "tools" | "toolChoice">

/** Nothing if there are no tools: some APIs refuse an empty list. */
export const describe = ({ toolChoice, tools }: LanguageModel.ProviderOptions): Described =>
  tools.length === 0 ? {} : { tools: tools.map(describeOne), toolChoice: choice(toolChoice) }

const describeOne = (tool: Tool.Any): NonNullable<Described["tools"]>[number] => {
  const name = WireNames.toWire(tool.name)
  if (Tool.isProviderDefined(tool)) return { type: "provider", id: tool.id, name, args: toObject(tool.args) ?? {} }
  const description = Tool.getDescription(tool)
  const strict = Tool.getStrictMode(tool)
  return {
    type: "function",
    name,
    inputSchema: schema(Tool.getJsonSchema(tool)),
    ...(description === undefined ? undefined : { description }),
    ...(strict === undefined ? undefined : { strict })
  }
}

/** A root without `type: "object"`, as a struct without fields has it, is refused by every provider. */
export const schema = (json: { readonly [keyword: string]: unknown }): LanguageModelV4FunctionTool["inputSchema"] => {
  const { not: _, ...rest } = json
  return json["type"] === "object" ? json : { ...("not" in json ? rest : json), type: "object", properties: {} }
}

const choice = (given: LanguageModel.ProviderOptions["toolChoice"]): LanguageModelV4ToolChoice => {
  if (typeof given === "string") return { type: given }
  if ("tool" in given) return { type: "tool", toolName: WireNames.toWire(given.tool) }
  return { type: given.mode ?? "auto" } // effect has left out all other tools
}
