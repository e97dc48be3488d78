import { assert, describe, it } from "@effect/vitest"
import { MockVendor, startVendorServer } from "../../../src/testing/index.ts"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { pause, until } from "../../support/until.ts"
import { capturesIn, receiptsOf, taskIdOf } from "../../support/vendorBatches.ts"

/** Raise it by `KILL_ROUNDS` for a longer search. */
const rounds = Number(process.env["KILL_ROUNDS"] ?? 6)

const linesMax = 1000

const requestsOf = (round: number) =>
  Array.from({ length: linesMax }, (_, n) => ({
    custom_id: n % 100 === 7 ? `fails-${n}` : `${round}-${n}`,
    params: {
      model: "claude-haiku-4-5",
      messages: [{ role: "user", content: `Say ${n}` }],
      max_tokens: 20 + (n % 7)
    }
  }))

/** Creates the batch until it has an id, however often the service is killed. */
const createSurely = (gateway: GatewayProcess, round: number) =>
  until<string>(
    async () => {
      const body = { requests: requestsOf(round) }
      const answer = await gateway
        .call("POST", "/v1/messages/batches", body, { "idempotency-key": `round ${round}` })
        .catch(() => undefined)
      return /msgbatch_[0-9a-f]{32}/u.exec(answer?.text ?? "")?.[0]
    },
    { what: "the response to a create", millis: 180_000 }
  )

interface Submitted {
  readonly requests: ReadonlyArray<{ readonly custom_id: string }>
}

/** docs/reference/vendor-batches.md#results */
describe("kill -9 between upload, accept, submit, poll, receipts and settle of a batch of messages", () => {
  it(
    "each is bought at most once, and its receipts are what is captured, to the last digit",
    async () => {
      await using vendor = await startVendorServer("anthropic", {
        script: { default: [MockVendor.result("300 millis")] }
      })
      await using gateway = await GatewayProcess.start({
        env: { ...vendor.env, EMBEDDED_DURABLE: "false" }
      })
      const { key } = await gateway.makeUser()
      gateway.useKey(key)
      const ids: Array<string> = []
      for (let round = 0; round < rounds; round += 1) {
        const making = createSurely(gateway, round)
        await pause((round * 173) % 700)
        await gateway.restart()
        ids.push(await making)
        // While the batch runs, or while its results are read
        await pause((round * 631) % 3500)
        await gateway.restart()
      }
      const statuses: Array<string> = []
      for (const id of ids) {
        await until<boolean>(
          async () => {
            const { json } = await gateway.call("GET", `/v1/messages/batches/${id}`)
            return json.processing_status === "ended" ? true : undefined
          },
          { what: `the end of ${id}`, millis: 120_000 }
        )
        const { json } = await gateway.call("GET", `/manage/v1/tasks/${taskIdOf(id)}`)
        statuses.push(json.status)
      }
      assert.isAbove(statuses.filter((status) => status === "completed").length, 0)

      const submitted = vendor.requests.flatMap(({ json, method, path }) =>
        method === "POST" && path === "/v1/messages/batches"
          ? [(json as Submitted).requests[0]?.custom_id.slice(0, 10)]
          : []
      )
      assert.strictEqual(new Set(submitted).size, submitted.length, "a batch was submitted twice")

      const sums = new Map<string, bigint>()
      for (const [n, id] of ids.entries()) {
        const { count, sum } = await receiptsOf(gateway, id)
        const isDone = statuses[n] === "completed"
        assert.strictEqual(count, isDone ? linesMax : 0, `receipts of ${id}, ${statuses[n]}`)
        sums.set(taskIdOf(id), sum)
        const { json } = await gateway.call("GET", `/v1/messages/batches/${id}`)
        assert.deepInclude(json.request_counts, {
          processing: 0,
          succeeded: isDone ? linesMax - linesMax / 100 : 0,
          errored: isDone ? linesMax / 100 : linesMax
        })
        const output = await gateway.call("GET", `/v1/messages/batches/${id}/results`)
        const names = output.text
          .trim()
          .split("\n")
          .map((line) => JSON.parse(line).custom_id)
        assert.deepStrictEqual(
          names,
          requestsOf(n).map((it) => it.custom_id)
        )
        if (isDone) continue
        const { json: task } = await gateway.call("GET", `/manage/v1/tasks/${taskIdOf(id)}`)
        assert.strictEqual(task.error.code, 3004)
      }
      const files = (await gateway.call("GET", "/v1/files?purpose=batch_output&limit=100")).json
      const done = statuses.filter((status) => status === "completed").length
      assert.strictEqual(files.data.length, done, "a result was stored twice")
      const wallet = (await gateway.call("GET", "/manage/v1/wallet")).json
      assert.strictEqual(wallet.held_balance, "0.00")
      const metrics = (await gateway.call("GET", "/metrics")).text
      assert.match(metrics, /^gateway_wallet_drift 0$/mu)
      await gateway.kill()
      assert.deepStrictEqual(await capturesIn(gateway.dataDir), sums)
    },
    200_000 + rounds * 120_000
  )
})
