/**
 * The cost of a message to an endpoint's actor, and of a resident actor: with entities of effect/cluster and runners that
 * do nothing, with the same behind a registry of open senders (the former design, ADR 0003), with RcMap and with
 * FiberMap. Each actor only counts its messages. Rounds alternate; figures are medians.
 *
 *   node bench/actors.ts [actors] [messages] [rounds]
 */
import { Effect, Exit, FiberMap, Layer, Queue, RcMap, Scope } from "effect"
import {
  Entity,
  MessageStorage,
  RunnerHealth,
  Runners,
  RunnerStorage,
  Sharding,
  ShardingConfig
} from "effect/cluster"
import { Digest } from "effect/crypto"
import { Rpc } from "effect/rpc"
import { cpuMillis, median } from "./measures.ts"
import { withStartFlags } from "./startFlags.ts"

withStartFlags()

const [actors = 1000, messages = 100_000, rounds = 5] = process.argv.slice(2).map(Number)

const idle = "1 minute"
let received = 0
const receive = Effect.sync(() => {
  received += 1
})

/** Sends a message to an actor, opening it first if necessary. */
type Send = (id: string) => Effect.Effect<void>

const Message = Rpc.make("Message")
const Actor = Entity.make("Actor", [Message])

const cluster = Actor.toLayer(Effect.succeed(Actor.of({ Message: () => receive })), {
  maxIdleTime: idle,
  mailboxCapacity: 64,
  concurrency: "unbounded"
}).pipe(
  Layer.provideMerge(Sharding.layer),
  Layer.provideMerge(Runners.layerNoop),
  Layer.provide([MessageStorage.layerNoop, RunnerStorage.layerMemory, RunnerHealth.layerNoop]),
  Layer.provide(
    ShardingConfig.layer({
      maxResidentEntities: 50_000,
      simulateRemoteSerialization: false,
      entityMailboxCapacity: 64,
      entityTerminationTimeout: "500 millis"
    })
  ),
  Layer.provide(Digest.layerWebCrypto)
)

const entities = Effect.gen(function* () {
  const context = yield* Layer.build(Layer.fresh(cluster))
  const client = yield* Effect.provideContext(Actor.client, context)
  const send: Send = (id) => Effect.ignore(client(id).Message(undefined, { discard: true }))
  return send
})

const registry = Effect.gen(function* () {
  const toActor = yield* entities
  const open = new Set<string>()
  const send: Send = (id) =>
    Effect.suspend(() => {
      if (open.has(id)) return receive
      open.add(id)
      return toActor(id)
    })
  return send
})

const rcMap = Effect.gen(function* () {
  const open = yield* RcMap.make({
    lookup: (_id: string) => Effect.succeed(receive),
    idleTimeToLive: idle
  })
  const send: Send = (id) => Effect.scoped(Effect.flatten(RcMap.get(open, id)))
  return send
})

const fiberMap = Effect.gen(function* () {
  const fibers = yield* FiberMap.make<string>()
  const mailboxes = new Map<string, Queue.Queue<void>>()
  const actor = (id: string, mailbox: Queue.Queue<void>) =>
    Queue.take(mailbox).pipe(
      Effect.andThen(receive),
      Effect.timeout(idle),
      Effect.forever,
      Effect.ensuring(Effect.sync(() => mailboxes.delete(id)))
    )
  const send: Send = Effect.fnUntraced(function* (id) {
    let mailbox = mailboxes.get(id)
    if (mailbox === undefined) {
      mailbox = yield* Queue.unbounded<void>()
      mailboxes.set(id, mailbox)
      yield* FiberMap.run(fibers, id, Effect.ignore(actor(id, mailbox)))
    }
    Queue.offerUnsafe(mailbox, undefined)
  })
  return send
})

const contenders = {
  "effect/cluster": entities,
  "effect/cluster behind a registry": registry,
  RcMap: rcMap,
  FiberMap: fiberMap
} as const

const ids = Array.from({ length: actors }, (_, n) => `whe_${n}`)

const arrived = (count: number) =>
  Effect.promise(async () => {
    const hasArrived = () => received >= count
    while (!hasArrived()) await new Promise((resolve) => setImmediate(resolve))
  })

const heap = () => {
  globalThis.gc?.()
  return process.memoryUsage().heapUsed
}

const measure = Effect.fnUntraced(function* (make: Effect.Effect<Send, never, Scope.Scope>) {
  const scope = yield* Scope.make()
  const send = yield* Scope.provide(make, scope)
  const before = { cpu: cpuMillis(), heap: heap() }
  received = 0
  yield* Effect.forEach(ids, send, { discard: true, concurrency: 8 })
  yield* arrived(actors)
  const opened = { cpu: cpuMillis(), heap: heap() }
  const began = performance.now()
  const cpu = cpuMillis()
  received = 0
  // As many at once as the due deliveries that a scan finds
  for (let sent = 0; sent < messages; sent += actors) {
    yield* Effect.forEach(ids, send, { discard: true })
    yield* arrived(sent + actors)
  }
  const figure = {
    openMicros: ((opened.cpu - before.cpu) * 1000) / actors,
    heapBytes: (opened.heap - before.heap) / actors,
    messageMicros: ((cpuMillis() - cpu) * 1000) / received,
    perSecond: (received * 1000) / (performance.now() - began)
  }
  yield* Scope.close(scope, Exit.void)
  return figure
})

type Figure = Effect.Success<ReturnType<typeof measure>>

const program = Effect.gen(function* () {
  const figures = new Map<string, Array<Figure>>()
  for (let round = 0; round <= rounds; round += 1) {
    for (const [name, make] of Object.entries(contenders)) {
      const figure = yield* measure(make)
      // The first round is a warm-up
      if (round > 0) figures.set(name, [...(figures.get(name) ?? []), figure])
    }
  }
  for (const [name, all] of figures) {
    const of = (key: keyof Figure) => median(all.map((one) => one[key]))
    console.log(
      `${name.padEnd(34)} ${of("messageMicros").toFixed(2)} µs CPU a message, ${of("perSecond").toFixed(0)} a second; ` +
        `to open one ${of("openMicros").toFixed(0)} µs CPU, ${of("heapBytes").toFixed(0)} bytes`
    )
  }
})

await Effect.runPromise(program)
process.exit(0)
