import { Effect, Schema } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import * as Credits from "../domain/Credits.ts"
import { Wallet } from "../services/Wallet.ts"
import type { EntryRow, WalletRow } from "../services/Wallet.ts"
import { Api } from "./Api.ts"
import { requireUser } from "./Authentication.ts"
import { readPage, toPage } from "./Paging.ts"

/** A user's own wallet. */
export const layer = HttpApiBuilder.group(
  Api,
  "wallet",
  Effect.fnUntraced(function* (handlers) {
    const wallet = yield* Wallet
    return handlers.handleAll({
      getWallet: Effect.fnUntraced(function* () {
        return showWallet(yield* wallet.get(yield* requireUser))
      }),
      updateWallet: Effect.fnUntraced(function* ({ payload }) {
        const userId = yield* requireUser
        return showWallet(yield* wallet.setThreshold(userId, payload.trigger_threshold))
      }),
      listWalletEntries: Effect.fnUntraced(function* ({ query }) {
        const userId = yield* requireUser
        const { before, limit } = yield* readPage(query, EntryKey)
        const rows = yield* wallet.entries(userId, { before, limit: limit + 1 })
        return toPage(rows, limit, (row) => String(row.seq), showEntry)
      })
    })
  })
)

/** Available is settled minus held. Contract 1 and 3. */
export const showWallet = (row: WalletRow) => ({
  available_balance: Credits.make(row.settled - row.held),
  settled_balance: row.settled,
  held_balance: row.held,
  trigger_threshold: row.triggerThreshold,
  currency: "credits" as const,
  state: row.state
})

/** The number of an entry, as Postgres counts: 64 bits. */
const EntryKey = Schema.BigIntFromString.check(
  Schema.isBetweenBigInt({ minimum: 0n, maximum: 2n ** 63n - 1n })
)

const showEntry = (row: EntryRow) => ({
  seq: Number(row.seq),
  kind: row.kind,
  amount: row.amount,
  settled_after: row.settledAfter,
  held_after: row.heldAfter,
  task_id: row.subjectId,
  note: row.note,
  trace_id: row.traceId,
  created_at: row.createdAt
})
