import { Effect, DateTime } from "effect"
import type { Stream } from "effect"
import type { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "../../../contract/Api.ts"
import { EntryKey } from "../../../contract/manage/WalletApi.ts"
import type { EntryQuery } from "../../../contract/manage/WalletApi.ts"
import * as Credits from "../../../domain/Credits.ts"
import type { UserId } from "../../../domain/Ids.ts"
import { shownAmount, Wallet } from "../../../wallet/Wallet.ts"
import type { EntryRow, WalletRow } from "../../../wallet/Wallet.ts"
import { requireOperator, requireReader, requireUser } from "../../server/access/Authentication.ts"
import { wantsCsv, csvResponse, textCell } from "../Csv.ts"
import { readPage, toPage } from "../Paging.ts"

/** A user's own wallet, and the operator's view of it. */
export const layer = HttpApiBuilder.group(
  Api,
  "wallet",
  Effect.fnUntraced(function* (handlers) {
    const wallet = yield* Wallet
    const listEntries = entryLister(wallet)
    return handlers.handleAll({
      getWallet: Effect.fnUntraced(function* ({ query }) {
        return showWallet(yield* wallet.get(yield* requireReader(query)))
      }),
      updateWallet: Effect.fnUntraced(function* ({ payload }) {
        const userId = yield* requireUser
        return showWallet(yield* wallet.setThreshold(userId, payload.trigger_threshold))
      }),
      listWalletEntries: Effect.fnUntraced(function* ({ query, request }) {
        return yield* listEntries(yield* requireReader(query), query, request)
      }),
      getUserWallet: ({ params }) =>
        Effect.andThen(requireOperator, Effect.map(wallet.get(params.id), showWallet)),
      listUserWalletEntries: Effect.fnUntraced(function* ({ params, query, request }) {
        yield* requireOperator
        yield* wallet.get(params.id)
        return yield* listEntries(params.id, query, request)
      })
    })
  })
)

/** A page of the ledger, or all of it as a CSV file. */
const entryLister = (wallet: Wallet["Service"]) =>
  Effect.fnUntraced(function* (
    userId: UserId,
    query: EntryQuery,
    request: HttpServerRequest.HttpServerRequest
  ) {
    const filters = {
      kind: query.kind,
      subjectId: query.task_id,
      since: query.since,
      until: query.until,
      traceId: query.trace_id,
      minAmount: query.min_amount,
      maxAmount: query.max_amount
    }
    if (wantsCsv(query.format, request)) return ledgerCsv(wallet.ledger(userId, filters))
    const { before, limit } = readPage(query, EntryKey)
    const { end, rows } = yield* wallet.search(userId, { ...filters, before, limit: limit + 1 })
    return yield* toPage(rows, limit, (row) => String(row.seq), showEntry, end)
  })

/** The available balance is the settled balance minus the held amount. docs/reference/wallet.md#balances */
export const showWallet = (row: WalletRow) => ({
  available_balance: Credits.make(row.settled - row.held),
  settled_balance: row.settled,
  held_balance: row.held,
  trigger_threshold: row.triggerThreshold,
  currency: "credits" as const,
  state: row.state
})

export const showEntry = (row: EntryRow) => ({
  seq: Number(row.seq),
  kind: row.kind,
  amount: shownAmount(row),
  settled_after: row.settledAfter,
  held_after: row.heldAfter,
  task_id: row.subjectId,
  note: row.note,
  trace_id: row.traceId,
  created_at: row.createdAt
})

const columns = [
  "seq",
  "created_at",
  "kind",
  "amount",
  "settled_after",
  "held_after",
  "task_id",
  "note",
  "trace_id"
]

const line = (row: EntryRow): ReadonlyArray<string> => [
  String(row.seq),
  DateTime.formatIso(row.createdAt),
  row.kind,
  Credits.format(shownAmount(row)),
  Credits.format(row.settledAfter),
  Credits.format(row.heldAfter),
  row.subjectId ?? "",
  textCell(row.note),
  row.traceId ?? ""
]

/** The ledger as a CSV file. */
const ledgerCsv = <E>(entries: Stream.Stream<EntryRow, E>) =>
  csvResponse("wallet-entries.csv", columns, entries, line)
