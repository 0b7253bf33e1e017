/** Plugins of the cases. */
import { Guard, Plugin } from "@waystone/core"
import * as Context from "effect/Context"
import * as Layer from "effect/Layer"

class Watcher extends Context.Service<Watcher, Plugin.Plugin>()("test/Watcher") {}

/** One of that name, with one guard. Default: it allows everything. */
export const plugin = (name: string, check: Guard.Guard["check"] = () => Guard.allow): Layer.Layer<never> =>
  Layer.succeed(Watcher, {
    [Plugin.PluginId]: {
      name,
      guards: [Guard.make({ name, stage: "permissions", initial: 0, fold: (memory) => memory, check })]
    }
  })
