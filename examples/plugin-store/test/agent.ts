/** An agent with a tool that has an effect: it writes a line into a file. */
import { Agent } from "@waystone/core"
import { Effect, Schema } from "effect"
import { Tool, Toolkit } from "effect/ai"
import { appendFileSync } from "node:fs"

const Mail = Tool.make("send_mail", { parameters: Schema.Struct({ to: Schema.String }), success: Schema.String })
const Tools = Toolkit.make(Mail)

export const mailer = Agent.make("mailer", { instructions: "Send mail.", tools: [Tools] })

export const outbox = (file: string) =>
  Tools.toLayer({
    send_mail: ({ to }) =>
      Effect.sync(() => {
        appendFileSync(file, `${to}\n`)
        return "sent"
      })
  })
