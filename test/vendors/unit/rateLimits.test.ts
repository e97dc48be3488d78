import { assert, describe, it } from "@effect/vitest"
import {
  ratePauseOf,
  retryAfterMillis,
  tellsRates,
  toldRates
} from "../../../src/vendors/accounts/RateLimits.ts"

const now = Date.parse("2026-11-22T12:00:00Z")

/** docs/reference/vendors.md#openai-rates */
describe("the wait that a vendor names", () => {
  const waits: ReadonlyArray<readonly [Record<string, string>, number | undefined]> = [
    [{}, undefined],
    [{ "retry-after": "" }, undefined],
    [{ "retry-after": "soon" }, undefined],
    [{ "retry-after": "20" }, 20_000],
    [{ "retry-after": "1.5" }, 1500],
    [{ "retry-after": "6m0s" }, 360_000],
    [{ "retry-after": "0.5h1m" }, 1_860_000],
    [{ "retry-after": "250ms" }, 250],
    [{ "retry-after": "Sun, 22 Nov 2026 12:00:30 GMT" }, 30_000],
    [{ "retry-after": "Sun, 22 Nov 2026 11:00:00 GMT" }, 0],
    [{ "retry-after": "86400" }, 3_600_000],
    [{ "retry-after-ms": "120", "retry-after": "1" }, 120],
    [{ "retry-after-ms": "soon", "retry-after": "1" }, 1000]
  ]
  for (const [headers, expected] of waits) {
    it(`${JSON.stringify(headers)} is ${expected} ms`, () => {
      assert.strictEqual(retryAfterMillis(headers, now), expected)
    })
  }
})

describe("the pause that a response requests", () => {
  const left = { "x-ratelimit-remaining-tokens": "500", "x-ratelimit-reset-tokens": "6s" }
  const spent = { "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "20s" }
  const anthropic = {
    "anthropic-ratelimit-requests-remaining": "0",
    "anthropic-ratelimit-requests-reset": "2026-11-22T12:00:40Z"
  }
  const pauses: ReadonlyArray<
    readonly [string, number, Record<string, string>, ReturnType<typeof ratePauseOf>]
  > = [
    ["a 200", 200, left, undefined],
    ["a 200 with nothing left", 200, spent, { millis: 20_000, isUsedUp: false }],
    [
      "a 200 whose limit is already reset",
      200,
      { ...spent, "x-ratelimit-reset-requests": "0s" },
      undefined
    ],
    [
      "a 200 with two limits reached",
      200,
      { ...spent, "x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "30s" },
      { millis: 30_000, isUsedUp: false }
    ],
    [
      "a 429 that asks for no wait",
      429,
      { ...spent, "retry-after": "0" },
      { millis: 0, isUsedUp: false }
    ],
    ["a 429 without headers", 429, {}, { millis: 1000, isUsedUp: false }],
    [
      "a 429 with tokens left",
      429,
      { ...left, "retry-after": "3" },
      { millis: 3000, isUsedUp: false }
    ],
    [
      "a 429 with nothing left",
      429,
      { ...spent, "retry-after": "3" },
      { millis: 3000, isUsedUp: true }
    ],
    ["a 429 with only a reset", 429, anthropic, { millis: 40_000, isUsedUp: true }]
  ]
  for (const [what, status, headers, expected] of pauses) {
    it(`after ${what} is ${JSON.stringify(expected)}`, () => {
      assert.deepStrictEqual(ratePauseOf(status, headers, now), expected)
    })
  }
})

/** docs/reference/vendors.md#accounts */
describe("the rates that a response tells", () => {
  const headers = {
    "x-ratelimit-limit-requests": "500",
    "x-ratelimit-remaining-requests": "499",
    "x-ratelimit-reset-requests": "6s",
    "x-ratelimit-limit-tokens": "1000",
    "x-ratelimit-remaining-tokens": "1200",
    "x-ratelimit-limit-input-tokens": "2000"
  }

  it("are those with a limit and a rest, counted from the response until they are reset", () => {
    const at = (nowMillis: number) =>
      toldRates(headers, now, nowMillis).map((rate) => [rate.name, rate.used, rate.resetsAtMillis])
    assert.deepStrictEqual(at(now + 5999), [
      ["requests", 1, now + 6000],
      ["tokens", 0, undefined]
    ])
    assert.deepStrictEqual(at(now + 6000)[0], ["requests", 0, now + 6000])
    const dated = {
      "anthropic-ratelimit-requests-limit": "50",
      "anthropic-ratelimit-requests-remaining": "0",
      "anthropic-ratelimit-requests-reset": "2026-11-22T12:00:40Z"
    }
    assert.deepStrictEqual(toldRates(dated, now, now + 10_000), [
      { name: "requests", limit: 50, used: 50, resetsAtMillis: now + 40_000 }
    ])
  })

  it("are recognized by the limit of requests of OpenAI or Anthropic", () => {
    assert.isTrue(tellsRates(headers))
    assert.isTrue(tellsRates({ "anthropic-ratelimit-requests-limit": "50" }))
    assert.isFalse(tellsRates({ "retry-after": "1" }))
  })
})
