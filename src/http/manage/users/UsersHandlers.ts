import { Effect, Option } from "effect"
import { SecureRandom } from "effect/crypto"
import { HttpEffect, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "../../../contract/Api.ts"
import type { UserChange } from "../../../contract/manage/UsersApi.ts"
import * as Credits from "../../../domain/Credits.ts"
import { UserId } from "../../../domain/Ids.ts"
import { ApiKeys } from "../../../users/ApiKeys.ts"
import { Users } from "../../../users/Users.ts"
import type { ListedUser, UserRow } from "../../../users/Users.ts"
import { Wallet } from "../../../wallet/Wallet.ts"
import type { ChangedWallet } from "../../../wallet/Wallet.ts"
import { requireOperator, requireOwnerOrOperator } from "../../server/access/Authentication.ts"
import { RequestTrace } from "../../server/listener/RequestTrace.ts"
import { readPage, toPage } from "../Paging.ts"
import { showWallet } from "../wallet/WalletHandlers.ts"
import { createKey } from "./ApiKeysHandlers.ts"

/** The operator's endpoints. */
export const layer = HttpApiBuilder.group(
  Api,
  "users",
  Effect.fnUntraced(function* (handlers) {
    const users = yield* Users
    const keys = yield* ApiKeys
    const wallet = yield* Wallet

    return handlers.handleAll({
      createUser: Effect.fnUntraced(function* ({ payload }) {
        yield* requireOperator
        const user = yield* users.create({
          email: payload.email,
          name: Option.fromNullishOr(payload.name),
          password: Option.fromUndefinedOr(payload.password)
        })
        return showUser(user)
      }),
      listUsers: Effect.fnUntraced(function* ({ query }) {
        yield* requireOperator
        const { before, limit } = readPage(query, UserId)
        const { q: text, sort, state } = query
        const isWhole = sort === "balance" || sort === "spent"
        // A sorted list has only one page, so no additional row is read
        const page = { before, limit: isWhole ? limit : limit + 1, text, state, sort }
        const { end, rows } = yield* users.list(page)
        return yield* toPage(rows, limit, (row) => row.id, showListed, end)
      }),
      getUser: ({ params }) =>
        Effect.andThen(
          requireOwnerOrOperator(params.id),
          Effect.map(users.get(params.id), showUser)
        ),
      updateUser: ({ params, payload }) =>
        Effect.andThen(
          requireOperator,
          Effect.map(users.update(params.id, userChangeOf(payload)), showUser)
        ),
      createUserApiKey: Effect.fnUntraced(function* ({ params, payload }) {
        yield* requireOperator
        yield* users.get(params.id)
        return yield* createKey(keys, params.id, payload)
      }),
      topUp: Effect.fnUntraced(function* ({ headers, params, payload }) {
        yield* requireOperator
        yield* users.get(params.id)
        const change = yield* changeOf("top_up", params.id, payload, headers["idempotency-key"])
        return yield* showChanged(yield* wallet.topUp(change))
      }),
      adjust: Effect.fnUntraced(function* ({ headers, params, payload }) {
        yield* requireOperator
        yield* users.get(params.id)
        const change = yield* changeOf("adjustment", params.id, payload, headers["idempotency-key"])
        return yield* showChanged(yield* wallet.adjust(change))
      })
    })
  })
)

const showUser = (row: UserRow) => ({
  id: row.id,
  email: row.email,
  name: row.name,
  created_at: row.createdAt,
  disabled: row.disabledAt !== null,
  trigger_threshold: row.triggerThreshold,
  rate_limit_per_minute: row.rateLimitPerMinute,
  concurrent_tasks: row.concurrentTasks
})

const showListed = (row: ListedUser) => ({
  ...showUser(row),
  available_balance: Credits.make(row.settled - row.held),
  settled_balance: row.settled,
  spent_this_month: row.spent
})

const userChangeOf = ({
  concurrent_tasks: concurrentTasks,
  rate_limit_per_minute: rateLimitPerMinute,
  trigger_threshold: triggerThreshold,
  ...change
}: typeof UserChange.Type) => ({ ...change, concurrentTasks, rateLimitPerMinute, triggerThreshold })

/**
 * A ledger entry keeps its operation id after the stored response has expired, so a later repeat is still marked as
 * repeated. ADR 0256.
 */
const showChanged = ({ repeated, wallet }: ChangedWallet) =>
  Effect.as(repeated ? markReplayed : Effect.void, showWallet(wallet))

const markReplayed = HttpEffect.appendPreResponseHandler((_request, response) =>
  Effect.succeed(HttpServerResponse.setHeader(response, "idempotency-replayed", "true"))
)

/** The idempotency key becomes the operation id, so that a repeat has no effect. */
const changeOf = (
  kind: "top_up" | "adjustment",
  userId: UserId,
  payload: { readonly amount: Credits.Credits; readonly note?: string | null },
  idempotencyKey: string | undefined
) =>
  Effect.map(RequestTrace, ({ traceId }) => ({
    userId,
    amount: payload.amount,
    operationId: `${kind}:${userId}:${idempotencyKey ?? SecureRandom.uuidV4Unsafe()}`,
    note: Option.fromNullishOr(payload.note),
    traceId
  }))
