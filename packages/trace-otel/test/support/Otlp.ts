/** Exports as OTLP/JSON, as a back end would get them. */
import { JsonTraceSerializer } from "@opentelemetry/otlp-transformer"
import { resourceFromAttributes } from "@opentelemetry/resources"
import type { FinishedSpan } from "../../src/FinishedSpan.ts"
import * as Readable from "../../src/Readable.ts"

const readable = Readable.make(resourceFromAttributes({ "service.name": "test" }))

export const exported = (spans: ReadonlyArray<FinishedSpan>): unknown =>
  JSON.parse(new TextDecoder().decode(JsonTraceSerializer.serializeRequest(spans.map(readable))))
