import { assert, describe, it } from "@effect/vitest"
import type { HttpResult } from "../../support/gateway.ts"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { pause, until } from "../../support/until.ts"
import { startReceiver } from "../../support/webhookReceiver.ts"

/** docs/reference/batches.md */

const path = "/manage/v1/task-batches"
const main = "test/support/crashingMain.ts"
/** Costs 7.50 credits. */
const image = (prompt: string) => ({
  vendor: "alibaba",
  model: "text-to-image-max",
  body: { prompt }
})

interface Batch {
  readonly id: string
  readonly status: string
  readonly counts: { readonly total: number; readonly completed: number; readonly failed: number }
  readonly receipt: { readonly held: string; readonly captured: string; readonly released: string }
}

/** Sends the same batch until it gets a response, however often the service is killed. */
const createSurely = async (gateway: GatewayProcess, tasks: ReadonlyArray<object>, key: string) => {
  const answer = await until<HttpResult>(
    () => gateway.call("POST", path, { tasks }, { "idempotency-key": key }).catch(() => undefined),
    { what: "the response to a batch" }
  )
  assert.strictEqual(answer.status, 202, answer.text)
  return String(answer.json.id)
}

const endOf = (gateway: GatewayProcess, id: string) =>
  until<Batch>(
    async () => {
      const { json } = await gateway.call("GET", `${path}/${id}`)
      return json.status === "completed" ? json : undefined
    },
    { what: `the end of batch ${id}`, millis: 60_000 }
  )

describe("kill -9 while batches are accepted and end", () => {
  it("each batch is accepted once, ends with one event, and its sums are the ledger's", async () => {
    await using receiver = await startReceiver(() => 200)
    await using gateway = await GatewayProcess.start({
      main,
      // A kill of the process loses nothing without fsync either
      env: { ...receiver.env, EMBEDDED_DURABLE: "false" }
    })
    await gateway.key()
    const hook = { url: receiver.url, events: ["task_batch.completed"] }
    const made = await gateway.call("POST", "/manage/v1/webhook-endpoints", hook)
    assert.strictEqual(made.status, 201, made.text)

    const ids: Array<string> = []
    for (const [round, millis] of [0, 30, 120, 400].entries()) {
      const tasks = Array.from({ length: 8 }, (_, n) =>
        image(n === 7 ? `${round} [[sim:refuse]]` : `${round} ${n}`)
      )
      const created = createSurely(gateway, tasks, `batch-${round}`)
      await pause(millis)
      await gateway.restart()
      ids.push(await created)
    }
    // The process dies when it has bought a job of the batch
    const last = [image("a"), image("b [[sim:crash=after-submit]]")]
    await gateway
      .call("POST", path, { tasks: last }, { "idempotency-key": "last" })
      .catch(() => undefined)
    assert.strictEqual(await gateway.ended, "SIGKILL")
    await gateway.start()
    ids.push(await createSurely(gateway, last, "last"))

    const ended: Array<Batch> = []
    for (const id of ids) ended.push(await endOf(gateway, id))
    assert.strictEqual(new Set(ids).size, 5)
    const { data } = (await gateway.call("GET", path)).json
    assert.deepStrictEqual(
      data.map(({ id }: Batch) => id),
      ids.toReversed()
    )
    let captured = 0
    for (const { counts, receipt } of ended) {
      assert.strictEqual(counts.completed + counts.failed, counts.total)
      assert.strictEqual(receipt.held, "0.00")
      assert.strictEqual(receipt.captured, (7.5 * counts.completed).toFixed(2))
      assert.strictEqual(receipt.released, (7.5 * counts.failed).toFixed(2))
      captured += 7.5 * counts.completed
    }
    const wallet = (await gateway.call("GET", "/manage/v1/wallet")).json
    assert.strictEqual(wallet.held_balance, "0.00")
    assert.strictEqual(wallet.settled_balance, (1000 - captured).toFixed(2))
    const metrics = (await gateway.call("GET", "/metrics")).text
    assert.strictEqual(/^gateway_wallet_drift (\d+)$/mu.exec(metrics)?.[1], "0")

    const bodiesOf = (id: string) =>
      new Set(
        receiver.received
          .filter(({ event }) => event.data.payload.id === id)
          .map(({ body, deliveryId }) => `${deliveryId} ${body}`)
      )
    await until(() => ids.every((id) => bodiesOf(id).size > 0), {
      millis: 40_000,
      what: "every webhook"
    })
    for (const [n, id] of ids.entries()) {
      const [body, ...others] = bodiesOf(id)
      assert.isEmpty(others)
      const { counts } = JSON.parse(body?.slice(body.indexOf(" ")) ?? "").data.payload
      assert.deepStrictEqual(counts, ended[n]?.counts)
    }
  }, 300_000)
})
