import { Schema } from "effect"

const segment = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/u

/** A vendor's model id. Some contain slashes: `meta-llama/llama-3.3-70b`. */
export const ModelId = Schema.String.check(
  Schema.isMaxLength(200),
  Schema.isPattern(
    /^[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}(?:\/[A-Za-z0-9][A-Za-z0-9._:@-]{0,127})*$/u,
    {
      expected:
        "letters, digits, dots, underscores, colons or hyphens, in parts with slashes between"
    }
  )
)

export const PathSegment = Schema.String.check(
  Schema.isPattern(segment, {
    expected: "1 to 128 letters, digits, dots, underscores, colons or hyphens"
  })
)

/** The last segment of a create path. docs/reference/tasks.md#paths */
export const Action = Schema.Literals(["generation", "edit"])
export type Action = typeof Action.Type
