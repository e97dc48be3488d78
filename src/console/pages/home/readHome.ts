import { api } from "../../api/client.ts"
import type { Schemas } from "../../api/schema.ts"
import { parseCredits, sumCredits } from "../../format/credits.ts"
import { dayAfter, dayOf, daysBetween } from "../../format/days.ts"

const listMax = 100
const chartDays = 30
const weekDays = 7

/** The user's most important figures, read at once. */
export const readHome = async (now: Date) => {
  const today = dayOf(now)
  const days = daysBetween(dayAfter(today, 1 - chartDays), today, chartDays)
  const query = { limit: listMax }
  const running = (status: "pending" | "processing") =>
    api.GET("/manage/v1/tasks", { query: { ...query, status } })
  const [balance, usage, tasks, endpoints, keys, pending, processing] = await Promise.all([
    api.GET("/manage/v1/wallet", {}),
    api.GET("/manage/v1/usage", {
      query: { from: days[0] ?? today, to: today, ...query }
    }),
    api.GET("/manage/v1/tasks", { query }),
    api.GET("/manage/v1/webhook-endpoints", { query }),
    api.GET("/manage/v1/api-keys", { query }),
    running("pending"),
    running("processing")
  ])
  return {
    balance,
    days,
    amounts: amountsOn(days, usage.data),
    tasks: tasks.data,
    endpoints: endpoints.data,
    keys: keys.data,
    running: pending.data.length + processing.data.length,
    hasMoreRunning: pending.next_cursor !== null || processing.next_cursor !== null
  }
}

export type Home = Awaited<ReturnType<typeof readHome>>

/** The charges on each of these days. */
export const amountsOn = (
  days: ReadonlyArray<string>,
  usage: ReadonlyArray<Schemas["Usage"]>
): ReadonlyArray<string> => {
  const charged = new Map(usage.map(({ amount, day }) => [day, amount]))
  return days.map((day) => charged.get(day) ?? "0.00")
}

/** The credits of the last seven days, and the change from the seven days before, in percent. */
export const weekOf = (amounts: ReadonlyArray<string>) => {
  const spent = sumCredits(amounts.slice(-weekDays))
  const before = Number(parseCredits(sumCredits(amounts.slice(-2 * weekDays, -weekDays))))
  const change = Math.round((Number(parseCredits(spent)) / before - 1) * 100)
  return { spent, change: before === 0 ? undefined : change }
}

/** The number of days for which the balance lasts at the rate of the last week. `undefined`: nothing was spent. */
export const runwayOf = (available: string, spentInWeek: string): number | undefined => {
  const perDay = Number(parseCredits(spentInWeek)) / weekDays
  return perDay <= 0 ? undefined : Math.max(0, Math.floor(Number(parseCredits(available)) / perDay))
}

/** The share of the latest ended tasks that succeeded, in percent. */
export const successOf = (tasks: Home["tasks"]) => {
  const ended = tasks.filter(({ status }) => status === "completed" || status === "failed")
  const good = ended.filter(({ status }) => status === "completed")
  return { count: ended.length, percent: Math.floor((good.length / ended.length) * 100) }
}
