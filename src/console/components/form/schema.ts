/** The part of JSON Schema that forms are made of. */
export interface JsonSchema {
  readonly type?: string | ReadonlyArray<string>
  readonly description?: string
  readonly default?: unknown
  readonly enum?: ReadonlyArray<unknown>
  readonly minimum?: number
  readonly maximum?: number
  readonly maxLength?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly items?: JsonSchema
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: ReadonlyArray<string>
  readonly anyOf?: ReadonlyArray<JsonSchema>
}

/** Without the choice of `null`: in a form that is a field that is left out. */
export const plainSchema = (schema: JsonSchema): JsonSchema => {
  const { anyOf, ...rest } = schema
  const others = anyOf?.filter(({ type }) => type !== "null") ?? []
  return others.length === 1 ? { ...others[0], ...rest } : schema
}

/** A description without the marks of code. */
export const descriptionOf = ({ description }: JsonSchema): string =>
  description?.replaceAll("`", "") ?? ""

/** `negative_prompt` is “Negative prompt”. */
export const labelOf = (name: string): string => {
  const words = name.replaceAll("_", " ")
  return words.charAt(0).toUpperCase() + words.slice(1)
}

/** The bounds of a value, as text. */
export const constraintsOf = (schema: JsonSchema): string => {
  const { maximum, maxLength, minimum } = schema
  if (minimum !== undefined && maximum !== undefined) return `${minimum} to ${maximum}`
  return maxLength === undefined ? "" : `up to ${maxLength} characters`
}
