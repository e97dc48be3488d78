import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { adminToken, callWith, layerGateway } from "../support/gateway.ts"

/** docs/reference/http.md#metrics, ADR 0223 */

const token = "a-token-for-prometheus"

it.effect(
  "with METRICS_TOKEN it or the operator's token reads /metrics, and it reads nothing else",
  () =>
    Effect.gen(function* () {
      for (const [sent, code] of [
        [undefined, 1001],
        ["another-token-of-somebody", 1002]
      ] as const) {
        const refused = yield* callWith(sent)("GET", "/metrics")
        assert.deepStrictEqual([refused.status, refused.json.code], [401, code], refused.text)
        assert.notInclude(refused.text, "gateway_")
      }
      for (const sent of [token, adminToken]) {
        const { status, text } = yield* callWith(sent)("GET", "/metrics")
        assert.strictEqual(status, 200)
        assert.match(text, /^gateway_account_circuit\{account="dashscope:one"\} 0$/mu)
      }
      assert.strictEqual((yield* callWith(token)("GET", "/manage/v1/users")).status, 401)
      assert.strictEqual((yield* callWith(undefined)("GET", "/healthz")).status, 200)
    }).pipe(
      Effect.provide(
        layerGateway({ env: { METRICS_TOKEN: token, DASHSCOPE_API_KEY: "sk-vendor;name=one" } })
      )
    )
)
