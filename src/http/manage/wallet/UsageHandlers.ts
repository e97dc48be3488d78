import { DateTime, Effect, Option, Stream } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { pointerOf } from "../../../catalog/FieldFaults.ts"
import { CurrentCaller } from "../../../contract/Access.ts"
import { Api } from "../../../contract/Api.ts"
import { UsageKey } from "../../../contract/manage/UsageApi.ts"
import type { UsageQuery as Query } from "../../../contract/manage/UsageApi.ts"
import * as Credits from "../../../domain/Credits.ts"
import { percentile } from "../../../domain/Durations.ts"
import { usageHoursDaysMax, usageRebuildDaysMax } from "../../../domain/limits/Limits.ts"
import { invalid, problem } from "../../../domain/Problem.ts"
import { usageGroups } from "../../../domain/Usage.ts"
import type { UsageGroup } from "../../../domain/Usage.ts"
import { UsageReport } from "../../../wallet/UsageReport.ts"
import type { UsageQuery, UsageRow } from "../../../wallet/UsageReport.ts"
import { requireOperator } from "../../server/access/Authentication.ts"
import { csvResponse, textCell, wantsCsv } from "../Csv.ts"
import { readPage, toPage } from "../Paging.ts"

/** How many days before `to` the range begins if `from` is absent. Hourly rows begin the day before `to`. */
const defaultDays = 29

/** Charges by day, key and model. */
export const layer = HttpApiBuilder.group(
  Api,
  "usage",
  Effect.fnUntraced(function* (handlers) {
    const usage = yield* UsageReport
    return handlers.handleAll({
      listUsage: Effect.fnUntraced(function* ({ query, request }) {
        const read = yield* readQuery(query)
        const show = showUsage(read.groups)
        if (wantsCsv(query.format, request)) {
          return csvResponse("usage.csv", columns, Stream.map(usage.all(read), show), lineOf)
        }
        const { before, limit } = readPage(query, UsageKey)
        const order = orderOf(read)
        const after = Option.map(before, lastRow(order))
        if (Option.exists(after, ({ group }) => group.length !== read.groups.length)) {
          return yield* fault("cursor", "Expected next_cursor of the page before")
        }
        const rows = yield* usage.sums(read, { after, limit: limit + 1 })
        return yield* toPage(
          rows,
          limit,
          ({ credits, group }) => JSON.stringify([order, String(credits), ...group]),
          show
        )
      }),
      rebuildUsage: Effect.fnUntraced(function* ({ payload }) {
        yield* requireOperator
        const { from, to, user_id: user } = payload
        const days = daysOf(from, to)
        if (days < 1 || days > usageRebuildDaysMax) {
          const detail = `Expected 1 to ${usageRebuildDaysMax} days from the first`
          return yield* invalid([{ pointer: pointerOf(["to"]), detail }])
        }
        return { corrected: yield* usage.rebuild({ from, to, user }) }
      })
    })
  })
)

/** The order of the rows. A cursor contains it, because its row has no place in another order. */
const orderOf = ({ byAmount, groups }: Pick<UsageQuery, "byAmount" | "groups">) =>
  [byAmount ? "amount" : "group", ...groups].join(",")

/** The last row that the cursor names. Another order or a malformed amount gives no group, which the caller refuses. */
const lastRow = (expected: string) => (key: ReadonlyArray<string>) => {
  const [order, amount = "", ...group] = key
  return order === expected && /^\d{1,18}$/u.test(amount)
    ? { credits: Credits.make(BigInt(amount)), group }
    : { credits: Credits.zero, group: [] }
}

/** The number of days of the range, both inclusive. */
const daysOf = (from: string, to: string): number =>
  (Date.parse(to) - Date.parse(from)) / 86_400_000 + 1

const fault = (name: string, detail: string) =>
  invalid([{ pointer: pointerOf(["query", name]), detail }])

const readQuery = Effect.fnUntraced(function* (query: Query) {
  const caller = yield* CurrentCaller
  const own = caller._tag === "User" ? caller.userId : undefined
  if (own !== undefined && query.user_id !== undefined && query.user_id !== own) {
    return yield* problem(1004, "Only the operator may read the usage of another user")
  }
  const to = query.to ?? DateTime.formatIsoDateUtc(yield* DateTime.now)
  const names: ReadonlyArray<string> = (query.group_by ?? "day").split(",")
  const isByHour = names.includes("hour")
  const from =
    query.from ??
    DateTime.formatIsoDateUtc(
      DateTime.subtract(DateTime.makeUnsafe(to), { days: isByHour ? 1 : defaultDays })
    )
  if (from > to) return yield* fault("to", "Expected no day before `from`")
  if (isByHour && daysOf(from, to) > usageHoursDaysMax) {
    const detail = `Expected at most ${usageHoursDaysMax} days up to \`to\`, because they are grouped by hour`
    return yield* fault("from", detail)
  }
  return {
    from,
    to,
    groups: usageGroups.filter((group) => names.includes(group)),
    byAmount: query.sort === "amount",
    user: own ?? query.user_id,
    key: query.api_key_id,
    vendor: query.vendor,
    model: query.model,
    sandbox: query.sandbox === undefined ? undefined : query.sandbox === "true"
  } satisfies UsageQuery
})

const showUsage = (groups: ReadonlyArray<UsageGroup>) => {
  const valueOf = (row: UsageRow, group: UsageGroup): string | null => {
    const place = groups.indexOf(group)
    // The group is -1 if it was not requested, and empty if the row has no value
    return (place < 0 ? undefined : row.group[place]) || null
  }
  return (row: UsageRow) => {
    const sandbox = valueOf(row, "sandbox")
    return {
      day: valueOf(row, "day"),
      hour: valueOf(row, "hour"),
      user: valueOf(row, "user"),
      key: valueOf(row, "key"),
      vendor: valueOf(row, "vendor"),
      model: valueOf(row, "model"),
      sandbox: sandbox === null ? null : sandbox === "true",
      tasks: row.tasks,
      calls: row.calls,
      units: {
        input_tokens: row.inputTokens,
        input_cached_tokens: row.inputCachedTokens,
        output_tokens: row.outputTokens,
        images: row.images,
        videos: row.videos,
        audios: row.audios,
        seconds: row.seconds
      },
      amount: row.credits,
      errors: row.errors,
      p50_ms: percentile(row.durations ?? [], 0.5),
      p95_ms: percentile(row.durations ?? [], 0.95)
    }
  }
}

type Shown = ReturnType<ReturnType<typeof showUsage>>

const unitNames = [
  "input_tokens",
  "input_cached_tokens",
  "output_tokens",
  "images",
  "videos",
  "audios",
  "seconds"
] satisfies ReadonlyArray<keyof Shown["units"]>

const columns = [
  ...usageGroups,
  "tasks",
  "calls",
  ...unitNames,
  "amount",
  "errors",
  "p50_ms",
  "p95_ms"
]

const lineOf = (row: Shown): ReadonlyArray<string> => [
  row.day ?? "",
  row.hour ?? "",
  row.user ?? "",
  row.key ?? "",
  textCell(row.vendor),
  textCell(row.model),
  String(row.sandbox ?? ""),
  String(row.tasks),
  String(row.calls),
  ...unitNames.map((name) => String(row.units[name])),
  Credits.format(row.amount),
  String(row.errors),
  String(row.p50_ms ?? ""),
  String(row.p95_ms ?? "")
]
