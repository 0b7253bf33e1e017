/**
 * Knows Runs that failed because a provider took no request: they can go on with another key or another model.
 */
import { Run, type RunUpdate } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Stream from "effect/Stream"
import type { Choice } from "./model/Choice.ts"
import { providers } from "./model/Providers.ts"

/** True if that is how the Run failed last. */
export const is = (runId: string) =>
  Stream.runLast(Run.events(runId, { follow: false })).pipe(
    Effect.map((last) => {
      if (last._tag === "None" || last.value.event._tag !== "RunFinished") return false
      const { outcome } = last.value.event
      return outcome._tag === "Failed" && Predicate.hasProperty(outcome.error, "_tag") && outcome.error._tag === tag
    })
  )

const tag = "ModelRejected"

type Failed = Extract<RunUpdate.RunUpdate<string, Run.StartError | Run.ResumeError>, { readonly _tag: "Failed" }>

/** What to do about a Run that has just failed so; undefined if it failed otherwise. */
export const advice = ({ error: { reason } }: Failed, choice: Choice): string | undefined => {
  if (reason._tag !== tag) return undefined
  if (choice._tag === "Offline") return "Try another model by --model."
  const { name, provider } = choice
  const variable = providers[provider].keys.join(" or ")
  switch (reason.status) {
    case 401:
    case 403:
      return `${provider} does not take the key: set ${variable} to one that may use ${name}.`
    case 404:
      return `${provider} may have no model ${name}: name another by --model.`
    default:
      return `${provider} takes no request of this run: set ${variable} to another key, or name another model by --model.`
  }
}
