/**
 * Defines the agents of the demo: one that repairs alone, and a planner that hands its work to others.
 */
import { Agent } from "@waystone/core"
import { Approvals, Budget, LoopGuard, Permissions, Sanitizer } from "@waystone/policy"
import { FileTools, Shell } from "@waystone/tools"
import type * as Duration from "effect/Duration"
import * as Schema from "effect/Schema"
import * as Toolkit from "effect/ai/Toolkit"
import * as RunTests from "./RunTests.ts"

type OwnTools =
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

const required = [
  Approvals.Approvals,
  Budget.Budget,
  LoopGuard.LoopGuard,
  Permissions.Permissions,
  Sanitizer.Sanitizer
] as const

/** What the worker's type says of its tools is part of the planner's. */
type Worker = Agent.Agent<OwnTools, string, Policies>
type Delegate = Agent.AsTool<Worker, "delegate", typeof Job>

/** Either agent that a Run of the demo may have as its root. */
export type DemoAgent = Agent.Agent<OwnTools | Delegate, string, Policies>

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
export const repairer = (firstPart: Duration.Input = "60 seconds"): DemoAgent =>
  Agent.make("repairer", {
    version: "4",
    instructions: [
      "You work on the project in one folder. The file tools reach nothing else; a person is asked before each shell",
      "command, so use the shell only for what the other tools cannot do.",
      "Find out what is wrong, read the code, make the smallest change that is right, and run the tests again.",
      "Never change a test unless you are asked to. If you cannot do what you are asked to, put everything back as it",
      "was and say so."
    ].join(" "),
    tools: [FileTools.toolkit, RunTests.toolkit, Shell.toolkit],
    requires: required,
    limits: { maxTurns: 80 },
    timeouts: { firstPart }
  })

const { EditFile, ListFiles, ReadFiles, SearchFiles } = FileTools

/** It gets no more tools than a small repair needs: no shell, and no new files. */
const worker: Worker = Agent.make("worker", {
  version: "1",
  instructions: [
    "You repair one thing in the project of one folder, while others repair other things in it at the same time.",
    "Run only the tests that you are told of. Change only what they are about, never a test, and nothing that is not yours.",
    "When they pass, say in one or two sentences what was wrong. If you cannot do it, put everything back and say so."
  ].join(" "),
  tools: [Toolkit.make(ListFiles, ReadFiles, SearchFiles, EditFile), RunTests.toolkit],
  requires: required,
  limits: { maxTurns: 40 }
})

/** What a worker is told. */
export const Job = Schema.Struct({
  tests: Schema.String.annotate({ description: "The test file that must pass afterwards" }),
  task: Schema.String.annotate({ description: "What is wrong, as far as you know, and what to do" })
})

export const delegate: Delegate = Agent.asTool(worker, {
  name: "delegate",
  description:
    "Let a worker repair one thing. It sees nothing of your conversation. Workers that are asked in one reply work at the " +
    "same time, so give each something that has nothing to do with what the others do",
  parameters: Job,
  task: ({ task, tests }) => `Make the tests in ${tests} pass. ${task}`
})

/** So many workers at once are still easy to follow. */
const maxWorkers = 4

/** It reads and tests, and changes nothing itself. */
export const planner = (): DemoAgent =>
  Agent.make("planner", {
    version: "1",
    instructions: [
      "You lead a team that repairs the project of one folder. Find out what is wrong by running the tests, and let one",
      "worker repair each thing that has nothing to do with the others, all in one reply. When they are done, run all",
      "tests. Say in the end what was repaired, or what was not."
    ].join(" "),
    tools: [Toolkit.make(ListFiles, ReadFiles, SearchFiles), RunTests.toolkit, delegate],
    requires: required,
    limits: { maxTurns: 40 },
    concurrency: maxWorkers
  })

/** Whose Runs the demo can go on with. */
export const names = ["repairer", "planner"] as const

/** By the name that a Run has of its agent. */
export const named = (name: string): DemoAgent | undefined => {
  switch (name) {
    case "repairer":
      return repairer()
    case "planner":
      return planner()
    default:
      return undefined
  }
}

export const task = "The tests of this project fail. Repair it."
