import { Context, DateTime, Effect, Layer, Option, Stream } from "effect"
import type { UserId } from "../domain/Ids.ts"
import {
  usageExportRowsMax,
  usageHourRowsMax,
  usageHoursDays,
  usageRebuildUsersMax
} from "../domain/limits/Limits.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import { UsageStore } from "./UsageStore.ts"
import type { UsagePage, UsageQuery, UsageRow } from "./UsageStore.ts"

export type { UsageQuery, UsageRow } from "./UsageStore.ts"

/** A range of days, both inclusive, for one user or for all. */
export interface RebuildRange {
  readonly from: string
  readonly to: string
  readonly user?: UserId | undefined
}

/** Charges by day, key and model. docs/reference/usage.md */
export class UsageReport extends Context.Service<
  UsageReport,
  {
    readonly sums: (
      query: UsageQuery,
      page: UsagePage
    ) => Effect.Effect<ReadonlyArray<UsageRow>, StoreUnavailable>
    /** All sums, read page by page. */
    readonly all: (query: UsageQuery) => Stream.Stream<UsageRow, StoreUnavailable>
    /**
     * Recomputes the sums from tasks and receipts, one day of a user at a time. Returns how many of them were wrong.
     */
    readonly rebuild: (range: RebuildRange) => Effect.Effect<number, StoreUnavailable>
    /** Deletes hourly sums that are past their retention. docs/reference/privacy.md#retention */
    readonly removeOld: Effect.Effect<void, StoreUnavailable>
  }
>()("gateway/wallet/UsageReport") {
  static readonly layer = Layer.effect(
    UsageReport,
    Effect.map(UsageStore, (store) =>
      UsageReport.of({
        sums: store.sums,
        all: (query) =>
          Stream.paginate(Option.none<UsageRow>(), (after) =>
            Effect.map(store.sums(query, { after, limit: usageExportRowsMax }), (rows) => {
              const last = rows.length < usageExportRowsMax ? undefined : rows.at(-1)
              return [rows, Option.fromUndefinedOr(last && Option.some(last))] as const
            })
          ),
        rebuild: rebuild(store),
        removeOld: Effect.flatMap(hoursSince, (since) =>
          Effect.repeat(store.removeHours(since, usageHourRowsMax), {
            while: (removed) => removed >= usageHourRowsMax
          })
        ).pipe(Effect.asVoid)
      })
    )
  ).pipe(Layer.provide(UsageStore.layer))
}

/** The first hour that is retained. */
const hoursSince = Effect.map(DateTime.now, (now) =>
  DateTime.subtract(DateTime.startOf(now, "hour"), { days: usageHoursDays })
)

const rebuild = (store: UsageStore["Service"]) =>
  Effect.fnUntraced(function* ({ from, to, user }: RebuildRange) {
    const days = daysOf(from, to)
    const since = yield* hoursSince
    const ofUser = (userId: UserId) =>
      Effect.forEach(days, (day) => store.rebuild(userId, day, since)).pipe(
        Effect.map((changed) => changed.filter(Boolean).length)
      )
    if (user !== undefined) return yield* ofUser(user)
    let changed = 0
    let after = Option.none<UserId>()
    for (;;) {
      const users = yield* store.users(after, usageRebuildUsersMax)
      for (const userId of users) changed += yield* ofUser(userId)
      after = Option.fromUndefinedOr(users.at(-1))
      if (users.length < usageRebuildUsersMax) return changed
    }
  })

/** Every day from `from` to `to`. */
const daysOf = (from: string, to: string): ReadonlyArray<string> => {
  const days: Array<string> = []
  let day = DateTime.makeUnsafe(from)
  for (let text = from; text <= to; text = DateTime.formatIsoDateUtc(day)) {
    days.push(text)
    day = DateTime.add(day, { days: 1 })
  }
  return days
}
