/**
 * Words a model for people.
 */
import type { ModelInfo } from "@waystone/core"

/** Provider, model and server, as far as they are known. */
export const of = ({ model = "unknown", provider, server }: ModelInfo.ModelInfo): string =>
  `${provider === undefined ? "" : `${provider} `}${model}${server === undefined ? "" : ` at ${server}`}`
