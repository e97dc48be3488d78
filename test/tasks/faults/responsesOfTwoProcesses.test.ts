import { Effect, Exit, Scope } from "effect"
import OpenAI from "openai"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { MockVendor, startVendorServer } from "../../../src/testing/index.ts"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { processDatabaseUrl } from "../../support/stores.ts"
import { until } from "../../support/until.ts"
import { taskIdOf } from "../../support/vendorBatches.ts"

const model = "gpt-4o-mini"
const tooLong = 180_000

const scope = Scope.makeUnsafe()
let vendor: Awaited<ReturnType<typeof startVendorServer>>
let first: GatewayProcess
let second: GatewayProcess

beforeAll(async () => {
  const databaseUrl = (await Effect.runPromise(Scope.provide(processDatabaseUrl, scope))).href
  vendor = await startVendorServer("openai", {
    script: { default: [MockVendor.result("5 seconds")] }
  })
  const options = { databaseUrl, env: vendor.env }
  first = await GatewayProcess.start(options)
  second = await GatewayProcess.start(options)
  second.useKey(await first.key())
}, tooLong)

afterAll(async () => {
  await Promise.all([first?.close(), second?.close()])
  await vendor?.stop()
  await Effect.runPromise(Scope.close(scope, Exit.void))
})

const responsesAt = async (gateway: GatewayProcess) =>
  new OpenAI({ apiKey: await first.key(), baseURL: `${gateway.url}/v1`, maxRetries: 0 }).responses

/** docs/reference/background.md#price */
describe("a background response with two processes", () => {
  it(
    "is read, streamed and ended by the second process after the first is killed, and charged once",
    async () => {
      const atFirst = await responsesAt(first)
      const atSecond = await responsesAt(second)
      const ids: Array<string> = []
      // Long enough to cost many cents
      const input = "Where to? ".repeat(60_000)
      for (const stream of [false, true]) {
        const asked = { model, input, background: true, max_output_tokens: 100 }
        if (!stream) {
          ids.push((await atFirst.create(asked)).id)
          continue
        }
        for await (const event of await atFirst.create({ ...asked, stream })) {
          if (event.type !== "response.created") continue
          ids.push(event.response.id)
          break
        }
      }
      assert.lengthOf(ids, 2)
      const taskOf = async (id: string) =>
        (await second.call("GET", `/manage/v1/tasks/${taskIdOf(id)}`)).json
      // An earlier kill would leave it open whether they were bought
      for (const id of ids) {
        await until(async () => (await taskOf(id)).attempts[0]?.state === "submitted")
      }
      await first.kill()
      const types: Array<string> = []
      const events = await atSecond.retrieve(ids[1]!, { stream: true, starting_after: 0 })
      for await (const event of events) types.push(event.type)
      assert.strictEqual(types.at(-1), "response.completed")
      for (const id of ids) {
        await until(async () => (await atSecond.retrieve(id)).status === "completed")
      }
      await first.start()
      const charged = await Promise.all(ids.map(async (id) => (await taskOf(id)).receipt.captured))
      for (const responses of [atFirst, atSecond, atFirst, atSecond]) {
        for (const id of ids) {
          assert.strictEqual((await responses.retrieve(id)).status, "completed")
        }
      }
      for (const [n, id] of ids.entries()) {
        const { entries, receipt } = await taskOf(id)
        assert.isAbove(Number(receipt.captured), 0)
        assert.strictEqual(receipt.captured, charged[n])
        const kinds = entries.map(({ kind }: { readonly kind: string }) => kind)
        assert.lengthOf(
          kinds.filter((kind: string) => kind === "capture"),
          1
        )
      }
      const { json: usage } = await second.call("GET", "/manage/v1/usage?group_by=model")
      assert.lengthOf(usage.data, 1)
      assert.deepInclude(usage.data[0], { model, tasks: 2 })
      const submits = vendor.requests.filter(
        ({ method, path }) => method === "POST" && path === "/v1/responses"
      )
      assert.lengthOf(submits, 2)
      const { json: wallet } = await second.call("GET", "/manage/v1/wallet")
      assert.strictEqual(wallet.held_balance, "0.00")
      assert.match((await second.call("GET", "/metrics")).text, /^gateway_wallet_drift 0$/mu)
    },
    tooLong
  )
})
