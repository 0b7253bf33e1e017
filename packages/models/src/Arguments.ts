/**
 * Carries the arguments of tool calls: as the model wrote them on the way in, as an object on the way back.
 *
 * @since 0.1.0
 */
import * as ForbiddenKeys from "./ForbiddenKeys.ts"
import { isObject, toJson } from "./Json.ts"

/** Arguments that are not one JSON object or array stay the text that the model wrote: the loop answers them (SPEC 4). */
export const read = (input: unknown): unknown => {
  if (typeof input !== "string") return toJson(input) ?? {}
  if (input.trim() === "") return {}
  try {
    const value: unknown = JSON.parse(ForbiddenKeys.restored(input))
    return typeof value === "object" && value !== null ? value : input
  } catch {
    return input
  }
}

/** Every API wants an object back: what the model wrote in place of one is quoted in it. */
export const sent = (params: unknown): { readonly [key: string]: unknown } => {
  const value = typeof params === "string" ? read(params) : params
  if (isObject(value)) return value
  return value === undefined || value === null ? {} : { malformed_arguments: value }
}
