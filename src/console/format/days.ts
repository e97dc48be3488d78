/** The day in UTC, as in usage. */
export const dayOf = (time: Date): string => time.toISOString().slice(0, 10)

/** The day this many days later, or earlier if the number is negative. */
export const dayAfter = (day: string, days: number): string =>
  dayOf(new Date(new Date(`${day}T00:00:00Z`).getTime() + days * 86_400_000))

/** All days of a range, both inclusive; at most the latest `atMost`. */
export const daysBetween = (from: string, to: string, atMost: number): ReadonlyArray<string> => {
  const days: Array<string> = []
  for (let day = to; day >= from && days.length < atMost; day = dayAfter(day, -1)) days.push(day)
  return days.toReversed()
}

const hourMillis = 3_600_000

/** When each hour of these days begins, in UTC, up to now. */
export const hoursBetween = (from: string, to: string, now: Date): ReadonlyArray<string> => {
  const first = new Date(`${from}T00:00:00Z`).getTime()
  const last = Math.min(new Date(`${to}T23:00:00Z`).getTime(), now.getTime())
  const count = Math.max(0, Math.floor((last - first) / hourMillis) + 1)
  return Array.from({ length: count }, (_, n) => new Date(first + n * hourMillis).toISOString())
}

export const hourAfter = (hour: string): string =>
  new Date(new Date(hour).getTime() + hourMillis).toISOString()

const utcDay = new Intl.DateTimeFormat("en", { month: "short", day: "numeric", timeZone: "UTC" })
const utcDayOfYear = new Intl.DateTimeFormat("en", {
  year: "numeric",
  month: "short",
  day: "numeric",
  timeZone: "UTC"
})

/** `Nov 26`: a day in UTC, as in usage. */
export const showDay = (day: string): string => utcDay.format(new Date(`${day}T00:00:00Z`))

/** `Nov 26, 2026`. */
export const showFullDay = (day: string): string =>
  utcDayOfYear.format(new Date(`${day}T00:00:00Z`))

/** `Nov 20 – 26, 2026`: days of which the first and the last are named. */
export const showDays = (from: string, to: string): string =>
  utcDayOfYear.formatRange(new Date(`${from}T00:00:00Z`), new Date(`${to}T00:00:00Z`))

/** `Nov 26, 14:00`, in UTC like days. */
export const showHour = (hour: string): string =>
  `${showDay(hour.slice(0, 10))}, ${hour.slice(11, 16)}`

const localHour = new Intl.DateTimeFormat("en", {
  month: "short",
  day: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  hourCycle: "h23"
})

/** `Nov 26, 14:00`, in the viewer's time zone like times in lists. */
export const showLocalHour = (hour: string): string => localHour.format(new Date(hour))

export const isDay = (text: string): boolean =>
  /^\d{4}-\d\d-\d\d$/u.test(text) && !Number.isNaN(new Date(`${text}T00:00:00Z`).getTime())
