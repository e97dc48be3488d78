import { DateTime, Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { CurrentCaller } from "../../../contract/Access.ts"
import { Api } from "../../../contract/Api.ts"
import { AuditId } from "../../../domain/Ids.ts"
import { problem } from "../../../domain/Problem.ts"
import { AuditLog } from "../../../process/audit/AuditLog.ts"
import type { AuditRow } from "../../../process/audit/AuditLog.ts"
import { csvResponse, textCell, wantsCsv } from "../Csv.ts"
import { readPage, toPage } from "../Paging.ts"

/** The audit log: the user's own entries, or all entries for the operator. */
export const layer = HttpApiBuilder.group(
  Api,
  "audit",
  Effect.fnUntraced(function* (handlers) {
    const log = yield* AuditLog
    return handlers.handleAll({
      listAuditLog: Effect.fnUntraced(function* ({ query, request }) {
        const caller = yield* CurrentCaller
        const own = caller._tag === "Operator" ? undefined : caller.userId
        if (own !== undefined && query.user_id !== undefined && query.user_id !== own) {
          return yield* problem(1004, "Only the operator sees what concerns another user")
        }
        const filters = {
          userId: own ?? query.user_id,
          type: query.type,
          actorId: query.actor_id,
          resourceId: query.resource_id,
          since: query.since,
          until: query.until
        }
        const show = makeShow(own !== undefined)
        if (wantsCsv(query.format, request)) {
          return csvResponse("audit-log.csv", columns, log.all(filters), (row) => line(show(row)))
        }
        const { before, limit } = readPage(query, AuditId)
        const { end, rows } = yield* log.list({ ...filters, before, limit: limit + 1 })
        return yield* toPage(rows, limit, (row) => row.id, show, end)
      })
    })
  })
)

/** A user sees that the operator acted, but not from where. */
export const makeShow = (isUser: boolean) => (row: AuditRow) => ({
  id: row.id,
  type: row.type,
  actor: {
    type: row.actorType,
    id: row.actorId,
    user_id: row.actorUserId,
    ip_address: isUser && row.actorType === "operator" ? null : row.ipAddress
  },
  user_id: row.userId,
  resource_id: row.resourceId,
  changes: row.changes,
  trace_id: row.traceId,
  created_at: row.createdAt
})

const columns = [
  "id",
  "created_at",
  "type",
  "actor_type",
  "actor_id",
  "actor_user_id",
  "ip_address",
  "user_id",
  "resource_id",
  "changes",
  "trace_id"
]

const line = (entry: ReturnType<ReturnType<typeof makeShow>>): ReadonlyArray<string> => [
  entry.id,
  DateTime.formatIso(entry.created_at),
  entry.type,
  entry.actor.type,
  textCell(entry.actor.id),
  entry.actor.user_id ?? "",
  textCell(entry.actor.ip_address),
  entry.user_id ?? "",
  textCell(entry.resource_id),
  textCell(JSON.stringify(entry.changes)),
  entry.trace_id ?? ""
]
