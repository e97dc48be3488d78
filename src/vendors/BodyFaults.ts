import type { JsonSchema } from "effect"
import { fieldNames, jsonSchemaOf } from "../catalog/bodies/Bodies.ts"
import type { CatalogEntry } from "../catalog/CatalogEntry.ts"
import { pointerOf } from "../catalog/FieldFaults.ts"
import type { AcceptedBody, MediaInfo } from "../catalog/media/Media.ts"
import type { FieldFault } from "../domain/Problem.ts"
import { adapterOf } from "./Adapters.ts"

const isTaken = (entry: CatalogEntry, field: string): boolean =>
  adapterOf(entry.adapter)?.takes?.(entry, field) !== false

/** `null`, an empty text and one result are what a model gives that has no such field. */
const asksNothing = (field: string, value: unknown): boolean =>
  value === null || value === undefined || value === "" || (field === "n" && value === 1)

/**
 * Fields that the client set and the upstream model does not have: refused, not dropped. Defaults are
 * no wish of the client, so the body before its decode is judged. ADR 0143.
 */
export const refusedFields = (entry: CatalogEntry, input: unknown): ReadonlyArray<FieldFault> => {
  if (typeof input !== "object" || input === null || Array.isArray(input)) return []
  const asked = new Map<string, unknown>(Object.entries(input))
  return [...fieldNames(entry.label).all]
    .filter((field) => !isTaken(entry, field) && !asksNothing(field, asked.get(field)))
    .map((field) => ({
      pointer: pointerOf([field]),
      detail: `${entry.model} does not take this field`
    }))
}

/** Why the vendor would refuse a medium of a decoded body. */
export const mediumFault = (
  { adapter }: CatalogEntry,
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

/** The schema of the entry's body: its label's without the fields that are refused. */
export const bodySchemaOf = (entry: CatalogEntry): JsonSchema.JsonSchema => {
  const schema = jsonSchemaOf(entry.label)
  return {
    ...schema,
    properties: Object.fromEntries(
      Object.entries(schema["properties"] ?? {}).filter(([field]) => isTaken(entry, field))
    )
  }
}
