import { PgClient } from "@effect/sql-pg"
import {
  Context,
  Deferred,
  Effect,
  Exit,
  Layer,
  Option,
  References,
  Scheduler,
  Scope
} from "effect"
import { TestClock } from "effect/testing"
import { mockOutcome } from "../../../../src/webhooks/WebhookSender.ts"
import type { WebhookRequest } from "../../../../src/webhooks/WebhookSender.ts"
import { callWith, layerGateway, makeUser } from "../../../support/gateway.ts"
import type { GatewayHttp, HttpResult } from "../../../support/gateway.ts"
import { startedDatabase } from "../../../support/stores.ts"
import { always, atRest } from "../invariants.ts"
import { faultyStores } from "./faultyStores.ts"
import type { Faults, Life } from "./faultyStores.ts"
import type { History, TaskStory } from "./history.ts"
import { seededScheduler } from "./scheduler.ts"
import { StoryVendor } from "./storyVendor.ts"

const path = "/vendors/alibaba/v1/text-to-image-preview/generation"
const events = ["task.created", "task.succeeded", "task.failed"]
/** How long after its replacement a sleeping process wakes. */
const sleepSeconds = 12
/** After this time the history counts as endless. */
const secondsMax = 300

type Services = Layer.Success<ReturnType<typeof layerGateway>>

interface Process {
  readonly life: Life
  readonly services: Context.Context<Services>
}

/** The outcome of a history. */
export interface Outcome {
  readonly breaches: ReadonlyArray<string>
  readonly processes: number
  readonly seconds: number
}

/** Runs a history, with a new process after each that dies, and checks the invariants at its end. */
export const runHistory = (history: History, seed: number): Promise<Outcome> =>
  live(history).pipe(
    Effect.scoped,
    Effect.provideService(Scheduler.Scheduler, seededScheduler(seed)),
    Effect.provideService(References.MinimumLogLevel, "None"),
    Effect.provide(TestClock.layer()),
    Effect.runPromise
  )

const live = Effect.fnUntraced(function* (history: History) {
  const database = yield* Layer.build(startedDatabase)
  const world = new World(history, database, yield* Deferred.make<void>())
  yield* Effect.forkScoped(world.lives)
  const accepted = new Map<string, string>()
  const clients = yield* Effect.forkScoped(clientsOf(history, world, accepted))
  const sql = Context.get(database, PgClient.PgClient)
  const underWay = sql<{
    n: number
  }>`SELECT ((SELECT count(*) FROM runs) + (SELECT count(*) FROM holds)
    + (SELECT count(*) FROM delivery_queue))::int AS n`
  let seconds = 0
  for (let quiet = 0; quiet < 3 && seconds < secondsMax; seconds += 1) {
    yield* tick(sql)
    const [row] = yield* underWay
    quiet = clients.pollUnsafe() !== undefined && row?.n === 0 ? quiet + 1 : 0
  }
  const breaches = yield* breachesOf(sql, world, accepted)
  yield* Deferred.succeed(world.over, undefined)
  const closing = yield* Effect.forkScoped(world.close)
  for (let n = 0; n < 20 && closing.pollUnsafe() === undefined; n += 1) yield* tick(sql)
  return { breaches, processes: world.count, seconds } satisfies Outcome
})

/** Advances the clock by a second, and waits until the due work has sent its queries to the store. */
const tick = Effect.fnUntraced(function* (sql: PgClient.PgClient) {
  yield* TestClock.adjust("1 second")
  for (let round = 0; round < 4; round += 1) {
    yield* sql`SELECT 1`
    yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
  }
})

/** The processes of a history, one after the other, with their vendor and receiver. */
class World {
  readonly vendor = new StoryVendor()
  readonly bodies = new Map<string, Set<string>>()
  readonly over: Deferred.Deferred<void>
  count = 0
  readonly #scopes: Array<Scope.Closeable> = []
  #current = Deferred.makeUnsafe<Process>()
  #ended = Deferred.makeUnsafe<"dies" | "sleeps">()
  readonly #faults: Faults
  readonly #database

