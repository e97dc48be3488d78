import type { JsonSchema } from "effect"
import { fieldNames, jsonSchemaOf } from "../catalog/bodies/Bodies.ts"
import type { CatalogEntry, TaskModel } from "../catalog/CatalogEntry.ts"
import { pointerOf } from "../catalog/FieldFaults.ts"
import type { AcceptedBody, MediaInfo } from "../catalog/media/Media.ts"
import type { FieldFault } from "../domain/Problem.ts"
import { metadataJsonSchema } from "../domain/task/Metadata.ts"
import { webhookJsonSchema } from "../domain/task/TaskWebhook.ts"
import { adapterOf } from "./Adapters.ts"

const isTaken = (entry: CatalogEntry, field: string): boolean =>
  adapterOf(entry.adapter)?.takes?.(entry, field) !== false

/** `null`, an empty string and `n: 1` request nothing beyond the model's default behavior. */
const asksNothing = (field: string, value: unknown): boolean =>
  value === null || value === undefined || value === "" || (field === "n" && value === 1)

const faultOf = (entry: CatalogEntry, field: string, value: unknown): string | undefined => {
  if (asksNothing(field, value)) return undefined
  return isTaken(entry, field)
    ? adapterOf(entry.adapter)?.valueFault?.(entry.upstreamModel, field, value)
    : `${entry.model} does not support this field`
}

/**
 * Faults for fields that the client set but the upstream model does not have, and for values that it does not accept.
 * The gateway refuses them instead of dropping or changing them. Checks the body before decoding, because the client
 * did not ask for the defaults. ADR 0143.
 */
export const refusedFields = (entry: CatalogEntry, input: unknown): ReadonlyArray<FieldFault> => {
  if (typeof input !== "object" || input === null || Array.isArray(input)) return []
  const asked = new Map<string, unknown>(Object.entries(input))
  return [...fieldNames(entry).all].flatMap((field) => {
    const detail = faultOf(entry, field, asked.get(field))
    return detail === undefined ? [] : [{ pointer: pointerOf([field]), detail }]
  })
}

/** Why the vendor would refuse a medium of a decoded body. */
export const mediumFault = (
  { adapter }: Pick<CatalogEntry, "adapter"> | TaskModel,
  body: unknown,
  info: MediaInfo
): string | undefined =>
  info.kind === "image" ? adapterOf(adapter)?.pictureFault?.(body, info) : undefined

export const mediaFaults = (
  entry: CatalogEntry,
  { body, media }: AcceptedBody
): ReadonlyArray<FieldFault> =>
  media.flatMap(({ info, pointer }) => {
    const detail = mediumFault(entry, body, info)
    return detail === undefined ? [] : [{ pointer, detail }]
  })

/** The schema of the entry's body: its label's, without refused fields, metadata and webhook. */
export const bodySchemaOf = (entry: CatalogEntry): JsonSchema.JsonSchema => {
  const schema = jsonSchemaOf(entry)
  return {
    ...schema,
    properties: {
      ...Object.fromEntries(
        Object.entries(schema["properties"] ?? {}).filter(([field]) => isTaken(entry, field))
      ),
      metadata: metadataJsonSchema,
      webhook: webhookJsonSchema
    }
  }
}

/** The body schema of an alias: has every field that at least one of its models accepts. */
export const bodySchemaOfAll = (entries: ReadonlyArray<CatalogEntry>): JsonSchema.JsonSchema => {
  const schemas = entries.map(bodySchemaOf)
  return Object.assign({}, ...schemas, {
    properties: Object.assign({}, ...schemas.map(({ properties }) => properties))
  })
}
