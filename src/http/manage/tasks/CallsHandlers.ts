import { Effect, Option } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "../../../contract/Api.ts"
import { CallId } from "../../../contract/manage/CallsApi.ts"
import { Metering } from "../../../passthrough/Metering.ts"
import type { CallRow } from "../../../passthrough/Metering.ts"
import type { CallText, ContentSide } from "../../../users/contents/CallContent.ts"
import { CallContents } from "../../../users/contents/CallContents.ts"
import { requireReader, requireUser } from "../../server/access/Authentication.ts"
import { readPage, toPage } from "../Paging.ts"

/** Receipts of metered calls. ADR 0072. */
export const layer = HttpApiBuilder.group(
  Api,
  "calls",
  Effect.fnUntraced(function* (handlers) {
    const contents = yield* CallContents
    const metering = yield* Metering
    return handlers.handleAll({
      listCalls: Effect.fnUntraced(function* ({ query }) {
        const userId = yield* requireReader(query)
        const { before, limit } = readPage(query, CallId)
        const { end, rows } = yield* metering.search(userId, {
          before: Option.getOrUndefined(before),
          limit: limit + 1,
          outcome: query.outcome,
          apiKeyId: query.api_key_id,
          vendor: query.vendor,
          model: query.model,
          traceId: query.trace_id,
          since: query.since,
          until: query.until,
          minCost: query.min_cost,
          maxCost: query.max_cost
        })
        return yield* toPage(rows, limit, (row) => row.id, showCall, end)
      }),
      getCall: Effect.fnUntraced(function* ({ params, query }) {
        return showCall(yield* metering.find(yield* requireReader(query), params.id))
      }),
      getCallContent: Effect.fnUntraced(function* ({ params, query }) {
        const userId = yield* requireReader(query)
        yield* metering.find(userId, params.id)
        return showContent(params.id, yield* contents.find(userId, params.id))
      }),
      getSettings: Effect.fnUntraced(function* ({ query }) {
        return { keep_calls: yield* contents.isKept(yield* requireReader(query)) }
      }),
      updateSettings: Effect.fnUntraced(function* ({ payload }) {
        return { keep_calls: yield* contents.keep(yield* requireUser, payload.keep_calls) }
      })
    })
  })
)

export const showCall = (row: CallRow) => ({
  id: row.id,
  vendor: row.vendor,
  model: row.model,
  route: row.route,
  outcome: row.outcome,
  charged_late: row.chargedLate,
  http_status: row.httpStatus,
  held: row.held,
  cost: row.captured,
  usage: row.usage,
  account_id: row.accountId,
  time_to_first_token_ms: row.firstTokenMs,
  sandbox: row.sandbox,
  ...row.alias,
  catalog: row.catalog,
  trace_id: row.traceId,
  created_at: row.createdAt,
  ended_at: row.endedAt
})

const showSide = (side: ContentSide | null) =>
  side && {
    content_type: side.contentType,
    text: side.text,
    truncated: side.truncated,
    bytes: side.bytes
  }

const showContent = (callId: string, { path, request, response }: CallText) => ({
  call_id: callId,
  path,
  request: showSide(request),
  response: showSide(response)
})
