import { assert, describe, it } from "@effect/vitest"
import { MockVendor, startVendorServer } from "../../../src/testing/index.ts"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { pause, until } from "../../support/until.ts"

/** Raise it by `KILL_ROUNDS` for a longer search. */
const rounds = Number(process.env["KILL_ROUNDS"] ?? 5)

/** Sends the same create until it gets a response, however often the service is killed. */
const createSurely = (gateway: GatewayProcess, input: string, stream: boolean) => {
  const body = { model: "gpt-4o-mini", input, background: true, max_output_tokens: 100 }
  return until<string>(
    async () => {
      const answer = await gateway
        .call("POST", "/v1/responses", stream ? { ...body, stream } : body, {
          "idempotency-key": input
        })
        .catch(() => undefined)
      return /resp_[0-9a-f]{32}/u.exec(answer?.text ?? "")?.[0]
    },
    { what: "the response to a create" }
  )
}

const endOf = (gateway: GatewayProcess, id: string) =>
  until<string>(
    async () => {
      const { json } = await gateway.call("GET", `/v1/responses/${id}`)
      return json.status === "queued" || json.status === "in_progress" ? undefined : json.status
    },
    { what: `the end of ${id}`, millis: 60_000 }
  )

/** docs/reference/background.md#price */
describe("kill -9 between accept, submit, poll and settle of background responses", () => {
  it(
    "each ends once, is bought at most once and charged once, and no hold stays open",
    async () => {
      await using vendor = await startVendorServer("openai", {
        script: { default: [MockVendor.result("300 millis")] }
      })
      await using gateway = await GatewayProcess.start({
        env: { ...vendor.env, EMBEDDED_DURABLE: "false" }
      })
      await gateway.key()
      const ids: Array<string> = []
      for (let round = 0; round < rounds; round += 1) {
        const creates = [0, 1, 2].map((n) => createSurely(gateway, `${round} ${n}`, n === 2))
        await pause((round * 137) % 500)
        await gateway.restart()
        ids.push(...(await Promise.all(creates)))
      }
      assert.strictEqual(new Set(ids).size, rounds * 3)
      const statuses: Array<string> = []
      for (const id of ids) statuses.push(await endOf(gateway, id))
      const completed = statuses.filter((status) => status === "completed").length
      assert.isAbove(completed, 0)

      const inputs = vendor.requests.flatMap(({ json, method, path }) =>
        method === "POST" && path === "/v1/responses"
          ? [(json as { readonly input: string }).input]
          : []
      )
      assert.strictEqual(new Set(inputs).size, inputs.length, "a response was submitted twice")

      const { json: tasks } = await gateway.call("GET", "/manage/v1/tasks?limit=100")
      assert.lengthOf(tasks.data, rounds * 3)
      for (const task of tasks.data) {
        if (task.status === "failed") assert.strictEqual(task.error.code, 3004)
        const { json } = await gateway.call("GET", `/manage/v1/tasks/${task.id}`)
        const kinds = json.entries.map((entry: { kind: string }) => entry.kind)
        const expected =
          task.status === "completed" ? ["hold", "capture", "release"] : ["hold", "release"]
        assert.deepStrictEqual(kinds, expected)
      }
      // Read again, by the next process
      await gateway.restart()
      for (const id of ids) await gateway.call("GET", `/v1/responses/${id}`)
      const wallet = (await gateway.call("GET", "/manage/v1/wallet")).json
      assert.strictEqual(wallet.held_balance, "0.00")
      const metrics = (await gateway.call("GET", "/metrics")).text
      assert.match(metrics, /^gateway_wallet_drift 0$/mu)
      const usage = (await gateway.call("GET", "/manage/v1/usage?group_by=model")).json
      assert.strictEqual(usage.data[0].tasks, completed)
    },
    150_000 + rounds * 20_000
  )
})
