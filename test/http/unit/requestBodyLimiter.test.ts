import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import type { Scope } from "effect"
import { Headers } from "effect/http"
import { TestClock } from "effect/testing"
import type { IncomingMessage } from "node:http"
import { connect } from "node:net"
import { AppConfig } from "../../../src/config/Config.ts"
import { RequestBodyLimiter } from "../../../src/http/server/bodies/RequestBodyLimiter.ts"
import { makeListener } from "../../../src/http/server/listener/Listener.ts"

const mebi = 1024 * 1024
/** The capacity is four of these, and a user's part is one. */
const largest = 8 * mebi
const layer = RequestBodyLimiter.layer.pipe(
  Layer.provide(AppConfig.layerOf({ MAX_BODY_BYTES: String(largest) })),
  Layer.orDie
)

/** Polls in real time, for a limited time, while the test's clock stands still. */
const eventually = (what: string, is: () => boolean) =>
  Effect.promise(async () => {
    for (let tries = 0; tries < 2000; tries += 1) {
      if (is()) return
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
    throw new Error(`never happened: ${what}`)
  })

/** As long as admitted bytes take to arrive. */
const settled = Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 100)))

/** Bodies over real connections, read within the limiter and kept until the test ends their use. */
const makeSenders = Effect.gen(function* () {
  const limiter = yield* RequestBodyLimiter
  const { server } = makeListener()
  const requests: Array<IncomingMessage> = []
  server.on("request", (request) => requests.push(request))
  yield* Effect.acquireRelease(
    Effect.promise(() => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))),
    () => Effect.sync(() => server.close())
  )
  const address = server.address()
  const port = typeof address === "object" ? (address?.port ?? 0) : 0

  return Effect.fnUntraced(function* (user: string, length: number | "chunked") {
    const socket = connect(port, "127.0.0.1")
    yield* Effect.addFinalizer(() => Effect.sync(() => socket.destroy()))
    const state = { received: "", hasPlace: false, arrived: 0, isComplete: false }
    socket.on("error", () => {}).on("data", (chunk) => (state.received += chunk.toString()))
    const header = length === "chunked" ? "Transfer-Encoding: chunked" : `Content-Length: ${length}`
    const number = requests.length
    socket.write(`POST / HTTP/1.1\r\nHost: x\r\n${header}\r\n\r\n`)
    yield* eventually("a request", () => requests.length > number)
    const source = requests[number]!
    let end = () => {}
    const used = new Promise<void>((resolve) => (end = resolve))
    const read = Effect.promise((signal) => {
      state.hasPlace = true
      source.on("data", (chunk: Uint8Array) => (state.arrived += chunk.length))
      source.on("end", () => (state.isComplete = true))
      signal.addEventListener("abort", () => end())
      return used
    })
    const headers = Headers.fromInput({ ...source.headers } as Record<string, string>)
    yield* Effect.forkScoped(limiter.within({ headers, source }, user)(read))
    const send = (bytes: number) => {
      const body = Buffer.alloc(bytes, "x")
      if (length !== "chunked") return socket.write(body)
      socket.write(`${bytes.toString(16)}\r\n`)
      socket.write(body)
      return socket.write("\r\n")
    }
    return { state, send, finish: () => socket.write("0\r\n\r\n"), end: () => end() }
  })
})

type Sender = Effect.Success<ReturnType<Effect.Success<typeof makeSenders>>>

const scenario = (
  run: (open: Effect.Success<typeof makeSenders>) => Effect.Effect<void, never, Scope.Scope>
) => Effect.scoped(Effect.flatMap(makeSenders, run)).pipe(Effect.provide(layer))

