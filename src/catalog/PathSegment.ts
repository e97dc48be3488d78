import { Schema } from "effect"

const segment = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/u

export const PathSegment = Schema.String.check(
  Schema.isPattern(segment, {
    expected: "1 to 128 letters, digits, dots, underscores, colons or hyphens"
  })
)
