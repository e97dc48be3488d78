import { assert, describe, it } from "@effect/vitest"
import { MockVendor, startVendorServer } from "../../../src/testing/index.ts"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { pause, until } from "../../support/until.ts"
import { capturesIn, receiptsOf, taskIdOf } from "../../support/vendorBatches.ts"

/** Raise it by `KILL_ROUNDS` for a longer search. */
const rounds = Number(process.env["KILL_ROUNDS"] ?? 6)

const linesMax = 3000

const linesOf = (round: number) =>
  Array.from({ length: linesMax }, (_, n) =>
    JSON.stringify({
      custom_id: n % 100 === 7 ? `fails ${n}` : `${round} ${n}`,
      method: "POST",
      url: "/v1/chat/completions",
      body: {
        model: "gpt-4o-mini",
        messages: [{ role: "user", content: `Say ${n}` }],
        max_tokens: 20 + (n % 7)
      }
    })
  ).join("\n")

const form = (text: string) => {
  const body = new FormData()
  body.set("purpose", "batch")
  body.set("file", new File([text], "requests.jsonl"))
  return body
}

/** Uploads the file until it has an id, however often the service is killed. */
const uploadSurely = (gateway: GatewayProcess, key: string, text: string) =>
  until<string>(
    async () => {
      const answer = await fetch(`${gateway.url}/v1/files`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}` },
        body: form(text)
      }).catch(() => undefined)
      const body = await answer?.text().catch(() => "")
      return /file-[0-9a-f]{32}/u.exec(body ?? "")?.[0]
    },
    { what: "an uploaded file", millis: 60_000 }
  )

const createSurely = (gateway: GatewayProcess, file: string) =>
  until<string>(
    async () => {
      const body = {
        input_file_id: file,
        endpoint: "/v1/chat/completions",
        completion_window: "24h"
      }
      const answer = await gateway
        .call("POST", "/v1/batches", body, { "idempotency-key": file })
        .catch(() => undefined)
      return /batch_[0-9a-f]{32}/u.exec(answer?.text ?? "")?.[0]
    },
    { what: "the response to a create", millis: 60_000 }
  )

const isOver = (status: string) => ["completed", "failed", "expired", "cancelled"].includes(status)

/** docs/reference/vendor-batches.md#results */
describe("kill -9 between upload, accept, submit, poll, receipts and settle of a batch", () => {
  it(
    "each is bought at most once, and its receipts are what is captured, to the last digit",
    async () => {
      await using vendor = await startVendorServer("openai", {
        script: { default: [MockVendor.result("300 millis")] }
      })
      await using gateway = await GatewayProcess.start({
        env: { ...vendor.env, EMBEDDED_DURABLE: "false" }
      })
      const { key } = await gateway.makeUser()
      gateway.useKey(key)
      const ids: Array<string> = []
      for (let round = 0; round < rounds; round += 1) {
        const making = uploadSurely(gateway, key, linesOf(round)).then((file) =>
          createSurely(gateway, file)
        )
        await pause((round * 173) % 700)
        await gateway.restart()
        ids.push(await making)
        // While the batch runs, or while its results are read
        await pause((round * 631) % 3500)
        await gateway.restart()
      }
      const statuses: Array<string> = []
      for (const id of ids) {
        const status = await until<string>(
          async () => {
            const { json } = await gateway.call("GET", `/v1/batches/${id}`)
            return isOver(json.status) ? json.status : undefined
          },
          { what: `the end of ${id}`, millis: 120_000 }
        )
        statuses.push(status)
      }
      assert.isAbove(statuses.filter((status) => status === "completed").length, 0)

      const submitted = vendor.requests.flatMap(({ json, method, path }) =>
        method === "POST" && path === "/v1/batches"
          ? [(json as { metadata: { gateway_task: string } }).metadata.gateway_task]
          : []
      )
      assert.strictEqual(new Set(submitted).size, submitted.length, "a batch was submitted twice")

      const sums = new Map<string, bigint>()
      for (const [n, id] of ids.entries()) {
        const { count, sum } = await receiptsOf(gateway, id)
        const isDone = statuses[n] === "completed"
        assert.strictEqual(count, isDone ? linesMax : 0, `receipts of ${id}, ${statuses[n]}`)
        sums.set(taskIdOf(id), sum)
        const { json } = await gateway.call("GET", `/v1/batches/${id}`)
        if (isDone) {
          assert.deepStrictEqual(json.request_counts, {
            total: linesMax,
            completed: linesMax - linesMax / 100,
            failed: linesMax / 100
          })
          const output = await gateway.call("GET", `/v1/files/${json.output_file_id}/content`)
          assert.strictEqual(output.text.trim().split("\n").length, linesMax - linesMax / 100)
        } else {
          assert.strictEqual(json.errors.data[0].code, "3004")
        }
      }
      const files = (await gateway.call("GET", "/v1/files?purpose=batch_output&limit=100")).json
      const done = statuses.filter((status) => status === "completed").length
      assert.strictEqual(files.data.length, 2 * done, "a result was stored twice")
      const wallet = (await gateway.call("GET", "/manage/v1/wallet")).json
      assert.strictEqual(wallet.held_balance, "0.00")
      const metrics = (await gateway.call("GET", "/metrics")).text
      assert.match(metrics, /^gateway_wallet_drift 0$/mu)
      await gateway.kill()
      assert.deepStrictEqual(await capturesIn(gateway.dataDir), sums)
    },
    200_000 + rounds * 60_000
  )
})
