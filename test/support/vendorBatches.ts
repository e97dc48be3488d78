import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { layerEmbedded } from "../../src/db/Database.ts"
import type { GatewayProcess } from "./gatewayProcess.ts"

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
