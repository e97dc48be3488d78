type ResponseHeaders = Readonly<Record<string, string | ReadonlyArray<string> | undefined>>

/** The pause after a 429 that names no wait. */
const unknownWaitMillis = 1000

/** A longer wait is shortened; the next call tests whether the account is free. */
const waitMillisMax = 3_600_000

const one = (headers: ResponseHeaders, name: string): string | undefined => {
  const value = headers[name]
  return typeof value === "string" ? value : value?.[0]
}

const units: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }

/**
 * Parses `250ms`, `6m0s`, `1.5s`, seconds or a date into milliseconds, at most an hour; `undefined` for anything else.
 */
const waitOf = (text: string | undefined, nowMillis: number): number | undefined => {
  if (text === undefined || text === "") return undefined
  if (/^\d+(?:\.\d+)?$/u.test(text)) return bounded(Number(text) * 1000)
  if (/^(?:\d+(?:\.\d+)?(?:ms|[smh]))+$/u.test(text)) {
    let millis = 0
    for (const [, count, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|[smh])/gu)) {
      millis += Number(count) * (units[unit ?? ""] ?? 0)
    }
    return bounded(millis)
  }
  const date = Date.parse(text)
  return Number.isNaN(date) ? undefined : bounded(date - nowMillis)
}

const bounded = (millis: number): number => Math.min(Math.max(millis, 0), waitMillisMax)

/** Headers of OpenAI and Anthropic: the limit, what remains of it, and when it resets. */
const limits = ["requests", "tokens", "input-tokens", "output-tokens"].flatMap((what) =>
  [`x-ratelimit-%-${what}`, `anthropic-ratelimit-${what}-%`].map((name) => ({
    name: what.replace("-", "_"),
    limit: name.replace("%", "limit"),
    remaining: name.replace("%", "remaining"),
    reset: name.replace("%", "reset")
  }))
)

/** A pause that a response asks for. */
export interface RatePause {
  readonly millis: number
  /**
   * Whether a 429 reports that nothing is left. If false, this request alone may have been too large for what remains.
   */
  readonly isUsedUp: boolean
}

/** A 429 has `retry-after`; any response may report that nothing remains. ADR 0132. */
export const ratePauseOf = (
  status: number,
  headers: ResponseHeaders,
  nowMillis: number
): RatePause | undefined => {
  let reset: number | undefined
  for (const names of limits) {
    if (headers[names.remaining] === undefined || one(headers, names.remaining) !== "0") continue
    reset = Math.max(reset ?? 0, waitOf(one(headers, names.reset), nowMillis) ?? 0)
  }
  if (status !== 429) return reset ? { millis: reset, isUsedUp: false } : undefined
  const named = retryAfterMillis(headers, nowMillis) ?? reset
  return { millis: named ?? unknownWaitMillis, isUsedUp: reset !== undefined && !!named }
}

/** The wait in milliseconds from `retry-after-ms`, else from `retry-after` in seconds or as a date. At most an hour. */
export const retryAfterMillis = (
  headers: ResponseHeaders,
  nowMillis: number
): number | undefined => {
  const millis = one(headers, "retry-after-ms")
  return millis !== undefined && /^\d+(?:\.\d+)?$/u.test(millis)
    ? bounded(Number(millis))
    : waitOf(one(headers, "retry-after"), nowMillis)
}

/** A rate of the account, as reported by a response. */
export interface ToldRate {
  readonly name: string
  readonly limit: number
  readonly used: number
  readonly resetsAtMillis: number | undefined
}

export const tellsRates = (headers: ResponseHeaders): boolean =>
  headers["x-ratelimit-limit-requests"] !== undefined ||
  headers["anthropic-ratelimit-requests-limit"] !== undefined

/**
 * The rates in the headers of a response received at that time. A rate that has been reset since then counts as unused.
 */
export const toldRates = (
  headers: ResponseHeaders,
  atMillis: number,
  nowMillis: number
): ReadonlyArray<ToldRate> =>
  limits.flatMap((names) => {
    const limit = Number(one(headers, names.limit))
    const remaining = Number(one(headers, names.remaining))
    if (!Number.isFinite(limit) || !Number.isFinite(remaining)) return []
    const wait = waitOf(one(headers, names.reset), atMillis)
    const resetsAtMillis = wait === undefined ? undefined : atMillis + wait
    const isReset = resetsAtMillis !== undefined && resetsAtMillis <= nowMillis
    const used = isReset ? 0 : Math.max(0, limit - remaining)
    return [{ name: names.name, limit, used, resetsAtMillis }]
  })
