import { Effect, Option } from "effect"
import type { DateTime } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "../../../contract/Api.ts"
import { CallId } from "../../../contract/manage/CallsApi.ts"
import type { Credits } from "../../../domain/Credits.ts"
import { TaskId } from "../../../domain/Ids.ts"
import type { UserId } from "../../../domain/Ids.ts"
import { Metering } from "../../../passthrough/Metering.ts"
import { readsOf, readsOfSome } from "../../../process/audit/AuditLog.ts"
import { Lookup } from "../../../tasks/history/Lookup.ts"
import { TaskHistory } from "../../../tasks/history/TaskHistory.ts"
import type { TaskFilter } from "../../../tasks/history/TaskHistory.ts"
import { Users } from "../../../users/Users.ts"
import { requireOperator } from "../../server/access/Authentication.ts"
import { readPage, toPage } from "../Paging.ts"
import { showCall } from "../tasks/CallsHandlers.ts"
import { showTask } from "../tasks/TasksHandlers.ts"

/** The maximum number of users whose address or name contains the text. */
const usersMax = 10

/** The operator's view over all users, without any content of tasks. */
export const layer = HttpApiBuilder.group(
  Api,
  "operator",
  Effect.fnUntraced(function* (handlers) {
    const lookup = yield* Lookup
    const tasks = yield* TaskHistory
    const metering = yield* Metering
    const users = yield* Users
    return handlers.handleAll({
      search: Effect.fnUntraced(function* ({ query: { q } }) {
        yield* requireOperator
        const things = yield* lookup.find(q)
        if (things.length > 0) yield* seen(things)
        const owners = yield* users.owners(things.map(({ userId }) => userId))
        const page = { before: Option.none(), limit: usersMax, text: q }
        const named = things.length > 0 ? [] : (yield* users.list(page)).rows
        return {
          data: [
            ...things.map(({ createdAt, id, type, userId }) => ({
              type,
              id,
              user: ownerOf(owners, userId),
              created_at: createdAt
            })),
            ...named.map(({ createdAt, email, id }) => ({
              type: "user" as const,
              id,
              user: { id, email },
              created_at: createdAt
            }))
          ]
        }
      }),
      listAllTasks: Effect.fnUntraced(function* ({ query }) {
        yield* requireOperator
        const { before, limit } = readPage(query, TaskId)
        const { user_id: named } = query
        const search =
          named === undefined
            ? tasks.searchAll
            : (filter: TaskFilter) => tasks.search(named, filter)
        const { end, rows } = yield* search({
          before: Option.getOrUndefined(before),
          limit: limit + 1,
          isBrief: true,
          status: query.status,
          resultKind: query.result_kind,
          ...filterOf(query)
        })
        if (named === undefined) yield* readsOfSome
        const owners = yield* users.owners(rows.map(({ userId }) => userId))
        return yield* toPage(
          rows,
          limit,
          (row) => row.id,
          (row) => {
            const { error, key_name: _key, metadata: _metadata, ...task } = showTask(row)
            return {
              ...task,
              error: error === null ? null : { code: error.code, title: error.title },
              user: ownerOf(owners, row.userId)
            }
          },
          end
        )
      }),
      listAllCalls: Effect.fnUntraced(function* ({ query }) {
        yield* requireOperator
        const { before, limit } = readPage(query, CallId)
        const { end, rows } = yield* metering.search(query.user_id ?? null, {
          before: Option.getOrUndefined(before),
          limit: limit + 1,
          outcome: query.outcome,
          ...filterOf(query)
        })
        if (query.user_id === undefined) yield* readsOfSome
        const owners = yield* users.owners(rows.map(({ userId }) => userId))
        return yield* toPage(
          rows,
          limit,
          (row) => row.id,
          (row) => ({ ...showCall(row), user: ownerOf(owners, row.userId) }),
          end
        )
      })
    })
  })
)

/**
 * Records the read under a user if all results belong to that user. Otherwise records a read of several users, as for
 * the list of users.
 */
const seen = (things: ReadonlyArray<{ readonly userId: UserId }>) => {
  const [one, ...more] = new Set(things.map(({ userId }) => userId))
  return one !== undefined && more.length === 0 ? readsOf(one) : readsOfSome
}

const ownerOf = (owners: ReadonlyMap<UserId, string | null>, id: UserId) => ({
  id,
  email: owners.get(id) ?? null
})

/** The filters that lists of tasks and of calls share. */
const filterOf = (query: {
  readonly model?: string
  readonly vendor?: string
  readonly trace_id?: string
  readonly since?: DateTime.Utc
  readonly until?: DateTime.Utc
  readonly min_cost?: Credits
  readonly max_cost?: Credits
}) => ({
  model: query.model,
  vendor: query.vendor,
  traceId: query.trace_id,
  since: query.since,
  until: query.until,
  minCost: query.min_cost,
  maxCost: query.max_cost
})
