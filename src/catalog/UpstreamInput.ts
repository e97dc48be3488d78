import { Schema } from "effect"
import { fieldNames } from "./bodies/Bodies.ts"

/**
 * How one field's value is written upstream. `size-object`: `{width, height}`; `size-x`: `WxH`;
 * `text`: a number as text; `first`: the first item of a list; `list`: one value as a list.
 */
const Form = Schema.Literals(["size-object", "size-x", "text", "first", "list"])
export type Form = typeof Form.Type

/** The upstream's name of a field, or its name and form. `null` if the upstream has no such field. */
const Target = Schema.Union([
  Schema.Null,
  Schema.NonEmptyString,
  Schema.Struct({ to: Schema.NonEmptyString, as: Form })
])

type Target = typeof Target.Type

/**
 * Maps a body to the flat input of a model at fal or Replicate. A required field that is not listed keeps its name; any
 * other field that is not listed is refused when a task is created. `constants` are sent with every job.
 * docs/catalog.md#input-of-an-added-model, ADR 0143.
 */
export const UpstreamInput = Schema.Struct({
  fields: Schema.optionalKey(Schema.Record(Schema.String, Target)),
  constants: Schema.optionalKey(Schema.Record(Schema.String, Schema.Json))
})
export type UpstreamInput = typeof UpstreamInput.Type

const sizeOf = (value: unknown): readonly [number, number] | undefined => {
  const match = /^(\d+)\*(\d+)$/u.exec(String(value))
  return match === null ? undefined : [Number(match[1]), Number(match[2])]
}

const written = (value: unknown, form: Form): unknown => {
  switch (form) {
    case "size-object": {
      const size = sizeOf(value)
      return size === undefined ? value : { width: size[0], height: size[1] }
    }
    case "size-x":
      return sizeOf(value)?.join("x") ?? value
    case "text":
      return String(value)
    case "first":
      return Array.isArray(value) ? value[0] : value
    case "list":
      return [value]
  }
}

/** The gateway's own field. The upstreams of these adapters do not have it, and it is never refused. */
const ownField = "safety_filter"

const targetOf = (label: string, name: string, { fields = {} }: UpstreamInput): Target => {
  if (Object.hasOwn(fields, name)) return fields[name] ?? null
  return name !== ownField && fieldNames(label).required.has(name) ? name : null
}

/** Whether a client may set the field: it is mapped, required, or the gateway's own. */
export const isMapped = (label: string, name: string, input: UpstreamInput = {}): boolean =>
  name === ownField || fieldNames(label).required.has(name) || targetOf(label, name, input) !== null

/** The upstream's input for a body whose media have been written in the upstream's form. */
export const upstreamInput = (
  label: string,
  body: Readonly<Record<string, unknown>>,
  input: UpstreamInput = {}
): Record<string, unknown> => {
  const entries = Object.entries(body).flatMap(
    ([name, value]): ReadonlyArray<[string, unknown]> => {
      const target = targetOf(label, name, input)
      if (value === null || value === undefined || target === null) return []
      if (typeof target === "string") return [[target, value]]
      return [[target.to, written(value, target.as)]]
    }
  )
  return { ...Object.fromEntries(entries), ...input.constants }
}
