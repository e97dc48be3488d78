/**
 * How soon the other processes receive a hint. Each process has a pool and a direct connection to one Postgres. Sends
 * hints of each kind one at a time, and measures the time until all other processes have received each one.
 *
 *   node bench/hints.ts [processes] [rounds]
 */
import { Context, DateTime, Effect, Layer, Redacted, Schedule } from "effect"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { layerPostgres } from "../src/db/Database.ts"
import * as DirectConnection from "../src/db/DirectConnection.ts"
import * as Migrations from "../src/db/Migrations.ts"
import { ProcessStore } from "../src/process/heartbeat/ProcessStore.ts"
import * as Hints from "../src/process/signals/Hints.ts"
import type { HintTopic } from "../src/process/signals/Hints.ts"
import { runFolderPrefix, serverUrl, stopServer } from "../test/support/postgresProcess.ts"

const [count = 3, rounds = 200] = process.argv.slice(2).map(Number)
const topics: ReadonlyArray<HintTopic> = ["run", "endpoint", "task", "stop", "news"]

const folder = await mkdtemp(join(tmpdir(), `${runFolderPrefix}${process.pid}-`))

const start = Effect.fnUntraced(function* (url: URL, id: string) {
  const services = Hints.layer.pipe(
    Layer.provideMerge(ProcessStore.layer),
    Layer.provideMerge(DirectConnection.layer(Redacted.make(url.href))),
    Layer.provideMerge(layerPostgres({ url: Redacted.make(url.href), maxConnections: 2 }))
  )
  const context = yield* Layer.build(Layer.fresh(services))
  // A hint is sent only to processes with a heartbeat
  const beat = Effect.flatMap(DateTime.now, (now) =>
    Context.get(context, ProcessStore).heartbeat(id, now)
  )
  yield* beat
  yield* Effect.forkScoped(Effect.repeat(beat, Schedule.spaced("2 seconds")))
  return Context.get(context, Hints.Hints)
})

const program = Effect.gen(function* () {
  const url = new URL(yield* Effect.promise(() => serverUrl(folder)))
  yield* Migrations.migrate().pipe(
    Effect.provide(layerPostgres({ url: Redacted.make(url.href) }), { local: true })
  )
  const [first, ...others] = yield* Effect.forEach(Array.from({ length: count }), (_, n) =>
    start(url, `proc_${n}`)
  )
  let received = 0
  let all = () => {}
  for (const topic of topics) {
    for (const other of others) {
      other.subscribe(topic, () => {
        received += 1
        if (received === others.length) all()
      })
    }
  }
  for (const topic of topics) {
    const times: Array<number> = []
    for (let n = 0; n < rounds; n += 1) {
      received = 0
      const arrived = new Promise<void>((resolve) => {
        all = resolve
      })
      const began = performance.now()
      first!.publishUnsafe(topic, `${topic} ${n}`)
      yield* Effect.promise(() => arrived)
      times.push(performance.now() - began)
      yield* Effect.sleep("20 millis")
    }
    const sorted = times.toSorted((a, b) => a - b)
    const at = (share: number) => sorted[Math.floor(share * (rounds - 1))]!.toFixed(1)
    console.log(`${topic}: median ${at(0.5)} ms, 99 % ${at(0.99)} ms, all ${at(1)} ms`)
  }
}).pipe(Effect.scoped)

await Effect.runPromise(program).finally(async () => {
  await stopServer(folder)
  await rm(folder, { recursive: true, force: true })
})
