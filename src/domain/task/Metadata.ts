import { Schema } from "effect"
import {
  metadataKeyCharactersMax,
  metadataKeysMax,
  metadataValueCharactersMax
} from "../limits/ShapeLimits.ts"

/**
 * Data that a client attaches to a task. It is returned and can be used as a filter, but is not interpreted.
 * docs/reference/tasks.md#metadata
 */
export const Metadata = Schema.Record(Schema.String, Schema.String).annotate({
  identifier: "Metadata"
})
export type Metadata = typeof Metadata.Type

/** The JSON Schema of `metadata` in the body of a create. */
export const metadataJsonSchema = {
  type: "object",
  description: "Pairs of strings that are returned with the task and can be used as filters",
  maxProperties: metadataKeysMax,
  propertyNames: { minLength: 1, maxLength: metadataKeyCharactersMax },
  additionalProperties: { type: "string", maxLength: metadataValueCharactersMax }
}
