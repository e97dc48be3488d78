import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { WebhookSenderLog } from "../../src/webhooks/WebhookSender.ts"
import type { WebhookRequest } from "../../src/webhooks/WebhookSender.ts"
import { eventually } from "./gateway.ts"

/** Everything that was sent to a URL. */
export const sentTo = (address: string) =>
  Effect.flatMap(WebhookSenderLog, ({ sent }) =>
    Effect.map(sent, (all) =>
      all.map(({ request }) => request).filter(({ url }) => url === address)
    )
  )

/** The same, once this much has arrived. */
export const arrived = (address: string, count: number) =>
  eventually(sentTo(address), ({ length }) => length >= count)

/** The event in a request. */
export const eventOf = ({ body }: WebhookRequest) => JSON.parse(new TextDecoder().decode(body))

/**
 * Queues this number of events for one endpoint, due now by the database's clock, each with its own body: `{"n":0}`,
 * `{"n":1}`, … Returns the delivery ids in the same order.
 */
export const queueDeliveries = Effect.fnUntraced(function* (
  endpointId: string,
  count: number,
  at: Date
) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql`
    WITH new AS MATERIALIZED (
      SELECT n, e.id AS endpoint, e.user_id AS owner, ${at}::timestamptz AS at,
        'evt_' || md5(e.id || n || random()) AS event,
        time_sorted_id('whd_', ${at}::timestamptz) AS id
      FROM webhook_endpoints e, generate_series(0, ${count}::int - 1) n
      WHERE e.id = ${endpointId}
    ), events AS (
      INSERT INTO events (id, created_at, user_id, type, body)
      SELECT event, at, owner, 'task.succeeded', convert_to('{"n":' || n || '}', 'UTF8') FROM new
    ), deliveries AS (
      INSERT INTO deliveries
        (id, created_at, user_id, endpoint_id, event_id, event_created_at, event_type, status, updated_at)
      SELECT id, at, owner, endpoint, event, at, 'task.succeeded', 'pending', at FROM new
    ), queued AS (
      INSERT INTO delivery_queue (id, created_at, endpoint_id, due_at)
      SELECT id, at, endpoint, at FROM new
    )
    SELECT id FROM new ORDER BY n`
  return rows.map((row) => String(row["id"]))
})

/** The maximum number of these times within any half-open span of this many milliseconds. */
export const mostWithin = (times: ReadonlyArray<number>, millis: number): number => {
  const sorted = times.toSorted((a, b) => a - b)
  let first = 0
  let most = 0
  sorted.forEach((time, index) => {
    while ((sorted[first] ?? time) <= time - millis) first += 1
    most = Math.max(most, index - first + 1)
  })
  return most
}