  constructor(
    history: History,
    database: Context.Context<Layer.Success<typeof startedDatabase>>,
    over: Deferred.Deferred<void>
  ) {
    this.#database = database
    this.over = over
    const onEnd = (kind: "dies" | "sleeps") =>
      void Deferred.doneUnsafe(this.#ended, Exit.succeed(kind))
    this.#faults = { counts: new Map(), plan: history.faults, onEnd }
  }

  get awaitProcess(): Effect.Effect<Process> {
    return Effect.suspend(() => Deferred.await(this.#current))
  }

  /** Starts a process, and another one when it dies or sleeps. */
  get lives(): Effect.Effect<never, never, Scope.Scope> {
    return Effect.gen({ self: this }, function* () {
      for (;;) {
        const life: Life = { isDead: false, sleep: undefined, over: this.over }
        this.#ended = Deferred.makeUnsafe()
        this.count += 1
        yield* Effect.forkScoped(this.#start(life))
        const how = yield* Deferred.await(this.#ended)
        this.#current = Deferred.makeUnsafe()
        if (how === "sleeps") yield* Effect.forkScoped(wakeLater(life))
        yield* Effect.sleep("1 second")
      }
    })
  }

  #start(life: Life): Effect.Effect<void, never, Scope.Scope> {
    const alive = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
      whileAlive(life, Effect.tap(effect, whileAlive(life, Effect.void)))
    const layer = layerGateway({
      database: Layer.succeedContext(this.#database),
      stores: faultyStores(this.#faults, life),
      vendor: this.vendor.account(alive),
      webhook: (request) => alive(Effect.sync(() => this.#receive(request))),
      env: { TASK_DEADLINE: "60 seconds", LOG_LEVEL: "None" }
    })
    return Effect.gen({ self: this }, function* () {
      const scope = yield* Scope.make()
      this.#scopes.push(scope)
      const services = yield* Layer.buildWithScope(layer, scope)
      yield* Deferred.succeed(this.#current, { life, services })
    }).pipe(
      // A start ends if the store is away
      Effect.catchCause(() =>
        Effect.sync(() => {
          life.isDead = true
          Deferred.doneUnsafe(this.#ended, Exit.succeed("dies"))
        })
      )
    )
  }

  /** A dead process cannot stop gracefully. */
  get close(): Effect.Effect<void> {
    return Effect.forEach(
      this.#scopes,
      (scope) => Effect.ignoreCause(Scope.close(scope, Exit.void)),
      { discard: true, concurrency: "unbounded" }
    )
  }

  #receive({ body, deliveryId }: WebhookRequest) {
    const known = this.bodies.get(deliveryId) ?? new Set<string>()
    // Some are refused at first
    const status = known.size === 0 && /[07]$/u.test(deliveryId) ? 500 : 200
    this.bodies.set(deliveryId, known.add(new TextDecoder().decode(body)))
    return mockOutcome(status)
  }

  /** Sends a request to the current process; `undefined` if it dies first or does not respond. */
  send(
    request: Effect.Effect<HttpResult, never, GatewayHttp>
  ): Effect.Effect<HttpResult | undefined> {
    return Effect.gen({ self: this }, function* () {
      const { life, services } = yield* this.awaitProcess
      const ended = Deferred.await(this.#ended)
      if (life.isDead || life.sleep !== undefined) return undefined
      return yield* Effect.raceFirst(
        Effect.asSome(Effect.provide(request, services)),
        Effect.as(ended, Option.none<HttpResult>())
      ).pipe(Effect.map(Option.getOrUndefined))
    })
  }
}

const whileAlive = <A, E>(life: Life, effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.suspend(() => {
    // Waits until the history is over, because uninterruptible work would keep its scope open
    if (life.isDead) {
      return Effect.andThen(Deferred.await(life.over), Effect.die("this process is dead"))
    }
    const { sleep } = life
    return sleep === undefined
      ? effect
      : Effect.andThen(Deferred.await(sleep), whileAlive(life, effect))
  })

const wakeLater = (life: Life) =>
  Effect.gen(function* () {
    yield* Effect.sleep(sleepSeconds * 1000)
    const { sleep } = life
    life.sleep = undefined
    if (sleep !== undefined) yield* Deferred.succeed(sleep, undefined)
  })

/** All clients of a history; before them, the user, who has an endpoint. */
const clientsOf = Effect.fnUntraced(function* (
  history: History,
  world: World,
  accepted: Map<string, string>
) {
  const { services } = yield* world.awaitProcess
  const user = yield* Effect.provide(makeUser(), services)
  const call: Call = (...words) => world.send(callWith(user.key)(...words))
  const hook = { url: "https://127.0.0.1:1/hook", events }
  yield* surely(call("POST", "/manage/v1/webhook-endpoints", hook))
  yield* Effect.forEach(history.tasks, (task, n) => client(task, `t${n}`, call, accepted), {
    concurrency: "unbounded",
    discard: true
  })
})

/** Repeats a request until a process responds. */
const surely = Effect.fnUntraced(function* (request: Effect.Effect<HttpResult | undefined>) {
  for (let tries = 0; tries < 60; tries += 1) {
    const answer = yield* request
    if (answer !== undefined && answer.status !== 503) return answer
    yield* Effect.sleep("1 second")
  }
  return undefined
})

type Call = (
  ...words: Parameters<ReturnType<typeof callWith>>
) => Effect.Effect<HttpResult | undefined>

/** Creates a task, with as many attempts as needed, and may cancel it. */
const client = Effect.fnUntraced(function* (
  task: TaskStory,
  tag: string,
  call: Call,
  accepted: Map<string, string>
) {
  yield* Effect.sleep(task.at * 1000)
  const body = { prompt: JSON.stringify({ tag, story: task.vendor }), n: 1 }
  const create = surely(call("POST", path, body, { "idempotency-key": tag }))
  const made = yield* create
  if (made === undefined) return
  const id = made.status === 202 ? String(made.json.task_info.id) : `refused: ${made.text}`
  accepted.set(tag, id)
  if (task.isRepeated) {
    const again = yield* create
    if (again !== undefined && again.json.task_info?.id !== id) accepted.set(tag, `two of ${tag}`)
  }
  if (task.cancelAt === null) return
  yield* Effect.sleep(task.cancelAt * 1000)
  const cancelled = yield* surely(call("DELETE", `${path}/${id}`))
  if (cancelled !== undefined && ![200, 409].includes(cancelled.status)) {
    accepted.set(tag, `cancel: ${cancelled.text}`)
  }
})

const breachesOf = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  world: World,
  accepted: ReadonlyMap<string, string>
) {
  const breaches: Array<string> = []
  // The store's clock is not a test clock
  const stores = [...always, ...atRest].filter(({ sql }) => !sql.includes("clock_timestamp"))
  for (const invariant of stores) {
    const rows = yield* sql.unsafe<{ what: string }>(invariant.sql)
    breaches.push(...rows.map(({ what }) => `${invariant.name}: ${what}`))
  }
  const queued = yield* sql<{ id: string }>`SELECT id FROM delivery_queue`
  breaches.push(...queued.map(({ id }) => `delivery ${id} is left`))
  const tasks = yield* sql<{ id: string; prompt: string; status: string; code: string | null }>`
    SELECT id, body ->> 'prompt' AS prompt, status, error ->> 'code' AS code FROM tasks`
  const tags = new Map(tasks.map((task) => [JSON.parse(task.prompt).tag as string, task]))
  if (tags.size !== tasks.length) breaches.push(`${tasks.length} tasks of ${tags.size} creates`)
  for (const [tag, id] of accepted) {
    if (tags.get(tag)?.id !== id)
      breaches.push(`${tag}: accepted as ${id}, is ${tags.get(tag)?.id}`)
  }
  for (const [tag, { code, prompt, status }] of tags) {
    const sold = world.vendor.sold(tag)
    if (sold > 1) breaches.push(`${tag}: bought ${sold} times`)
    const { story } = JSON.parse(prompt) as { readonly story: TaskStory["vendor"] }
    if (code === "3004" && sold > 0 && story.ending !== "lost") {
      breaches.push(`${tag}: failed with 3004 although the vendor lists its job`)
    }
    if (status === "completed" && sold !== 1) breaches.push(`${tag}: completed without a job`)
  }
  const known = yield* sql<{ id: string }>`SELECT id FROM deliveries WHERE status = 'succeeded'`
  for (const { id } of known) {
    if (!world.bodies.has(id)) breaches.push(`delivery ${id} was never sent`)
  }
  for (const [id, bodies] of world.bodies) {
    if (bodies.size > 1) breaches.push(`delivery ${id} has ${bodies.size} bodies`)
  }
  return breaches
})
