import { at } from "../domain/json/Json.ts"
import { exampleOf } from "./SchemaExample.ts"

/** The schema for a request for JSON that has no schema. */
const anyObject = {
  type: "object",
  properties: { answer: { type: "string" } },
  required: ["answer"]
}

/** The schema that an OpenAI or Anthropic request sets for its response. */
const formatSchema = (format: unknown): unknown => {
  switch (at(format, "type")) {
    case "json_object":
    case "json_schema":
      return at(format, "json_schema", "schema") ?? at(format, "schema") ?? anyObject
    default:
      return undefined
  }
}

const formatOf = (body: unknown): unknown =>
  at(body, "response_format") ??
  at(body, "text", "format") ??
  at(body, "output_config", "format") ??
  // Anthropic's older name
  at(body, "output_format")

/** The JSON that a request asks for instead of text; `undefined` if it asks for text. */
export const structuredOutputOf = (body: unknown): string | undefined => {
  const schema = formatSchema(formatOf(body))
  if (schema !== undefined) return JSON.stringify(exampleOf(schema))
  const config = at(body, "generationConfig") ?? at(body, "generation_config")
  const own =
    at(config, "responseJsonSchema") ??
    at(config, "response_json_schema") ??
    at(config, "responseSchema") ??
    at(config, "response_schema")
  const mime = at(config, "responseMimeType") ?? at(config, "response_mime_type")
  if (mime !== "text/x.enum") {
    const gemini = own ?? (mime === "application/json" ? anyObject : undefined)
    return gemini === undefined ? undefined : JSON.stringify(exampleOf(gemini))
  }
  // A value of an enumeration, unquoted
  return own === undefined ? undefined : String(exampleOf(own))
}
