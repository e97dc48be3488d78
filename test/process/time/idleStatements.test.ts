import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Tracer } from "effect"
import { advance, layerGateway } from "../../support/gateway.ts"
import { startedDatabase } from "../../support/stores.ts"

/** Counts the statements of everything that runs in its context. */
const counting = () => {
  const statements: Array<string> = []
  const tracer = Tracer.make({
    span: (options) => {
      const span = new Tracer.NativeSpan(options)
      span.attribute = (key, value) => {
        if (key === "db.query.text") statements.push(String(value))
      }
      return span
    }
  })
  return { statements, tracer }
}

/** The statements, by text, of a minute in which this many processes have nothing to do. */
const idleMinute = Effect.fnUntraced(function* (processes: number) {
  const { statements, tracer } = counting()
  const database = Layer.succeedContext(yield* Layer.build(startedDatabase))
  // The variable says that the store is shared, so that no process forgets the others
  const env = { DATABASE_URL: "postgres://localhost/shared", DASHSCOPE_API_KEY: "sk-idle" }
  const minute = Effect.gen(function* () {
    // The duties of a start, and what the hourly ones find
    yield* advance("30 seconds", "1 second")
    const before = statements.length
    yield* advance("60 seconds", "1 second")
    return statements.slice(before)
  })
  const start = Layer.build(Layer.fresh(layerGateway({ database, env })))
  return yield* Effect.gen(function* () {
    const [first] = yield* Effect.forEach(Array.from({ length: processes }), () => start)
    return yield* Effect.provideContext(minute, first!)
  }).pipe(Effect.provideService(Tracer.Tracer, tracer))
}, Effect.scoped)

/** docs/reference/processes.md#idle-processes */
describe("processes without work", () => {
  it.effect(
    "each send a heartbeat every two seconds, and otherwise send together what one sends alone",
    () =>
      Effect.gen(function* () {
        const one = yield* idleMinute(1)
        const three = yield* idleMinute(3)
        const heartbeats = (all: ReadonlyArray<string>) =>
          all.filter((text) => text.includes("process_heartbeat")).length
        // `advance` queries the store six times a second
        const others = (all: ReadonlyArray<string>) =>
          all.filter((text) => !text.includes("process_heartbeat") && text !== "SELECT 1").length
        assert.strictEqual(heartbeats(one), 30)
        assert.strictEqual(heartbeats(three), 90)
        assert.isBelow(others(one), 270)
        assert.isAtMost(others(three), others(one) + 8)
      }),
    120_000
  )
})
