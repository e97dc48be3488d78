import { Option, Schema, SchemaTransformation } from "effect"
import { Text } from "../catalog/bodies/Fields.ts"
import { CreditsFromString } from "../domain/Credits.ts"
import { UserId } from "../domain/Ids.ts"
import {
  pageSizeDefault,
  pageSizeMax,
  searchedCodePointsMax,
  searchedWordsMax
} from "../domain/limits/Limits.ts"
import { Timestamp } from "../domain/task/Task.ts"

/** The schema of the id that orders a list. */
export type KeySchema = Schema.ConstraintDecoder<unknown> & { readonly Encoded: string }

const wholeNumber = /^[0-9]{1,3}$/u

/** A single check, so that a wrong limit has only one fault. */
export const listLimit = Schema.String.check(
  Schema.makeFilter<string>(
    (text) =>
      (wholeNumber.test(text) && Number(text) >= 1 && Number(text) <= pageSizeMax) ||
      `Expected a whole number from 1 to ${pageSizeMax}`,
    {
      toJsonSchema: () => ({
        format: "integer",
        minimum: 1,
        maximum: pageSizeMax,
        default: pageSizeDefault
      })
    }
  )
).pipe(Schema.decodeTo(Schema.Finite, SchemaTransformation.numberFromString))

/**
 * `?cursor&limit` of every list. A cursor that this service did not create is refused.
 * docs/reference/http.md#lists
 */
export const pageQuery = (key: KeySchema) => ({
  cursor: Schema.optionalKey(
    Schema.String.check(
      Schema.makeFilter<string>(
        (cursor) =>
          Option.isSome(keyOfCursor(cursor, key)) || "Expected next_cursor of the page before"
      )
    ).annotate({ description: "`next_cursor` of the page before" })
  ),
  limit: Schema.optionalKey(listLimit)
})

/**
 * `?user_id` of a user's own resources, so that the operator can read them. docs/reference/keys-and-limits.md#operator
 */
export const ofUser = {
  user_id: Schema.optionalKey(
    UserId.annotate({ description: "The operator names the user whose resources are read" })
  )
}

/** A page, newest first. */
export const pageOf = <S extends Schema.Constraint>(item: S) =>
  Schema.Struct({ data: Schema.Array(item), next_cursor: Schema.NullOr(Schema.String) })

/** A cursor contains the id of the last item of its page. */
export const encodeCursor = (key: string): string => Buffer.from(key).toString("base64url")

/** `None` if this service did not create the cursor. */
export const keyOfCursor = <Key extends KeySchema>(
  cursor: string,
  key: Key
): Option.Option<Key["Type"]> => {
  const text = Buffer.from(cursor, "base64url").toString("utf8")
  return encodeCursor(text) === cursor ? Schema.decodeOption(key)(text) : Option.none()
}

/** `?since&until` of a list. */
export const timeQuery = {
  since: Schema.optionalKey(
    Timestamp.annotate({ description: "Created at this time or later, ISO 8601" })
  ),
  until: Schema.optionalKey(
    Timestamp.annotate({ description: "Created before this time, ISO 8601" })
  )
}

/** `?format` of a list that is also available as a file. */
export const formatQuery = (rows: "entries" | "rows") => ({
  format: Schema.optionalKey(
    Schema.Literals(["json", "csv"]).annotate({
      description: `\`csv\` returns all ${rows} as a file; so does \`Accept: text/csv\``
    })
  )
})

/** `?trace_id` of a list: the trace of the request that caused the row. */
export const traceQuery = {
  trace_id: Schema.optionalKey(
    Schema.String.check(
      Schema.isPattern(/^[0-9a-f]{32}$/u, { expected: "a trace id of 32 hex digits" })
    )
  )
}

/** `?min_cost&max_cost` of a list: inclusive bounds of the charge. */
export const costQuery = {
  min_cost: Schema.optionalKey(CreditsFromString),
  max_cost: Schema.optionalKey(CreditsFromString)
}

/** An id, or words to search for. */
export const SearchText = Text.pipe(
  Schema.decodeTo(Schema.String, SchemaTransformation.trim())
).check(
  Schema.makeFilter<string>(
    (text) =>
      (text !== "" &&
        [...text].length <= searchedCodePointsMax &&
        text.split(/\s+/u).length <= searchedWordsMax) ||
      `Expected 1 to ${searchedWordsMax} words of ${searchedCodePointsMax} characters in all`
  )
)

/** `?q` of a list. */
export const searchQuery = (description: string) => ({
  q: Schema.optionalKey(SearchText.annotate({ description }))
})

/** A query parameter that is `true` or `false`; `false` if it is absent. */
export const flagQuery = (description: string) =>
  Schema.optionalKey(
    Schema.Literals(["true", "false"]).annotate({
      description,
      format: "boolean",
      default: "false"
    })
  )
