/**
 * Sends the traces of Runs to wherever `OTEL_EXPORTER_OTLP_ENDPOINT` says, and loads nothing where it says nothing.
 */
import type { CheckpointStore } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

/**
 * The offline model is no provider that the conventions list. The attribute is open, so its own name would be allowed, but strict
 * checks warn of names that no back end knows; what it says has the form of OpenAI's.
 */
const providers = { waystone: "openai" }

/** Which release of the conventions goes out; the newest, unless `WAYSTONE_SEMCONV` names the one that back ends lag behind at. */
const semconv = () => (process.env["WAYSTONE_SEMCONV"] === "v1.41" ? "v1.41" : "latest")

type Tracing = Layer.Layer<never, never, CheckpointStore.CheckpointStore>

export const layer: Tracing = Layer.unwrap(
  Effect.suspend((): Effect.Effect<Tracing> =>
    (process.env["OTEL_EXPORTER_OTLP_ENDPOINT"] ?? "") === ""
      ? Effect.succeed(Layer.empty)
      : Effect.map(
          Effect.promise(() => import("@waystone/trace-otel/OtelTrace")),
          (OtelTrace) => OtelTrace.layer({ serviceName: "waystone-demo", providers, semconv: semconv() })
        )
  )
)
