import { Schema } from "effect"
import { aliasKey } from "./Alias.ts"
import { CatalogContent, pathKey } from "./CatalogContent.ts"
import { pointerOf } from "./FieldFaults.ts"
import { routeKey, tokenModelKey } from "./UpstreamCatalog.ts"

/** Identifies a media model, a model charged by the token, a vendor, a route or an alias. */
export interface RowName {
  readonly type: "media" | "token" | "vendor" | "route" | "alias"
  /** Its path. */
  readonly id: string
}

/** A value that differs in another catalog. */
export interface CatalogDifference {
  readonly added: ReadonlyArray<RowName>
  readonly removed: ReadonlyArray<RowName>
  readonly changed: ReadonlyArray<
    RowName & {
      readonly changes: ReadonlyArray<{
        /** The pointer of the value within its row. */
        readonly pointer: string
        /** Null if the row had no such value. */
        readonly before: Schema.Json
        readonly after: Schema.Json
      }>
    }
  >
}

type Values = ReadonlyMap<string, Schema.Json>

interface Row extends RowName {
  readonly values: Values
}

const encode = Schema.encodeSync(CatalogContent)

/** The values of a row by their pointers. */
const valuesOf = (row: object): Values => {
  const values = new Map<string, Schema.Json>()
  const walk = (value: unknown, path: ReadonlyArray<string>): void => {
    if (typeof value === "object" && value !== null) {
      for (const [name, member] of Object.entries(value)) walk(member, [...path, name])
    } else if (typeof value === "string" || typeof value === "number" || typeof value === "boolean")
      values.set(pointerOf(path), value)
  }
  walk(row, [])
  return values
}

const rowsOf = (content: CatalogContent): ReadonlyMap<string, Row> => {
  const { aliases = [], models, providers, routes, tokenModels } = encode(content)
  const rows: ReadonlyArray<Row> = [
    ...models.map((row, index) => ({
      type: "media" as const,
      id: idOf(content.models[index], pathKey),
      values: valuesOf(row)
    })),
    ...tokenModels.map((row, index) => ({
      type: "token" as const,
      id: idOf(content.tokenModels[index], tokenModelKey),
      values: valuesOf(row)
    })),
    ...providers.map((row) => ({ type: "vendor" as const, id: row.name, values: valuesOf(row) })),
    ...routes.map((row, index) => ({
      type: "route" as const,
      id: idOf(content.routes[index], routeKey),
      values: valuesOf(row)
    })),
    ...aliases.map((row, index) => ({
      type: "alias" as const,
      id: idOf(content.aliases?.[index], aliasKey),
      values: valuesOf(row)
    }))
  ]
  return new Map(rows.map((row) => [`${row.type} ${row.id}`, row]))
}

const idOf = <A>(row: A | undefined, keyOf: (row: A) => string): string =>
  row === undefined ? "" : keyOf(row)

const nameOf = ({ id, type }: RowName): RowName => ({ type, id })

const changesOf = (before: Values, after: Values) =>
  [...new Set([...before.keys(), ...after.keys()])]
    .filter((pointer) => before.get(pointer) !== after.get(pointer))
    .map((pointer) => ({
      pointer,
      before: before.get(pointer) ?? null,
      after: after.get(pointer) ?? null
    }))

export const differenceOf = (before: CatalogContent, after: CatalogContent): CatalogDifference => {
  const [old, now] = [rowsOf(before), rowsOf(after)]
  return {
    added: [...now].flatMap(([key, row]) => (old.has(key) ? [] : [nameOf(row)])),
    removed: [...old].flatMap(([key, row]) => (now.has(key) ? [] : [nameOf(row)])),
    changed: [...now].flatMap(([key, row]) => {
      const changes = changesOf(old.get(key)?.values ?? row.values, row.values)
      return changes.length === 0 ? [] : [{ ...nameOf(row), changes }]
    })
  }
}
