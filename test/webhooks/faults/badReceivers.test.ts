import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { startBadReceivers, startHttps } from "../../support/badReceivers.ts"
import type { Counted } from "../../support/badReceivers.ts"
import { makeAuthority } from "../../support/certificates.ts"
import { queueDeliveries } from "../../support/deliveries.ts"
import { eventually, layerGateway, makeUser } from "../../support/gateway.ts"
import { keepsLessThan, kept, megabyte } from "../../support/heap.ts"

const endpoints = "/manage/v1/webhook-endpoints"
/** The most concurrent attempts of one endpoint. */
const atOnce = 16
const deliveriesEach = 40

const makeEndpoint = Effect.fnUntraced(function* (
  user: Effect.Success<ReturnType<typeof makeUser>>,
  url: string
) {
  const answer = yield* user.call("POST", endpoints, { url, events: ["task.created"] })
  assert.strictEqual(answer.status, 201, answer.text)
  return String(answer.json.id)
})

const statuses = (endpointId: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const rows = yield* sql`
      SELECT status, count(*)::int AS n FROM deliveries WHERE endpoint_id = ${endpointId} GROUP BY 1`
    return Object.fromEntries(rows.map((row) => [String(row["status"]), Number(row["n"])]))
  })

/** The greatest lateness of an endpoint's attempts, in milliseconds of the test's clock. */
const lateness = (endpointId: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const [row] = yield* sql`
      SELECT max(extract(epoch FROM started_at - due_at) * 1000)::int AS most
      FROM delivery_attempts WHERE endpoint_id = ${endpointId}`
    return row?.["most"]
  })

const closing = <A extends Counted>(receiver: A) =>
  Effect.as(
    Effect.addFinalizer(() => Effect.promise(receiver.close)),
    receiver
  )

describe("bad receivers", () => {
  it.effect(
    "of eight kinds at once delay no event of a healthy endpoint; each kind fails with its class, and sockets and memory are bounded",
    () =>
      Effect.gen(function* () {
        const authority = yield* Effect.promise(makeAuthority)
        const ok = () => startHttps(authority, (_, response) => response.end("ok"))
        const healthy = yield* closing(yield* Effect.promise(ok))
        const trap = yield* closing(yield* Effect.promise(ok))
        const all = yield* Effect.promise(() => startBadReceivers(authority, trap.url))
        yield* Effect.forEach(all, closing)
        yield* Effect.gen(function* () {
          const good = yield* makeEndpoint(yield* makeUser(), healthy.url)
          const users = [yield* makeUser(), yield* makeUser()]
          const bad: Array<{ readonly id: string } & (typeof all)[number]> = []
          for (const [n, receiver] of all.entries()) {
            bad.push({ id: yield* makeEndpoint(users[n % 2]!, receiver.url), ...receiver })
          }
          const before = kept()
          const at = new Date(0)
          for (const { id } of bad) yield* queueDeliveries(id, deliveriesEach, at)
          yield* TestClock.setTime(5000)
          yield* eventually(
            Effect.sync(() => bad.filter((it) => it.requests() + it.mostOpen() > 0).length),
            (n) => n === bad.length
          )
          // From here on the clock stands still, so only the network takes time
          yield* queueDeliveries(good, 200, new Date(5000))
          yield* TestClock.adjust(5000)
          yield* eventually(statuses(good), (now) => now["succeeded"] === 200)
          assert.strictEqual(
            yield* lateness(good),
            5000,
            "at most the delivery scheduler's interval"
          )
          assert.strictEqual(healthy.requests(), 200)
          const test = yield* (yield* makeUser()).call("GET", "/manage/v1/wallet")
          assert.strictEqual(test.status, 200)

          const sql = yield* SqlClient.SqlClient
          /** Waits for so many attempts of the receiver, which all have its class. */
          const failedWithItsClass = Effect.fnUntraced(function* (
            { failure, id, name }: (typeof bad)[number],
            attempts: number
          ) {
            const classes = yield* eventually(
              sql`SELECT failure, count(*)::int AS n FROM delivery_attempts
                WHERE endpoint_id = ${id} AND ended_at IS NOT NULL GROUP BY 1`,
              (rows) => rows.some((row) => Number(row["n"]) >= attempts)
            )
            assert.deepStrictEqual(
              classes.map((row) => row["failure"]),
              [failure],
              name
            )
          })
          const isSilent = ({ failure }: (typeof bad)[number]) => failure === "timeout"
          // Before the clock jumps, because a claim that is then older than 8 s is not sent
          for (const receiver of bad) {
            if (!isSilent(receiver)) yield* failedWithItsClass(receiver, deliveriesEach)
          }
          yield* TestClock.adjust(30_000)
          for (const receiver of bad) {
            if (isSilent(receiver)) yield* failedWithItsClass(receiver, atOnce)
            assert.isAtMost(receiver.mostOpen(), atOnce, receiver.name)
          }
          assert.strictEqual(trap.mostOpen(), 0, "redirects are not followed")
          const gigabytes = bad.find((it) => it.name === "sends 10 GB")!
          assert.isBelow(gigabytes.sent() / gigabytes.requests(), 8 * megabyte)
          const [answers] = yield* sql`
            SELECT max(octet_length(answer)) AS most FROM delivery_attempts`
          assert.strictEqual(answers?.["most"], 16_384)
          yield* keepsLessThan(20 * megabyte, before)
        }).pipe(Effect.provide(layerGateway({ sender: { ca: authority.ca } })))
      }),
    180_000
  )
})
