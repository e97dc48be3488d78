/**
 * Compares deliveries per second to a local HTTPS receiver in one run: (a) a bare loop of undici POSTs with HMAC and
 * without a store, (b) the same in a pg-boss worker, (c) the sending half of this service.
 *
 *   node bench/webhooks.ts [deliveries] [rounds]
 */
import { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import { PgBoss } from "pg-boss"
import { Agent } from "undici"
import { EndpointId } from "../src/domain/Ids.ts"
import { WorkNotifier } from "../src/process/signals/WorkNotifier.ts"
import { DeliveryStore } from "../src/webhooks/DeliveryStore.ts"
import { connections, post } from "./bareSender.ts"
import { body, cpuMillis } from "./measures.ts"
import { withStartFlags } from "./startFlags.ts"
import { database, drained, makeEndpoints, queue, receiver, sending } from "./support.ts"

withStartFlags()

const deliveries = Number(process.argv[2] ?? 9_000)
const rounds = Number(process.argv[3] ?? 3)
const endpoints = Math.ceil(deliveries / 300)

/** The number of pg-boss workers, each with batches of 100. More are not faster. */
const bossWorkers = 4

interface Figure {
  readonly perSecond: number
  readonly cpuMicros: number
  readonly statements?: number
}

const measure = async (work: () => Promise<void>): Promise<Figure> => {
  const cpu = cpuMillis()
  const started = performance.now()
  await work()
  const seconds = (performance.now() - started) / 1000
  return {
    perSecond: deliveries / seconds,
    cpuMicros: ((cpuMillis() - cpu) * 1000) / deliveries
  }
}

const bare = async (agent: Agent, url: string) => {
  let next = 0
  const one = async () => {
    while (next < deliveries) {
      next += 1
      await post(agent, url, `whd_${next}`, body)
    }
  }
  return measure(async () => {
    await Promise.all(Array.from({ length: connections }, one))
  })
}

/** `each`: every job is completed with a separate outcome, as in this service's log; otherwise one call per batch. */
const pgBoss = async (
  databaseUrl: string,
  agent: Agent,
  url: string,
  each: boolean
): Promise<Figure> => {
  const boss = new PgBoss({ connectionString: databaseUrl, supervise: false, schedule: false })
  boss.on("error", console.error)
  await boss.start()
  const name = `deliveries-${Date.now()}`
  await boss.createQueue(name, { retryLimit: 5, retryDelay: 15 })
  const text = Buffer.from(body).toString("utf8")
  for (let at = 0; at < deliveries; at += 1000) {
    const jobs = Array.from({ length: Math.min(1000, deliveries - at) }, (_, n) => ({
      data: { id: `whd_${at + n}`, url, body: text }
    }))
    await boss.insert(name, jobs)
  }
  await boss.getDb().executeSql("VACUUM ANALYZE", [])
  // `work` polls every half second; loops that fetch immediately show what pg-boss can do
  const worker = async () => {
    while (true) {
      const jobs = await boss.fetch<{ id: string; url: string; body: string }>(name, {
        batchSize: 100
      })
      if (jobs.length === 0) return
      await Promise.all(
        jobs.map(({ data }) => post(agent, data.url, data.id, Buffer.from(data.body)))
      )
      if (each) {
        await Promise.all(
          jobs.map((job) => boss.complete(name, job.id, { status: 200, response: "ok" }))
        )
      } else {
        await boss.complete(
          name,
          jobs.map((job) => job.id)
        )
      }
    }
  }
  const figure = await measure(async () => {
    await Promise.all(Array.from({ length: bossWorkers }, worker))
  })
  await boss.stop({ graceful: true })
  return figure
}

const service = Effect.fnUntraced(function* (url: string, round: number) {
  // New endpoints in each round, because each one is limited to 600 deliveries a minute
  const first = round * endpoints + 1
  yield* makeEndpoints(endpoints, url, first)
  // Due far in the future until all are written, so that nothing starts before the measurement
  yield* queue(deliveries, endpoints, 3600, 0, first)
  const notifier = yield* WorkNotifier
  const ids = Array.from({ length: endpoints }, (_, n) => EndpointId.make(`whe_${first + n}`))
  const context = yield* Effect.context<Effect.Services<typeof drained>>()
  // As with the others, the figure excludes filling the queue
  yield* makeDue
  calls.count = 0
  const figure = yield* Effect.promise(() =>
    measure(() =>
      Effect.runPromiseWith(context)(Effect.andThen(notifier.notifyEndpoints(ids), drained))
    )
  )
  return { ...figure, statements: calls.count / deliveries }
})

const makeDue = Effect.flatMap(
  PgClient.PgClient,
  (sql) => sql`UPDATE delivery_queue SET due_at = created_at`
)

/** The statements of the sending half: one per call of its store. */
const calls = { count: 0 }

const countCalls = (store: DeliveryStore["Service"]): void => {
  const counted =
    <A extends ReadonlyArray<unknown>, B>(call: (...args: A) => B) =>
    (...args: A) => {
      calls.count += 1
      return call(...args)
    }
  Object.assign(store, {
    claim: counted(store.claim),
    record: counted(store.record),
    due: counted(store.due),
    endedSince: counted(store.endedSince),
    requeueLost: counted(store.requeueLost),
    skipDisabled: counted(store.skipDisabled)
  })
}

const median = (values: ReadonlyArray<number>): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0

const program = Effect.gen(function* () {
  const databaseUrl = yield* database
  const { ca, url } = yield* receiver()
  const agent = new Agent({ connections, connect: { ca }, pipelining: 1 })
  const figures = {
    bare: [] as Array<Figure>,
    pgBoss: [] as Array<Figure>,
    pgBossBatch: [] as Array<Figure>,
    service: [] as Array<Figure>
  }
  yield* Effect.gen(function* () {
    countCalls(yield* DeliveryStore)
    for (let round = 0; round <= rounds; round += 1) {
      const one = {
        bare: yield* Effect.promise(() => bare(agent, url)),
        pgBoss: yield* Effect.promise(() => pgBoss(databaseUrl, agent, url, true)),
        pgBossBatch: yield* Effect.promise(() => pgBoss(databaseUrl, agent, url, false)),
        service: yield* service(url, round)
      }
      console.log(round === 0 ? "warm-up" : `round ${round}`, JSON.stringify(one))
      if (round === 0) continue
      figures.bare.push(one.bare)
      figures.pgBoss.push(one.pgBoss)
      figures.pgBossBatch.push(one.pgBossBatch)
      figures.service.push(one.service)
    }
  }).pipe(Effect.provide(sending(databaseUrl, ca)))
  const of = (list: ReadonlyArray<Figure>) => median(list.map((figure) => figure.perSecond))
  const cpuOf = (list: ReadonlyArray<Figure>) => median(list.map((figure) => figure.cpuMicros))
  const print = (what: string, list: ReadonlyArray<Figure>, more = "") =>
    console.log(
      `${what} ${of(list).toFixed(0)} deliveries/s, ${cpuOf(list).toFixed(0)} µs CPU each${more}`
    )
  const statements = median(figures.service.map((figure) => figure.statements ?? 0))
  print("(a) bare undici + HMAC, no store  ", figures.bare)
  print("(b) pg-boss worker                ", figures.pgBoss)
  print("(b') the same, one outcome a batch", figures.pgBossBatch)
  print(
    "(c) this service                  ",
    figures.service,
    `, ${statements.toFixed(2)} statements`
  )
  // Per round, because the machine's load changes from round to round
  const share = median(
    figures.service.map(
      (figure, n) => figure.perSecond / (figures.bare[n]?.perSecond ?? Number.NaN)
    )
  )
  console.log(
    `c/a ${(of(figures.service) / of(figures.bare)).toFixed(2)} (goal 0.35), median of the rounds ${share.toFixed(2)}; ` +
      `c/b ${(of(figures.service) / of(figures.pgBoss)).toFixed(2)} (goal 2)`
  )
  yield* Effect.promise(() => agent.destroy())
}).pipe(Effect.scoped)

await Effect.runPromise(program)
process.exit(0)
