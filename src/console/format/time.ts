/** Times are shown in the viewer's zone; the UTC time stands in the title. */

const shown = new Intl.DateTimeFormat("en", {
  year: "numeric",
  month: "short",
  day: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23"
})

export const showTime = (iso: string): string => shown.format(new Date(iso))

/** With milliseconds, as the API gives it. */
export const utcOf = (iso: string): string => `${iso.replace("T", " ").replace(/Z$/u, "")} UTC`

/** `340 ms`, `3.2 s`, `2 min 5 s`, `3 h 20 min`. */
export const showDuration = (millis: number): string => {
  if (millis < 1000) return `${Math.round(millis)} ms`
  const seconds = millis / 1000
  if (seconds < 60) return `${seconds.toFixed(1)} s`
  const whole = Math.round(seconds)
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`
}

export const millisBetween = (from: string, to: string): number =>
  new Date(to).getTime() - new Date(from).getTime()

export const isPast = (iso: string): boolean => new Date(iso).getTime() <= Date.now()

/** Days in UTC, as usage counts them. */
export const dayOf = (time: Date): string => time.toISOString().slice(0, 10)

/** The days of a month up to a day of it. */
export const monthUpTo = (time: Date): ReadonlyArray<string> => {
  const day = dayOf(time)
  return Array.from(
    { length: Number(day.slice(8)) },
    (_, index) => `${day.slice(0, 8)}${String(index + 1).padStart(2, "0")}`
  )
}

/** The value of an `<input type="datetime-local">` in the viewer's zone, and back. */
export const localInputOf = (iso: string): string => {
  const time = new Date(iso)
  if (Number.isNaN(time.getTime())) return ""
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

export const isoOfLocalInput = (value: string): string | undefined => {
  const time = new Date(value)
  return value === "" || Number.isNaN(time.getTime()) ? undefined : time.toISOString()
}

/** The day so many days later; earlier with a negative number. */
export const dayAfter = (day: string, days: number): string =>
  dayOf(new Date(new Date(`${day}T00:00:00Z`).getTime() + days * 86_400_000))

/** All days from one to another, both inclusive; at most so many, the latest ones. */
export const daysBetween = (from: string, to: string, atMost: number): ReadonlyArray<string> => {
  const days: Array<string> = []
  for (let day = to; day >= from && days.length < atMost; day = dayAfter(day, -1)) days.push(day)
  return days.toReversed()
}

export const isDay = (text: string): boolean =>
  /^\d{4}-\d\d-\d\d$/u.test(text) && !Number.isNaN(new Date(`${text}T00:00:00Z`).getTime())
