import { assert, describe, it } from "@effect/vitest"
import { endingOf, orderFaults, priceAt, pricePeriods } from "../../../src/catalog/PriceRow.ts"

/** docs/catalog.md#price-rows */

const at = (text: string) => Date.parse(text)

const row = {
  price: 1,
  validFrom: "2026-11-01",
  validUntil: "2027-02-01",
  laterPrices: [
    { from: "2027-01-01", price: 3, source: "third" },
    { from: "2026-12-01", price: 2 }
  ]
}

describe("a price row", () => {
  it("has a price from its first day up to the day on which it ends, and none before or after", () => {
    const prices = [
      "2026-10-31T23:59:59.999Z",
      "2026-11-01T00:00:00Z",
      "2026-11-30T23:59:59.999Z",
      "2026-12-01T00:00:00Z",
      "2027-01-01T00:00:00Z",
      "2027-01-31T23:59:59.999Z",
      "2027-02-01T00:00:00Z"
    ].map((time) => priceAt(row, at(time)))
    assert.deepStrictEqual(prices, [undefined, 1, 1, 2, 3, 3, undefined])
  })

  it("always has its price if it has no days", () => {
    assert.strictEqual(priceAt({ price: 1 }, 0), 1)
    assert.deepStrictEqual(pricePeriods({ price: 1 }), [
      { from: null, until: null, price: 1, source: null }
    ])
  })

  it("has a period for each price, in the order of their days", () => {
    assert.deepStrictEqual(
      pricePeriods(row).map(({ from, source, until }) => [from, until, source]),
      [
        ["2026-11-01", "2026-12-01", null],
        ["2026-12-01", "2027-01-01", null],
        ["2027-01-01", "2027-02-01", "third"]
      ]
    )
  })

  it.each([
    [{ validFrom: "2027-01-01", validUntil: "2027-01-01" }, "validUntil"],
    [{ validFrom: "2027-01-01", laterPrices: [{ from: "2027-01-01", price: 1 }] }, "laterPrices"],
    [{ validUntil: "2027-01-01", laterPrices: [{ from: "2027-01-02", price: 1 }] }, "validUntil"],
    [
      {
        laterPrices: [
          { from: "2027-01-02", price: 1 },
          { from: "2027-01-02", price: 2 }
        ]
      },
      "laterPrices"
    ],
    [{ deprecation: "2027-01-01" }, "deprecation"],
    [{ deprecation: "2027-01-02", sunset: "2027-01-01" }, "deprecation"]
  ] as const)("has a fault if its days are not in order: %o", (days, field) => {
    assert.deepStrictEqual(
      orderFaults(days).map((it) => it.field),
      [field]
    )
  })

  it("has no fault if its days are in order", () => {
    assert.deepStrictEqual(orderFaults(row), [])
    assert.deepStrictEqual(orderFaults({ deprecation: "2027-01-01", sunset: "2027-01-01" }), [])
  })

  it("has the headers of RFC 9745 and RFC 8594 if its model ends", () => {
    const ends = { deprecation: "2026-11-22", sunset: "2026-12-11" }
    assert.deepStrictEqual(endingOf(ends), {
      deprecation: "@1795305600",
      sunset: "Fri, 11 Dec 2026 00:00:00 GMT"
    })
    assert.strictEqual(endingOf({ sunset: "2026-12-11" })?.deprecation, "@1796947200")
    assert.isUndefined(endingOf({}))
  })
})
