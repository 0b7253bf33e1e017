/**
 * Sends the traces of Runs to wherever `OTEL_EXPORTER_OTLP_ENDPOINT` says, and loads nothing where it says nothing.
 */
import type { CheckpointStore } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

/** The offline model is no provider that the conventions list; what it says has the form of OpenAI's. */
const providers = { waystone: "openai" }

type Tracing = Layer.Layer<never, never, CheckpointStore.CheckpointStore>

export const layer: Tracing = Layer.unwrap(
  Effect.suspend((): Effect.Effect<Tracing> =>
    (process.env["OTEL_EXPORTER_OTLP_ENDPOINT"] ?? "") === ""
      ? Effect.succeed(Layer.empty)
      : Effect.map(
          Effect.promise(() => import("@waystone/trace-otel/OtelTrace")),
          (OtelTrace) => OtelTrace.layer({ serviceName: "waystone-demo", providers })
        )
  )
)
