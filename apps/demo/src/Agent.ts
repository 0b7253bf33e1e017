/**
 * Defines the agent of the demo.
 */
import { Agent } from "@waystone/core"
import { Approvals, Budget, LoopGuard, Permissions, Sanitizer } from "@waystone/policy"
import { FileTools, Shell } from "@waystone/tools"
import type * as Duration from "effect/Duration"
import * as RunTests from "./RunTests.ts"

type Tools =
  | (typeof FileTools.toolkit.tools)[keyof typeof FileTools.toolkit.tools]
  | typeof RunTests.RunTests
  | typeof Shell.tool

/** What it never runs without. */
type Policies =
  | Approvals.Approvals
  | Budget.Budget
  | LoopGuard.LoopGuard
  | Permissions.Permissions
  | Sanitizer.Sanitizer

export type Repairer = Agent.Agent<Tools, string, Policies>

/**
 * What one Run may spend: some twenty times what a repair of a small project takes. The model then gets to say how far it
 * came. 8,192 tokens are long for one answer and short enough for the models that are in use.
 */
export const budget = {
  tokens: 2_000_000,
  onExhausted: "final-answer",
  maxOutputTokens: 8192
} as const satisfies Budget.Options

/** The agent. `firstPart` is how long a model may take to begin its reply. */
export const repairer = (firstPart: Duration.Input = "60 seconds"): Repairer =>
  Agent.make("repairer", {
    version: "3",
    instructions: [
      "You work on the project in one folder. The file tools reach nothing else; a person is asked before each shell",
      "command, so use the shell only for what the other tools cannot do.",
      "Find out what is wrong, read the code, make the smallest change that is right, and run the tests again.",
      "Never change a test unless you are asked to. If you cannot do what you are asked to, put everything back as it",
      "was and say so."
    ].join(" "),
    tools: [FileTools.toolkit, RunTests.toolkit, Shell.toolkit],
    requires: [Approvals.Approvals, Budget.Budget, LoopGuard.LoopGuard, Permissions.Permissions, Sanitizer.Sanitizer],
    limits: { maxTurns: 80 },
    timeouts: { firstPart }
  })

export const task = "The tests of this project fail. Repair it."