describe("capacity for large request bodies", () => {
  it.effect("counts bytes that arrived, so announced bytes take nothing from others", () =>
    scenario((open) =>
      Effect.gen(function* () {
        for (let n = 0; n < 20; n += 1) yield* open(`idle ${n}`, largest)
        const sender = yield* open("sender", largest)
        sender.send(largest)
        yield* eventually("a whole body", () => sender.state.isComplete)
      })
    )
  )

  it.effect("holds four of the largest bodies; more wait, and continue when one is used", () =>
    scenario((open) =>
      Effect.gen(function* () {
        const all: Array<Sender> = []
        for (let n = 0; n < 6; n += 1) all.push(yield* open(`user ${n}`, largest))
        for (const { send } of all) send(largest)
        const arrived = () => all.reduce((sum, { state }) => sum + state.arrived, 0)
        yield* eventually("four bodies' bytes", () => arrived() > 3 * largest)
        yield* settled
        assert.isAtMost(arrived(), 4 * largest + 6 * 64 * 1024)
        for (let ended = 0; ended < 6; ended += 1) {
          yield* eventually("a body that can be used", () =>
            all.some(({ state }) => state.isComplete)
          )
          const at = all.findIndex(({ state }) => state.isComplete)
          all.splice(at, 1)[0]?.end()
        }
      })
    )
  )

  it.effect("gives a user at most a quarter; the user's other bodies wait unread", () =>
    scenario((open) =>
      Effect.gen(function* () {
        const first = yield* open("one", largest)
        const second = yield* open("one", 2 * mebi)
        const other = yield* open("other", 2 * mebi)
        for (const { send } of [first, second, other]) send(2 * mebi)
        yield* eventually("the other user's body", () => other.state.isComplete)
        yield* settled
        assert.isFalse(second.state.hasPlace)
        first.send(largest - 2 * mebi)
        yield* eventually("the first", () => first.state.isComplete)
        yield* settled
        assert.isFalse(second.state.hasPlace)
        first.end()
        yield* eventually("the second", () => second.state.isComplete)
      })
    )
  )

  it.effect(
    "gives a body without a length only the bytes that arrived, within its user's part",
    () =>
      scenario((open) =>
        Effect.gen(function* () {
          const small: Array<Sender> = []
          for (let n = 0; n < 6; n += 1) {
            const sender = yield* open("one", "chunked")
            sender.send(1000)
            sender.finish()
            small.push(sender)
          }
          yield* eventually("all small ones", () => small.every(({ state }) => state.isComplete))
          const large = yield* open("one", "chunked")
          large.send(6 * mebi)
          const second = yield* open("one", "chunked")
          second.send(6 * mebi)
          yield* eventually("more than one body takes", () => second.state.hasPlace)
          yield* settled
          assert.isAtMost(large.state.arrived + second.state.arrived, largest + 4 * 64 * 1024)
          assert.strictEqual(second.state.received, "")
          // Now neither can grow, so the last one gives way
          for (const { end } of small) end()
          yield* eventually("408", () => second.state.received.startsWith("HTTP/1.1 408 "))
          second.end()
          large.finish()
          yield* eventually("the first", () => large.state.isComplete)
        })
      )
  )

  it.effect("is taken from a sender below 64 KiB a second over 10 seconds: 408", () =>
    scenario((open) =>
      Effect.gen(function* () {
        const idle = yield* open("one", largest)
        const fast = yield* open("other", largest)
        const waiting = yield* open("one", largest)
        waiting.send(mebi)
        for (const { send } of [idle, fast]) send(640 * 1024)
        const arrived = (bytes: number) => () => fast.state.arrived === bytes * 1024
        yield* eventually("the first bytes", arrived(640))
        yield* eventually("the first bytes", () => idle.state.arrived === 640 * 1024)
        yield* TestClock.adjust("10 seconds")
        yield* settled
        assert.strictEqual(idle.state.received, "")
        fast.send(640 * 1024)
        idle.send(639 * 1024)
        yield* eventually("more bytes", arrived(1280))
        yield* eventually("more bytes", () => idle.state.arrived === 1279 * 1024)
        yield* TestClock.adjust("10 seconds")
        yield* eventually("408", () => idle.state.received.startsWith("HTTP/1.1 408 "))
        assert.match(idle.state.received, /"code":2015/u)
        assert.match(idle.state.received, /connection: close/iu)
        assert.strictEqual(fast.state.received, "")
        // Its place goes to another body, whose time starts then
        idle.end()
        yield* eventually("the next", () => waiting.state.arrived === mebi)
        yield* TestClock.adjust("9 seconds")
        yield* settled
        assert.strictEqual(waiting.state.received, "")
      })
    )
  )

  it.effect(
    "lets other bodies continue above the limit while one waits for its user's other bodies",
    () =>
      scenario((open) =>
        Effect.gen(function* () {
          const others = [yield* open("b", largest), yield* open("c", largest)]
          others.push(yield* open("d", largest))
          for (const { send } of others) send(7 * mebi)
          yield* eventually("21 MiB", () => others.every(({ state }) => state.arrived === 7 * mebi))
          const second = yield* open("a", "chunked")
          second.send(1.5 * mebi)
          yield* eventually("its bytes", () => second.state.arrived === 1.5 * mebi)
          // It has 4 MiB and needs 4 more, of which another body of its user has taken 2
          const first = yield* open("a", "chunked")
          first.send(4.5 * mebi)
          yield* eventually("its part", () => first.state.arrived >= 4 * mebi)
          yield* settled
          second.send(mebi / 4)
          for (const { send } of others) send(mebi / 2)
          yield* settled
          second.finish()
          yield* eventually("the second body", () => second.state.isComplete)
          second.end()
          for (const { send } of others) send(mebi / 2)
          first.finish()
          for (const { end, state } of others) {
            yield* eventually("another user's body", () => state.isComplete)
            end()
          }
          yield* eventually("the first body", () => first.state.isComplete)
        })
      )
  )

  it.effect("lets no body wait for a small one, however slow it is", () =>
    scenario((open) =>
      Effect.gen(function* () {
        const large: Array<Sender> = []
        for (const user of ["b", "c", "d"]) large.push(yield* open(user, largest))
        for (const { send } of large) send(largest - 1)
        yield* eventually("their bytes", () =>
          large.every(({ state }) => state.arrived === largest - 1)
        )
        const slow = yield* open("a", "chunked")
        slow.send(1000)
        yield* eventually("a few bytes", () => slow.state.arrived === 1000)
        large[0]?.send(1)
        yield* eventually("a whole body", () => large[0]?.state.isComplete === true)
      })
    )
  )

  it.effect("treats no sender as slow while the service keeps it waiting", () =>
    scenario((open) =>
      Effect.gen(function* () {
        const all: Array<Sender> = []
        for (let n = 0; n < 5; n += 1) all.push(yield* open(`user ${n}`, largest))
        for (const { send } of all) send(largest)
        yield* eventually("one that waits", () => all.some(({ state }) => state.isComplete))
        yield* settled
        yield* TestClock.adjust("1 minute")
        yield* settled
        for (const { state } of all) assert.strictEqual(state.received, "")
      })
    )
  )

  it.effect("lets small bodies never wait, and never treats them as slow", () =>
    scenario((open) =>
      Effect.gen(function* () {
        yield* open("one", largest)
        const small = yield* open("one", mebi)
        const chunked = yield* open("two", "chunked")
        chunked.send(1000)
        yield* TestClock.adjust("1 minute")
        small.send(mebi)
        yield* eventually("the small one", () => small.state.isComplete)
        chunked.finish()
        yield* eventually("the one without a length", () => chunked.state.isComplete)
      })
    )
  )
})
