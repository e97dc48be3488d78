import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { OriginLimiter } from "../../../src/webhooks/OriginLimiter.ts"

const url = new URL("https://hooks.example.com/hook")

/** A limiter whose attempts enter and leave by number. */
const gateOf = (max: number) => {
  const limiter = new OriginLimiter(max)
  const started: Array<number> = []
  const leave: Array<() => void> = []
  const enter = (count: number) => {
    for (let n = 0; n < count; n += 1) {
      const own = leave.length
      leave.push(() => {})
      leave[own] = limiter.acquire(url, () => started.push(own))
    }
  }
  return { enter, limiter, leave, started }
}

const turn = Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
const until = (isThere: () => boolean) => Effect.repeat(turn, { until: () => isThere() })

describe("attempts at an origin without a free connection", () => {
  it.effect("open one connection at a time, except for the first two of a URL", () =>
    Effect.gen(function* () {
      const { enter, started } = gateOf(128)
      enter(6)
      // Two use the URL's own slots, and one more may start at once
      assert.deepStrictEqual(started, [0, 1, 2])
      yield* until(() => started.length === 4)
      yield* until(() => started.length === 6)
      assert.deepStrictEqual(started, [0, 1, 2, 3, 4, 5])
    })
  )

  it.effect("start at once on connections that are open or have just been opened", () =>
    Effect.gen(function* () {
      const { enter, limiter, started } = gateOf(128)
      for (let n = 0; n < 2; n += 1) limiter.connectionOpened(url.origin)
      enter(5)
      assert.strictEqual(started.length, 3, "two on open connections, and one opens another")
      for (let n = 0; n < 3; n += 1) limiter.connectionOpened(url.origin)
      assert.strictEqual(started.length, 5)
    })
  )

  it.effect("take a connection that becomes free, without waiting or opening another", () =>
    Effect.gen(function* () {
      const { enter, limiter, leave, started } = gateOf(3)
      enter(3)
      const opened = [1, 2, 3].map(() => limiter.connectionOpened(url.origin))
      enter(2)
      assert.strictEqual(started.length, 3, "the limit holds")
      leave[0]!()
      assert.strictEqual(started.length, 3, "undici has it one event-loop turn later")
      yield* turn
      assert.deepStrictEqual(started, [0, 1, 2, 3])
      leave[4]!()
      leave[1]!()
      yield* turn
      assert.strictEqual(started.length, 4, "an attempt that left does not wait")
      for (const close of opened) close()
    })
  )

  it.effect("never exceed the limit, even if one is released twice", () =>
    Effect.gen(function* () {
      const { enter, limiter, leave, started } = gateOf(3)
      for (let n = 0; n < 8; n += 1) limiter.connectionOpened(url.origin)
      enter(6)
      assert.deepStrictEqual(started, [0, 1, 2])
      leave[0]!()
      leave[0]!()
      yield* turn
      assert.deepStrictEqual(started, [0, 1, 2, 3])
    })
  )

  it.effect("exceed the limit only so that two of their URL run", () =>
    Effect.gen(function* () {
      const limiter = new OriginLimiter(3)
      for (let n = 0; n < 8; n += 1) limiter.connectionOpened(url.origin)
      const started: Array<string> = []
      const begin = (path: string) => limiter.acquire(new URL(path, url), () => started.push(path))
      const leave = [begin("/a"), begin("/a"), begin("/a")]
      for (const path of ["/b", "/b", "/b", "/a", "/a"]) begin(path)
      assert.deepStrictEqual(started.splice(0), ["/a", "/a", "/a", "/b", "/b"])
      leave[0]!()
      yield* turn
      assert.deepStrictEqual(started, [], "two of it still run")
      leave[1]!()
      yield* turn
      assert.deepStrictEqual(started, ["/a"], "although another URL has waited longer")
    })
  )

  it.effect("all start at once if as many connections are open", () =>
    Effect.gen(function* () {
      const { enter, limiter, leave, started } = gateOf(128)
      for (let n = 0; n < 8; n += 1) limiter.connectionOpened(url.origin)
      enter(8)
      assert.strictEqual(started.length, 8)
      for (const one of leave) one()
      yield* turn
      enter(8)
      assert.strictEqual(started.length, 16)
    })
  )
})

describe("the share of a URL at its origin", () => {
  it.effect(
    "is all places if it is alone, else an equal part among the busy URLs, but at least two",
    () =>
      Effect.gen(function* () {
        const limiter = new OriginLimiter(8)
        const urlOf = (n: number) => new URL(`https://hooks.example.com/${n}`)
        const begin = (n: number) => limiter.acquire(urlOf(n), () => {})
        assert.strictEqual(limiter.fairShare(urlOf(1)), 8)
        const first = begin(1)
        assert.strictEqual(limiter.fairShare(urlOf(1)), 8)
        assert.strictEqual(limiter.fairShare(urlOf(2)), 4, "it would be the second")
        assert.strictEqual(limiter.fairShare(new URL("https://other.example.com/1")), 8)
        begin(2)
        begin(3)
        assert.strictEqual(limiter.fairShare(urlOf(1)), 2)
        for (let n = 4; n <= 20; n += 1) begin(n)
        assert.strictEqual(limiter.fairShare(urlOf(1)), 2, "the places without a wait")
        const limiterOfTwo = new OriginLimiter(8)
        const leave = [1, 2].map((n) => limiterOfTwo.acquire(urlOf(n), () => {}))
        leave[0]!()
        yield* turn
        assert.strictEqual(limiterOfTwo.fairShare(urlOf(2)), 8, "an attempt that left has no share")
        first()
      })
  )
})
