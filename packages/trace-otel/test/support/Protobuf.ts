/** Traces sent as protobuf, read by the fields of opentelemetry-proto 1 into the form that OTLP has as JSON. */
import * as protobuf from "protobufjs"

const { root } = protobuf.parse(`
  syntax = "proto3";
  message Traces { repeated ResourceSpans resourceSpans = 1; }
  message ResourceSpans { Resource resource = 1; repeated ScopeSpans scopeSpans = 2; string schemaUrl = 3; }
  message Resource { repeated KeyValue attributes = 1; }
  message ScopeSpans { Scope scope = 1; repeated Span spans = 2; string schemaUrl = 3; }
  message Scope { string name = 1; string version = 2; repeated KeyValue attributes = 3; }
  message Span {
    bytes traceId = 1; bytes spanId = 2; string traceState = 3; bytes parentSpanId = 4; string name = 5; int32 kind = 6;
    fixed64 startTimeUnixNano = 7; fixed64 endTimeUnixNano = 8; repeated KeyValue attributes = 9;
    repeated Event events = 11; repeated Link links = 13; Status status = 15;
  }
  message Event { fixed64 timeUnixNano = 1; string name = 2; repeated KeyValue attributes = 3; }
  message Link { bytes traceId = 1; bytes spanId = 2; string traceState = 3; repeated KeyValue attributes = 4; }
  message Status { string message = 2; int32 code = 3; }
  message KeyValue { string key = 1; AnyValue value = 2; }
  message AnyValue {
    oneof value {
      string stringValue = 1; bool boolValue = 2; int64 intValue = 3; double doubleValue = 4; Values arrayValue = 5;
      KeyValues kvlistValue = 6; bytes bytesValue = 7;
    }
  }
  message Values { repeated AnyValue values = 1; }
  message KeyValues { repeated KeyValue values = 1; }
`)
const Traces = root.lookupType("Traces")

export const decoded = (body: Uint8Array): unknown => inHex(Traces.toObject(Traces.decode(body), { longs: String }))

/** OTLP/JSON writes ids in hex. */
const inHex = (value: unknown): unknown => {
  if (value instanceof Uint8Array) return Buffer.from(value).toString("hex")
  if (Array.isArray(value)) return value.map(inHex)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, inside]) => [name, inHex(inside)]))
}
