import { assert } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { layerEmbedded } from "../../src/db/Database.ts"
import { startVendorServer } from "../../src/testing/index.ts"
import type { VendorServer } from "../../src/testing/index.ts"
import type { GatewayProcess } from "./gatewayProcess.ts"
import { read, runningGateway } from "./running.ts"

/** The task of a vendor-format id of a batch or response, which ends with the task's id. */
export const taskIdOf = (id: string) =>
  id.slice(-32).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/u, "$1-$2-$3-$4-$5")

/** Converts credits as the API shows them to micro-credits. */
export const micro = (credits: string): bigint => {
  const [whole = "0", decimals = ""] = credits.split(".")
  return BigInt(whole) * 1_000_000n + BigInt(decimals.padEnd(6, "0"))
}

/** The sum and the number of all receipts of a batch. */
export const receiptsOf = async (gateway: GatewayProcess, id: string) => {
  const found = { sum: 0n, count: 0 }
  let cursor = ""
  do {
    const { json } = await gateway.call(
      "GET",
      `/manage/v1/tasks/${taskIdOf(id)}/receipts?limit=100${cursor}`
    )
    for (const { cost } of json.data) found.sum += micro(cost)
    found.count += json.data.length
    cursor = json.next_cursor === null ? "" : `&cursor=${json.next_cursor}`
  } while (cursor !== "")
  return found
}

/** The receipts of a batch of the running gateway. */
export const batchReceipts = (id: string) =>
  Effect.gen(function* () {
    const receipts: Array<{
      custom_id: string
      model: string
      cost: string
      outcome: string
      usage: object
    }> = []
    let cursor = ""
    do {
      const { json } = yield* read(`/manage/v1/tasks/${taskIdOf(id)}/receipts?limit=100${cursor}`)
      receipts.push(...json.data)
      cursor = json.next_cursor === null ? "" : `&cursor=${json.next_cursor}`
    } while (cursor !== "")
    return receipts
  })

/** What receipts charge together, in micro-credits. */
export const sumOf = (receipts: ReadonlyArray<{ readonly cost: string }>) =>
  receipts.reduce((total, { cost }) => total + micro(cost), 0n)

/** What a batch or response was charged, in micro-credits. */
export const capturedOf = (id: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const [row] = yield* sql`SELECT captured::text FROM tasks WHERE id = ${taskIdOf(id)}`
    return row?.["captured"]
  })

/** The vendor behind `gatewayAt`. */
export class Vendor extends Context.Service<Vendor, VendorServer>()("test/Vendor") {}

/** A running gateway at a vendor server that follows a script. */
export const gatewayAt = (...vendor: Parameters<typeof startVendorServer>) =>
  Layer.unwrap(
    Effect.map(
      Effect.acquireRelease(
        Effect.promise(() => startVendorServer(...vendor)),
        (vendor) => Effect.promise(() => vendor.stop())
      ),
      (vendor) => Layer.merge(runningGateway({ ...vendor.env }), Layer.succeed(Vendor, vendor))
    )
  )

/** What the ledger captured for each batch, read from the data folder of a service that has ended. */
export const capturesIn = (dataDir: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const rows = yield* sql<{ id: string; amount: string; captured: string }>`
      SELECT t.id, coalesce(t.captured, 0)::text AS captured, coalesce(e.amount, 0)::text AS amount FROM tasks t
      LEFT JOIN wallet_entries e ON e.subject_id = t.id AND e.kind = 'capture'
      WHERE t.result_kind = 'batches'`
    for (const { amount, captured } of rows) assert.strictEqual(amount, captured)
    return new Map(rows.map(({ captured, id }) => [id, BigInt(captured)]))
  }).pipe(Effect.provide(layerEmbedded({ dataDir, durable: false })), Effect.runPromise)
