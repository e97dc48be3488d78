/** Times are shown in the viewer's time zone, with the UTC time in the title. */

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

/** The UTC time with milliseconds, as in the API. */
export const utcOf = (iso: string): string => `${iso.replace("T", " ").replace(/Z$/u, "")} UTC`

const day = new Intl.DateTimeFormat("en", { month: "short", day: "numeric" })
const dayOfYear = new Intl.DateTimeFormat("en", { year: "numeric", month: "short", day: "numeric" })

const ages = [
  [60, 1, "s"],
  [3600, 60, "min"],
  [86_400, 3600, "h"],
  [7 * 86_400, 86_400, "d"]
] as const

/** `now`, `5 min ago`, `in 3 h`, or the date if it is more than a week away. */
export const showAgo = (iso: string, nowMillis: number): string => {
  const time = new Date(iso)
  const seconds = (nowMillis - time.getTime()) / 1000
  const distance = Math.abs(seconds)
  if (distance < 10) return "now"
  for (const [below, unit, name] of ages) {
    if (distance < below) {
      const count = `${Math.floor(distance / unit)} ${name}`
      return seconds < 0 ? `in ${count}` : `${count} ago`
    }
  }
  const isThisYear = time.getFullYear() === new Date(nowMillis).getFullYear()
  return (isThisYear ? day : dayOfYear).format(time)
}

/** `340 ms`, `3.2 s`, `2 min 5 s`, `3 h 20 min`. */
export const showDuration = (millis: number): string => {
  if (millis < 1000) return `${Math.round(millis)} ms`
  const seconds = millis / 1000
  if (seconds < 60) return `${seconds.toFixed(1)} s`
  const whole = Math.round(seconds)
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`
}

/** `+8.03 s`, `+2 min 5 s`: the time since the first event. */
export const showOffset = (millis: number): string =>
  `+${millis < 60_000 ? `${(millis / 1000).toFixed(2)} s` : showDuration(millis)}`

export const millisBetween = (from: string, to: string): number =>
  new Date(to).getTime() - new Date(from).getTime()

export const isPast = (iso: string): boolean => new Date(iso).getTime() <= Date.now()

/** Converts a time to the value of an `<input type="datetime-local">` in the viewer's time zone, and back. */
export const localInputOf = (iso: string): string => {
  const time = new Date(iso)
  if (Number.isNaN(time.getTime())) return ""
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

export const isoOfLocalInput = (value: string): string | undefined => {
  const time = new Date(value)
  return value === "" || Number.isNaN(time.getTime()) ? undefined : time.toISOString()
}
