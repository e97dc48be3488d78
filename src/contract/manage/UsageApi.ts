import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { Text } from "../../catalog/bodies/Fields.ts"
import { CreditsFromString } from "../../domain/Credits.ts"
import { ApiKeyId, UserId } from "../../domain/Ids.ts"
import { usageHoursDays, usageHoursDaysMax } from "../../domain/limits/Limits.ts"
import { usageGroups } from "../../domain/Usage.ts"
import { formatQuery, pageOf, pageQuery } from "../Lists.ts"
import { manageErrors as error } from "../ManageErrors.ts"

/** An existing UTC day. */
const Day = Schema.String.check(
  Schema.makeFilter<string>((text) => isDay(text) || "Expected a day such as 2030-01-31")
).annotate({ description: "A day in UTC, inclusive", examples: ["2030-01-31"] })

const isDay = (text: string): boolean =>
  /^\d{4}-\d\d-\d\d$/u.test(text) &&
  new Date(`${text}T00:00:00Z`).getTime() >= 0 &&
  new Date(`${text}T00:00:00Z`).toISOString().startsWith(text)

const groupNames: ReadonlySet<string> = new Set(usageGroups)

const GroupBy = Schema.String.check(
  Schema.makeFilter<string>((text) => {
    const names = text.split(",")
    return (
      (names.every((name) => groupNames.has(name)) && new Set(names).size === names.length) ||
      `Expected some of ${usageGroups.join(",")}`
    )
  })
).annotate({
  description: `Some of ${usageGroups.join(", ")}, separated by commas; default: day. With hour, at most ${usageHoursDaysMax} of the last ${usageHoursDays} days`,
  examples: ["day,key,model"]
})

/** The group values of a row, preceded by its amount if rows are sorted by amount. */
export const UsageKey = Schema.fromJsonString(Schema.Array(Text))

const UsageQuery = Schema.Struct({
  from: Schema.optionalKey(Day),
  to: Schema.optionalKey(Day),
  group_by: Schema.optionalKey(GroupBy),
  user_id: Schema.optionalKey(UserId.annotate({ description: "A filter for the operator" })),
  api_key_id: Schema.optionalKey(ApiKeyId),
  vendor: Schema.optionalKey(Text.check(Schema.isNonEmpty())),
  model: Schema.optionalKey(Text.check(Schema.isNonEmpty())),
  sandbox: Schema.optionalKey(Schema.Literals(["true", "false"])),
  sort: Schema.optionalKey(
    Schema.Literals(["group", "amount"]).annotate({
      description:
        "group (default): in ascending order of the groups; amount: the most expensive first"
    })
  ),
  ...formatQuery("rows"),
  ...pageQuery(UsageKey)
})
export type UsageQuery = typeof UsageQuery.Type

const Units = Schema.Struct({
  input_tokens: Schema.Int,
  input_cached_tokens: Schema.Int,
  output_tokens: Schema.Int,
  images: Schema.Int,
  videos: Schema.Int,
  audios: Schema.Int,
  seconds: Schema.Int
}).annotate({ identifier: "UsageUnits" })

const duration = (share: string) =>
  Schema.NullOr(Schema.Int).annotate({
    description: `Milliseconds that ${share} of the tasks and calls did not exceed, accurate to a sixteenth`
  })

/** The sums of a group, with members named as in `group_by`. Members by which rows are not grouped are null. */
export const Usage = Schema.Struct({
  day: Schema.NullOr(Schema.String),
  /** When the hour began. */
  hour: Schema.NullOr(Schema.String),
  user: Schema.NullOr(Schema.String),
  key: Schema.NullOr(Schema.String),
  vendor: Schema.NullOr(Schema.String),
  model: Schema.NullOr(Schema.String),
  sandbox: Schema.NullOr(Schema.Boolean),
  tasks: Schema.Int,
  calls: Schema.Int,
  units: Units,
  amount: CreditsFromString,
  errors: Schema.Int.annotate({
    description: "Failed tasks, and calls that were released or lost"
  }),
  p50_ms: duration("half"),
  p95_ms: duration("95 %")
}).annotate({ identifier: "Usage" })

/** What was charged, for a user or for all users. docs/reference/usage.md */
export class UsageApi extends HttpApiGroup.make("usage").add(
  HttpApiEndpoint.get("listUsage", "/usage", {
    query: UsageQuery,
    success: pageOf(Usage),
    error
  }),
  HttpApiEndpoint.post("rebuildUsage", "/usage/rebuild", {
    payload: Schema.Struct({ from: Day, to: Day, user_id: Schema.optionalKey(UserId) }),
    success: Schema.Struct({ corrected: Schema.Int }).annotate({ identifier: "UsageRebuild" }),
    error
  })
) {}
