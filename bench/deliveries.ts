/**
 * CPU of Postgres per delivery, in consecutive batches on one connection, as the dispatcher claims and records them.
 *
 *   node bench/deliveries.ts [deliveries] [deliveries a batch] [rounds]
 */
import { NodeServices } from "@effect/platform-node"
import { PgClient } from "@effect/sql-pg"
import { DateTime, Effect, Layer, Option, Redacted } from "effect"
import { AppConfig } from "../src/config/Config.ts"
import { layerPostgres } from "../src/db/Database.ts"
import * as Migrations from "../src/db/Migrations.ts"
import { EndpointId } from "../src/domain/Ids.ts"
import { stores } from "../src/Gateway.ts"
import { Process } from "../src/process/heartbeat/Process.ts"
import { Secrets } from "../src/process/secrets/Secrets.ts"
import { DeliveryStore } from "../src/webhooks/DeliveryStore.ts"
import { mockOutcome } from "../src/webhooks/WebhookSender.ts"
import { cpuMicros } from "./processes.ts"
import { database, makeEndpoints, queue } from "./support.ts"

const [deliveries = 20_000, size = 50, rounds = 3] = process.argv.slice(2).map(Number)
const endpoints = 100

const endpointIds = Array.from({ length: endpoints }, (_, n) => EndpointId.make(`whe_${n + 1}`))

const bench = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  const store = yield* DeliveryStore
  const owner = (yield* Process).id
  const backend = Number((yield* sql`SELECT pg_backend_pid() AS pid`)[0]!["pid"])
  const costs = { claim: [] as Array<number>, record: [] as Array<number> }

  const costOf = <A, E>(kind: keyof typeof costs, work: Effect.Effect<A, E>) =>
    Effect.gen(function* () {
      const before = cpuMicros(backend)
      const result = yield* work
      costs[kind].push((cpuMicros(backend) - before) / size)
      return result
    })

  const batch = Effect.fnUntraced(function* (n: number) {
    const now = yield* DateTime.now
    const wanted = Array.from({ length: size }, (_, k) => ({
      endpointId: endpointIds[(n * size + k) % endpoints]!,
      limit: 1
    }))
    const claimed = yield* costOf("claim", store.claim({ wanted, owner, now, claimedAt: now }))
    const endedAt = yield* DateTime.now
    yield* costOf(
      "record",
      store.record(
        claimed.map((one) => ({
          claimed: one,
          endedAt,
          outcome: mockOutcome(200),
          nextDueAt: Option.none()
        }))
      )
    )
    return claimed.length
  })

  for (let round = 1; round <= rounds; round += 1) {
    yield* makeEndpoints(endpoints, "https://hooks.example.com/")
    yield* queue(deliveries, endpoints, -1, 0)
    costs.claim = []
    costs.record = []
    let sent = 0
    for (let n = 0; sent < deliveries; n += 1) sent += yield* batch(n)
    const at = (kind: keyof typeof costs, share: number) => {
      const sorted = costs[kind].toSorted((a, b) => a - b)
      return (sorted[Math.floor(sorted.length * share)] ?? Number.NaN).toFixed(1)
    }
    const figure = (kind: keyof typeof costs) => `${kind} ${at(kind, 0.5)} (${at(kind, 0.2)})`
    console.log(
      `round ${round}, batches of ${size}: CPU of Postgres µs a delivery, median (quietest fifth): ${figure("claim")}, ${figure("record")}`
    )
  }
})

const program = Effect.gen(function* () {
  const url = yield* database
  const live = Process.layer.pipe(
    Layer.provideMerge(Secrets.layer),
    Layer.provideMerge(stores),
    Layer.provideMerge(Migrations.layer()),
    Layer.provideMerge(layerPostgres({ url: Redacted.make(url), maxConnections: 1 })),
    Layer.provideMerge(
      AppConfig.layerOf({
        DATABASE_URL: url,
        ADMIN_TOKEN: "operator-token-of-the-bench",
        MASTER_KEY: Buffer.alloc(32, 7).toString("base64")
      })
    ),
    Layer.provideMerge(NodeServices.layer)
  )
  yield* Effect.provide(bench, live)
}).pipe(Effect.scoped)

await Effect.runPromise(program)
process.exit(0)
