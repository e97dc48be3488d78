import { Effect } from "effect"
import { nameOf } from "../../catalog/Alias.ts"
import type { CatalogVersion } from "../../catalog/CatalogContent.ts"
import type { CatalogEntry } from "../../catalog/CatalogEntry.ts"
import { invalid, problem } from "../../domain/Problem.ts"
import type { FieldFault, Problem } from "../../domain/Problem.ts"

/** A model or an alias, with the catalog entry that defines its body. */
export interface ShapedModel {
  readonly vendor: string
  readonly model: string
  /** The entry of an alias's first model: all of them have the same label. */
  readonly entry: CatalogEntry
}

/** Everything that a client may name as a model. */
export const modelsIn = ({
  aliases,
  all
}: Pick<CatalogVersion, "aliases" | "all">): ReadonlyArray<ShapedModel> => [
  ...all.map((entry) => ({ vendor: entry.vendor, model: entry.model, entry })),
  ...aliases.map(({ alias, first, vendor }) => ({ vendor, model: alias, entry: first }))
]

export const isNamed = (it: ShapedModel, name: unknown): boolean =>
  it.model === name || nameOf(it) === name

/**
 * The model or alias that a request in OpenAI's format names: `model`, or `vendor/model` if several vendors have it.
 * docs/reference/shapes.md#models
 */
export const findModel = (
  models: ReadonlyArray<ShapedModel>,
  name: unknown
): Effect.Effect<ShapedModel, Problem> => {
  const fault = (detail: string) => Effect.fail(invalid([{ pointer: "#/model", detail }]))
  if (name === undefined) return fault("Required, but missing")
  if (typeof name !== "string") return fault("Expected a string")
  const found = models.filter((it) => isNamed(it, name))
  const [first, second] = found
  if (first === undefined) {
    const all = models.map(nameOf).join(", ")
    return Effect.fail(
      problem(2006, `There is no model ${name.slice(0, 100)} here. There are: ${all}`)
    )
  }
  return second === undefined
    ? Effect.succeed(first)
    : fault(`Several vendors have this model: expected ${found.map(nameOf).join(" or ")}`)
}

/**
 * Faults of fields that OpenAI's clients send but no model here has. A value that requests nothing is accepted; any
 * other is refused, so that nothing is dropped silently.
 */
export const unsupportedFields = (
  fields: Readonly<Record<string, unknown>>,
  asksNothing: Readonly<Record<string, ReadonlyArray<unknown>>>
): ReadonlyArray<FieldFault> =>
  Object.entries(asksNothing).flatMap(([name, values]) => {
    const value = fields[name]
    if (value === undefined || values.includes(value)) return []
    const detail =
      values.length === 0
        ? "The models of this route do not take this field"
        : `The models of this route take only ${values.join(" or ")}`
    return [{ pointer: `#/${name}`, detail }]
  })
