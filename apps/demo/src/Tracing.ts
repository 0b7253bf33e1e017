/**
 * Sends the traces of Runs to wherever `OTEL_EXPORTER_OTLP_ENDPOINT` says, and loads nothing where it says nothing. What could not
 * be sent is noted beside the file of the Runs: who drives them next sends it.
 */
import type { CheckpointStore } from "@waystone/core"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import type * as Path from "effect/Path"
import type * as Scope from "effect/Scope"
import { Unusable } from "./Complaint.ts"
import type { Store } from "./Stores.ts"

/**
 * The offline model is no provider that the conventions list. The attribute is open, so its own name would be allowed, but strict
 * checks warn of names that no back end knows; what it says has the form of OpenAI's.
 */
const providers = { waystone: "openai" }

/** Which release of the conventions goes out; the newest, unless `WAYSTONE_SEMCONV` names the one that back ends lag behind at. */
const semconv = () => (process.env["WAYSTONE_SEMCONV"] === "v1.41" ? "v1.41" : "latest")

type Needs = CheckpointStore.CheckpointStore | FileSystem.FileSystem | Path.Path
type Tracing = Layer.Layer<never, Unusable, CheckpointStore.CheckpointStore>

/** Beside the file of the Runs: which of them have something that no back end has taken yet. */
const notes = (store: Store) =>
  Effect.gen(function* () {
    if (store._tag !== "File") return undefined
    const KeyValueStore = yield* Effect.promise(() => import("effect/persistence/KeyValueStore"))
    return Context.get(
      yield* Layer.build(KeyValueStore.layerFileSystem(`${store.file}-unsent`)),
      KeyValueStore.KeyValueStore
    )
  }).pipe(
    Effect.catchTag("PlatformError", (error) =>
      Effect.as(Effect.logWarning("What is not sent of traces cannot be noted.", error), undefined)
    )
  )

export const layer = (store: Store): Layer.Layer<never, Unusable, Needs> =>
  Layer.unwrap(
    Effect.gen(function* (): Effect.fn.Return<
      Tracing,
      never,
      Exclude<Needs, CheckpointStore.CheckpointStore> | Scope.Scope
    > {
      if ((process.env["OTEL_EXPORTER_OTLP_ENDPOINT"] ?? "") === "") return Layer.empty
      const OtelTrace = yield* Effect.promise(() => import("@waystone/trace-otel/OtelTrace"))
      const unsent = yield* notes(store)
      return OtelTrace.layer({
        serviceName: "waystone-demo",
        providers,
        semconv: semconv(),
        ...(unsent === undefined ? undefined : { unsent })
      }).pipe(Layer.catchTag("SettingInvalid", ({ message }) => Layer.effectDiscard(new Unusable({ message }))))
    })
  )
