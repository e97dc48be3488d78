import { DateTime, Schema } from "effect"
import * as Credits from "./Credits.ts"
import { Problem } from "./Problem.ts"

/** When an API key's spend limit resets, by the UTC calendar. docs/reference/keys-and-limits.md#spend-limit */
export const SpendReset = Schema.Literals(["daily", "weekly", "monthly", "never"])
export type SpendReset = typeof SpendReset.Type

const parts = { daily: "day", weekly: "week", monthly: "month" } as const

/** The end of the period that contains this time; weeks begin on Monday. */
export const resetAfter = (reset: SpendReset, time: DateTime.Utc): DateTime.Utc | null => {
  if (reset === "never") return null
  const part = parts[reset]
  return DateTime.add(DateTime.startOf(time, part, { weekStartsOn: 1 }), { [`${part}s`]: 1 })
}

/** A hold refused by the spend limit of its key. */
export interface OverSpendLimit {
  readonly _tag: "OverSpendLimit"
  readonly reset: SpendReset
  readonly left: Credits.Credits
  /** The time of the refusal. */
  readonly at: DateTime.Utc
}

/** The store's name for the refusal. */
export const SpendRefusal = Schema.Literals([
  "budget_daily",
  "budget_weekly",
  "budget_monthly",
  "budget_never"
])

const resets = {
  budget_daily: "daily",
  budget_weekly: "weekly",
  budget_monthly: "monthly",
  budget_never: "never"
} as const

export const overSpendLimit = (
  refusal: typeof SpendRefusal.Type,
  left: Credits.Credits,
  at: DateTime.Utc
): OverSpendLimit => ({ _tag: "OverSpendLimit", reset: resets[refusal], left, at })

/** Code 1102, with the remaining credits and the time of the reset. `needed` ends the message. */
export const spendLimitProblem = ({ at, left, reset }: OverSpendLimit, needed = ""): Problem => {
  const remaining = Credits.format(left)
  const until = resetAfter(reset, at)
  const detail = `This API key may spend ${remaining} more credits`
  if (until === null) return new Problem({ code: 1102, detail: `${detail}${needed}`, remaining })
  const seconds = Math.ceil((DateTime.toEpochMillis(until) - DateTime.toEpochMillis(at)) / 1000)
  return new Problem({
    code: 1102,
    detail: `${detail} before ${DateTime.formatIso(until)}${needed}`,
    remaining,
    retryAfterSeconds: seconds
  })
}
