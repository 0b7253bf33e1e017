/**
 * Defines the agent of the demo.
 */
import { Agent } from "@waystone/core"
import { toolkit } from "./Tools.ts"

export const repairer = Agent.make("repairer", {
  version: "1",
  instructions: [
    "You repair a small Node project whose tests fail.",
    "Find out what fails, read the code, make the smallest change that is right, and run the tests again.",
    "Never change a test. If you cannot repair the project, put it back as it was and say so."
  ].join(" "),
  tools: [toolkit]
})

export const task = "The tests of this project fail. Repair it."
