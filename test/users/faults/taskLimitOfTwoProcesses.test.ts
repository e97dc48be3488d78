import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { HttpResult } from "../../support/gateway.ts"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { processDatabaseUrl } from "../../support/stores.ts"

const path = "/vendors/alibaba/v1/text-to-image-max/generation"
const limit = 5

/** `count` creates at once, alternating between the two processes. */
const burst = (gateways: ReadonlyArray<GatewayProcess>, count: number) =>
  Promise.all(
    Array.from({ length: count }, (_, n) =>
      gateways[n % gateways.length]!.call("POST", path, { prompt: `${n} [[sim:hang]]` })
    )
  )

const taken = (answers: ReadonlyArray<HttpResult>) => answers.filter(({ status }) => status === 202)

const scenario = async (databaseUrl: string) => {
  const env = { CONCURRENT_TASKS_PER_KEY: String(limit) }
  await using first = await GatewayProcess.start({ databaseUrl, env })
  await using second = await GatewayProcess.start({ databaseUrl, env })
  second.useKey(await first.key())
  const gateways = [first, second]

  const answers = await burst(gateways, 80)
  assert.strictEqual(taken(answers).length, limit)
  for (const { json, status } of answers) {
    if (status !== 202) assert.deepStrictEqual([status, json.code], [429, 1202])
  }

  // Slots are freed in both processes, and parallel creates use each only once
  const ended = taken(answers).slice(0, 2)
  for (const [n, { json }] of ended.entries()) {
    const cancelled = await gateways[n]!.call("DELETE", `${path}/${json.task_info.id}`)
    assert.strictEqual(cancelled.status, 200, cancelled.text)
  }
  assert.strictEqual(taken(await burst(gateways, 40)).length, ended.length)

  const owner = await first.key()
  // Another key of the same user has its own limit; only accepted tasks are held
  const { json: other } = await first.call("POST", "/manage/v1/api-keys", { name: "another" })
  first.useKey(other.key)
  second.useKey(other.key)
  assert.strictEqual(taken(await burst(gateways, 40)).length, limit)
  const wallet = await first.useKey(owner).call("GET", "/manage/v1/wallet")
  assert.strictEqual(wallet.json.held_balance, (2 * limit * 7.5).toFixed(2))
}

describe("CONCURRENT_TASKS_PER_KEY with two processes on one Postgres", () => {
  it.live(
    "is exact over both processes, under concurrency",
    () =>
      Effect.gen(function* () {
        const database = yield* processDatabaseUrl
        yield* Effect.promise(() => scenario(database.href))
      }),
    120_000
  )
})
