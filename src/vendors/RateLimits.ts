type ResponseHeaders = Readonly<Record<string, string | ReadonlyArray<string> | undefined>>

/** Pause of an account after a 429 without a wait. */
const unknownWaitMillis = 1000

/** Pause of an account that is unpaid or whose key is refused, until the operator acts. */
const operatorWaitMillis = 60_000

/** A longer wait is shortened; the next call finds out whether the account is free. */
const waitMillisMax = 3_600_000

const one = (headers: ResponseHeaders, name: string): string | undefined => {
  const value = headers[name]
  return typeof value === "string" ? value : value?.[0]
}

const units: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }

/** `250ms`, `6m0s`, `1.5s`, seconds, or a date; `undefined` for anything else. */
const waitOf = (text: string | undefined, nowMillis: number): number | undefined => {
  if (text === undefined || text === "") return undefined
  if (/^\d+(?:\.\d+)?$/u.test(text)) return Number(text) * 1000
  if (/^(?:\d+(?:\.\d+)?(?:ms|[smh]))+$/u.test(text)) {
    let millis = 0
    for (const [, count, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|[smh])/gu)) {
      millis += Number(count) * (units[unit ?? ""] ?? 0)
    }
    return millis
  }
  const date = Date.parse(text)
  return Number.isNaN(date) ? undefined : Math.max(0, date - nowMillis)
}

/** Pairs of headers: what remains, and when it is reset. OpenAI, Anthropic. */
const windows = ["requests", "tokens", "input-tokens", "output-tokens"].flatMap((what) => [
  [`x-ratelimit-remaining-${what}`, `x-ratelimit-reset-${what}`] as const,
  [`anthropic-ratelimit-${what}-remaining`, `anthropic-ratelimit-${what}-reset`] as const
])

/**
 * The pause of an account after this response, in milliseconds; 0 for none. A 429 has `retry-after`;
 * any response may say that nothing remains.
 */
export const pauseAfter = (status: number, headers: ResponseHeaders, nowMillis: number): number => {
  const retryAfter = retryAfterMillis(headers, nowMillis)
  if (status === 401 || status === 402) return operatorWaitMillis
  if (status === 429) return Math.min(retryAfter ?? unknownWaitMillis, waitMillisMax)
  let pause = 0
  for (const [remaining, reset] of windows) {
    if (one(headers, remaining) === "0") {
      pause = Math.max(pause, waitOf(one(headers, reset), nowMillis) ?? 0)
    }
  }
  return Math.min(pause, waitMillisMax)
}

/** `retry-after-ms`, else `retry-after` in seconds or as a date. */
export const retryAfterMillis = (
  headers: ResponseHeaders,
  nowMillis: number
): number | undefined => {
  const millis = one(headers, "retry-after-ms")
  return millis !== undefined && /^\d+(?:\.\d+)?$/u.test(millis)
    ? Number(millis)
    : waitOf(one(headers, "retry-after"), nowMillis)
}
