/**
 * Knows Runs that failed because a provider took no request, or stayed away for too long: they can go on with another key or another model.
 */
import type { Run, RunEvent, RunUpdate } from "@waystone/core"
import * as Predicate from "effect/Predicate"
import type { Choice, Named } from "./model/Choice.ts"
import { providers } from "./model/Providers.ts"

/** True if that is how a Run failed whose last event this is. */
export const is = (last: RunEvent.RunEvent | undefined): boolean => {
  if (last?._tag !== "RunFinished") return false
  const { outcome } = last
  return outcome._tag === "Failed" && Predicate.hasProperty(outcome.error, "_tag") && outcome.error._tag === tag
}

const tag = "ModelRejected"

type Failed = Extract<RunUpdate.RunUpdate<string, Run.StartError | Run.ResumeError>, { readonly _tag: "Failed" }>

/** What to do about it, and how the model is named then. */
export interface Advised {
  readonly advice: string
  readonly choice: Choice
}

/** What to do about a Run that has just failed so; undefined if it failed otherwise. */
export const advice = ({ error: { reason } }: Failed, choice: Choice): Advised | undefined => {
  if (reason._tag !== tag) return undefined
  if (choice._tag === "Offline") return { advice: "Try another model by --model.", choice }
  if (reason.away === true) {
    return {
      advice: `${choice.provider} was away, or too busy, for longer than a run waits: try again later, or name another model by --model.`,
      choice
    }
  }
  if (!choice.textProtocol && toolless.test(reason.detail)) {
    return {
      advice: `${choice.name} has no tools of its own: tell it of them in text, by --text-protocol.`,
      choice: { ...choice, textProtocol: true }
    }
  }
  return { advice: worded(reason.status, choice), choice }
}

/** As Ollama and vLLM say that a model takes no tools. */
const toolless = /(?:does not|doesn't|not) support (?:tools|function call)|tool choice requires/i

const worded = (status: number | undefined, { name, provider }: Named): string => {
  const variable = providers[provider].keys.join(" or ")
  // A page, or a redirect.
  if (status !== undefined && status < 400) {
    return `what answers there is not the API of ${provider}: name its address by --base-url (most end in /v1).`
  }
  switch (status) {
    case 401:
    case 403:
      return `${provider} does not take the key: set ${variable} to one that may use ${name}.`
    case 402:
    case 429:
      return `${provider} gives no more for this key: top up its account, set ${variable} to another key, or name another model by --model.`
    case 404:
      return `${provider} has no model ${name} there, or the address is wrong: name another model by --model, or the right address by --base-url.`
    default:
      return `${provider} takes no request of this run, for the reason above: name another model by --model.`
  }
}
