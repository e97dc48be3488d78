import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { mockOpenAi } from "../../support/mockOpenAi.ts"
import { processDatabaseUrl } from "../../support/stores.ts"
import { until } from "../../support/until.ts"

/** docs/reference/vendors.md#draining-an-account */

describe("a drained account", () => {
  it.live(
    "drains in every process, also after a restart, until it is resumed",
    () =>
      Effect.flatMap(processDatabaseUrl, ({ href: databaseUrl }) =>
        Effect.promise(async () => {
          const vendor = await mockOpenAi()
          const env = {
            OPENAI_API_KEY: "sk-secret-aaaa;name=a",
            OPENAI_BASE_URL: `${vendor.origin}/v1`
          }
          await using first = await GatewayProcess.start({ databaseUrl, env })
          await using second = await GatewayProcess.start({ databaseUrl, env })
          second.useKey(await first.key())
          const codeOf = async () => {
            const chat = { model: "gpt-4o", max_tokens: 10, messages: [] }
            const { json, status } = await second.call("POST", "/v1/chat/completions", chat)
            return status === 200 ? 200 : Number(json.code)
          }
          const comesTo = (code: number) =>
            until(async () => (await codeOf()) === code, {
              millis: 5000,
              what: `${code}`
            })
          assert.strictEqual(await codeOf(), 200)
          await first.manage("POST", "/accounts/openai:a/drain")
          await comesTo(5003)
          await second.restart("SIGTERM")
          assert.strictEqual(await codeOf(), 5003)
          await first.manage("POST", "/accounts/openai:a/resume")
          await comesTo(200)
          await vendor.close()
        })
      ),
    120_000
  )
})
