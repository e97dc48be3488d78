import { assert, describe, it } from "@effect/vitest"
import { Effect, Result, Stream } from "effect"
import { BatchRequests, digestOf } from "../../../src/catalog/bodies/BatchRequests.ts"
import { makeUpstreamCatalog } from "../../../src/catalog/UpstreamCatalog.ts"
import { planBatch } from "../../../src/passthrough/batches/BatchPlan.ts"
import * as BatchRequestsLive from "../../../src/passthrough/batches/BatchRequestsLive.ts"
import { planCall } from "../../../src/passthrough/CallPlan.ts"

/** docs/reference/vendor-batches.md#receipts */

const catalog = makeUpstreamCatalog()
const found = catalog.match("anthropic", "POST", "/v1/messages")
if (found._tag !== "Open") throw new Error("the route is closed")
const batch = { catalog, route: found.route, nowMillis: Date.parse("2026-11-26") }

const bodies = new Map([
  ["a", '{"model":"claude-haiku-4-5","max_tokens":9,"messages":[{"role":"user","content":"x"}]}'],
  [
    "b",
    '{"max_tokens":8,"messages":[{"role":"user","content":"\\"model\\":\\"text\\""}],"model":"claude-sonnet-4-5"}'
  ],
  [
    "cd",
    '{ "mod\\u0065l" : "claude-haiku-4-\\u0035", "max_tokens": 7, "messages": [{"role":"user","content":"y"}] }'
  ],
  [
    "d",
    `{"model":"claude-haiku-4-5","max_tokens":6,"messages":[{"role":"user","content":"${"z".repeat(100_000)}"}]}`
  ]
])

const lines = [
  `{"custom_id":"a","params":${bodies.get("a")}}`,
  `{"params":${bodies.get("b")},"custom_id":"b"}`,
  `{ "custom_\\u0069d" : "c\\u0064" , "params" : ${bodies.get("cd")} }`,
  "",
  `{"custom_id":"d","params":${bodies.get("d")}}`,
  '{"custom_id":"e","params":{"model":"gone-since","max_tokens":6,"messages":[]}}'
]

const read = (text: string, length: number) => {
  const bytes = Buffer.from(text)
  const chunks = Array.from({ length: Math.ceil(bytes.length / length) }, (_, n) =>
    bytes.subarray(n * length, (n + 1) * length)
  )
  return Effect.gen(function* () {
    const requests = yield* BatchRequests
    return yield* requests.read(batch, Stream.fromIterable(chunks))
  }).pipe(Effect.provide(BatchRequestsLive.layer))
}

describe("the requests of an accepted batch", () => {
  it.effect("are read with their models and holds, however the bytes are split and escaped", () =>
    Effect.gen(function* () {
      for (const length of [7, 64, 1000, 1_000_000]) {
        const requests = yield* read(`${lines.join("\n")}\n`, length)
        assert.strictEqual(requests.size, 5)
        for (const [id, body] of bodies) {
          const bytes = Buffer.from(body)
          const planned = planCall(catalog, batch.route, undefined, bytes, batch.nowMillis, {
            inBatch: true
          })
          const { hold, model } = Result.getOrThrow(planned)
          assert.deepStrictEqual(
            requests.get(digestOf(id)),
            { model: model ?? "", bytes: bytes.length, hold },
            id
          )
        }
        // A request that would be refused now is known too
        assert.deepInclude(requests.get(digestOf("e")), { model: "gone-since", hold: undefined })
      }
    })
  )

  it.effect("add up to the hold of the plan by which the batch was accepted", () =>
    Effect.gen(function* () {
      const text = lines.slice(0, 5).join("\n")
      const shape = {
        ...batch,
        body: "params",
        fixed: {},
        at: "#/requests",
        customId: { test: () => true, expected: "a name" },
        modelsMax: 20
      } as const
      const planned = yield* planBatch(shape, Stream.succeed(Buffer.from(text)))
      const requests = yield* read(text, 1000)
      const holds = [...requests.values()].map(({ hold }) => hold ?? 0n)
      assert.strictEqual(
        holds.reduce<bigint>((sum, it) => sum + it, 0n),
        planned.hold
      )
    })
  )
})
