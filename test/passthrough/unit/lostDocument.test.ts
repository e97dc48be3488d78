import { Clock, Effect, Result } from "effect"
import { assert, describe, it } from "vitest"
import { builtInRoutes } from "../../../src/catalog/OpenRoutes.ts"
import { makeUpstreamCatalog } from "../../../src/catalog/UpstreamCatalog.ts"
import { UserId } from "../../../src/domain/Ids.ts"
import { CallBill } from "../../../src/passthrough/CallBill.ts"
import { planCall } from "../../../src/passthrough/CallPlan.ts"
import type { CallEnd } from "../../../src/passthrough/Metering.ts"

const catalog = makeUpstreamCatalog()
const route = builtInRoutes.find(
  ({ path, vendor }) => vendor === "openai" && path === "/v1/embeddings"
)!
const body = Buffer.from(
  JSON.stringify({ model: "text-embedding-3-large", input: "a".repeat(2000) })
)

/** A bill whose hold cannot be taken again, and how it ends. */
const makeBill = () => {
  const ends: Array<CallEnd> = []
  const plan = Result.getOrThrow(planCall(catalog, route, undefined, body, 0))
  const bill = new CallBill(
    {
      id: "call_1",
      user: UserId.make("019a0000-0000-7000-8000-000000000000"),
      held: plan.hold,
      begunMillis: 0,
      alias: undefined,
      vendor: "openai",
      route: "POST /v1/embeddings"
    },
    plan,
    body.length,
    {
      abandoned: { begin: () => undefined, isFull: () => false },
      clock: Effect.runSync(Clock.Clock),
      close: (end) => ends.push(end),
      content: undefined,
      hold: { isHeld: () => false, retake: (done) => done(false), drawn: false },
      raise: () => {}
    }
  )
  bill.document()
  return { bill, ends }
}

describe("a large document whose hold is lost", () => {
  it("is cut off without an event and costs nothing if none of it was relayed", () => {
    const { bill, ends } = makeBill()
    assert.strictEqual(bill.lose().length, 0)
    assert.deepEqual(
      ends.map(({ captured, outcome }) => [captured, outcome]),
      [[0n, "released"]]
    )
  })

  it("costs its prompt if a part of it was relayed", () => {
    const { bill, ends } = makeBill()
    bill.push(Buffer.from('{"data":['))
    assert.strictEqual(bill.lose().length, 0)
    // Four bytes of the request per token
    const cost = BigInt(Math.ceil(body.length / 4)) * 13n
    assert.deepEqual(
      ends.map(({ captured, outcome }) => [captured, outcome]),
      [[cost, "settled"]]
    )
  })
})
