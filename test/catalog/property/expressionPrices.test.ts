import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import * as fc from "fast-check"
import { decodeDescribed } from "../../../src/catalog/jobs/DescribedBody.ts"
import { capturedBy, chargeHeld, quote } from "../../../src/catalog/Price.ts"
import type { PriceRule } from "../../../src/catalog/Price.ts"
import { shippedJobVendors } from "../../../src/catalog/ShippedVendors.ts"

/** docs/vendors-as-files.md#prices */
describe("a price by expression", () => {
  const price: PriceRule = {
    per: "expression",
    hold: 'timesUp(body.seconds, 5000000) * (body.quality == "hd" ? 2 : 1)',
    capture: "timesUp(usage.credits, 1000000) + results * usage.each"
  }
  const body = fc.record({
    seconds: fc.double({ min: 0.1, max: 600, noNaN: true }).map((it) => Number(it.toFixed(3))),
    quality: fc.constantFrom("hd", "sd")
  })
  const usage = fc.oneof(
    fc.record({
      credits: fc.oneof(fc.integer({ min: -10, max: 1_000_000 }), fc.double({ noNaN: true })),
      each: fc.integer({ min: -1_000_000, max: 1_000_000_000 })
    }),
    fc.dictionary(fc.string(), fc.jsonValue())
  )

  it("the capture never exceeds the hold and is never negative, whatever the vendor reports", () => {
    fc.assert(
      fc.property(body, usage, fc.integer({ min: 1, max: 10 }), (body, usage, results) => {
        const held = Result.getOrThrow(quote({ price }, body))
        const captured = capturedBy(price, held, { body, usage, results })
        const charged = captured ?? chargeHeld(held, results, results)
        assert.isTrue(charged >= 0n && charged <= held, `${charged} of ${held}`)
      })
    )
  })

  it("the capture of a shipped model stays within its hold too, whatever figures its vendor reports", () => {
    const priced = [...shippedJobVendors.values()].flatMap(({ jobs, name }) => {
      const figures = [...Object.keys(jobs!.usage ?? {}), ...Object.keys(jobs!.submit.handle ?? {})]
      return jobs!.models.map(({ body: schema, model, price }) => {
        const given = { prompt: "p", image: "https://example.com/a.png" }
        const body = Object.fromEntries(
          Object.entries(given).filter(([field]) => Object(schema["required"]).includes(field))
        )
        return {
          body: Result.getOrThrow(decodeDescribed(schema, body)),
          figures,
          model,
          name,
          price
        }
      })
    })
    const figure = fc.oneof(
      fc.integer({ min: -10, max: 1_000_000_000 }),
      fc.double({ noNaN: true }),
      fc.bigInt({ min: 0n, max: 10n ** 18n }).map(String),
      fc.string()
    )
    for (const { body, figures, model, name, price } of priced) {
      const held = Result.getOrThrow(quote({ price }, body))
      const reported = fc.dictionary(fc.constantFrom("none", ...figures), figure)
      fc.assert(
        fc.property(reported, fc.integer({ min: 1, max: 10 }), (usage, results) => {
          const captured = capturedBy(price, held, { body, usage, results }) ?? held
          assert.isTrue(captured >= 0n && captured <= held, `${name}/${model}: ${captured}`)
        })
      )
    }
  })

  it("the hold is exact: the decimal times the rate, rounded up once", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 1_000_000 }),
        fc.integer({ min: 1, max: 1_000_000_000 }),
        (thousandths, rate) => {
          const rule: PriceRule = { per: "expression", hold: `timesUp(body.seconds, ${rate})` }
          const exact = (BigInt(thousandths) * BigInt(rate) + 999n) / 1000n
          const held = Result.getOrThrow(quote({ price: rule }, { seconds: thousandths / 1000 }))
          assert.strictEqual(held as bigint, exact)
        }
      )
    )
  })
})
