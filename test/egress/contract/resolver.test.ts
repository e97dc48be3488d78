import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Fiber, Layer, Result } from "effect"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { parseEgressAllow } from "../../../src/domain/network/EgressAllow.ts"
import { EgressGuard } from "../../../src/egress/EgressGuard.ts"
import { makeResolve } from "../../../src/egress/Resolver.ts"
import { generateSecret } from "../../../src/webhooks/Signature.ts"
import { WebhookSender } from "../../../src/webhooks/WebhookSender.ts"
import { startHttps } from "../../support/badReceivers.ts"
import { makeAuthority } from "../../support/certificates.ts"
import { startNameServer } from "../../support/nameServer.ts"
import { run } from "../../support/spawnService.ts"

const deno = join(dirname(createRequire(import.meta.url).resolve("deno/package.json")), "deno")
const program = "test/support/stalledNames.ts"

describe("50 simultaneous look-ups of names that never resolve", () => {
  for (const [runtime, command, words] of [
    ["Node", process.execPath, [program]],
    ["Deno", deno, ["run", "--allow-all", program]]
  ] as const) {
    it(`do not delay other names, files or system look-ups on ${runtime}`, async () => {
      const child = run(command, words, {})
      try {
        assert.strictEqual(await child.ended, 0, child.output())
        assert.deepStrictEqual(JSON.parse(/\{.*\}/u.exec(child.output())?.[0] ?? "{}"), {
          fine: ["127.0.0.1"],
          endedBefore: 0,
          codes: ["ETIMEOUT"]
        })
      } finally {
        child.kill("SIGKILL")
      }
    }, 180_000)
  }

  it.live(
    "do not delay deliveries to other names, and fail as `dns` within the attempt",
    () =>
      Effect.gen(function* () {
        const names = yield* Effect.acquireDisposable(
          Effect.promise(() =>
            startNameServer((name) => (name.endsWith(".stalled.test") ? "silent" : "address"))
          )
        )
        const authority = yield* Effect.promise(makeAuthority)
        const receiver = yield* Effect.acquireRelease(
          Effect.promise(() =>
            startHttps(authority, (_, response) => response.end(), { name: "*.fine.test" })
          ),
          ({ close }) => Effect.promise(close)
        )
        const guard = EgressGuard.layer({
          allow: Result.getOrThrow(parseEgressAllow("127.0.0.1")),
          // With its retries several seconds, in which even a busy machine makes the other deliveries
          resolve: makeResolve({ servers: [names.address], timeoutMillis: 1000 })
        })
        const live = yield* Layer.build(
          WebhookSender.layer({ ca: authority.ca }).pipe(Layer.provide(guard))
        )
        const sender = Context.get(live, WebhookSender)
        const { port } = new URL(receiver.url)
        const send = (name: string) =>
          sender.send({
            userId: "user",
            url: `https://${name}:${port}/hook`,
            secret: generateSecret(),
            deliveryId: "whd_1",
            body: new Uint8Array(),
            timestampSeconds: 0
          })
        const stalled = yield* Effect.forEach(Array.from({ length: 50 }), (_, n) =>
          Effect.forkScoped(send(`a${n}.stalled.test`))
        )
        const fine = yield* Effect.all(
          Array.from({ length: 20 }, (_, n) => send(`a${n}.fine.test`)),
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual(
          fine.map((it) => it.failure),
          fine.map(() => null)
        )
        assert.isTrue(stalled.every((fiber) => fiber.pollUnsafe() === undefined))
        for (const fiber of stalled) {
          const { detail, failure } = yield* Fiber.join(fiber)
          assert.strictEqual(failure, "dns")
          assert.include(detail, "does not resolve (ETIMEOUT)")
        }
      }),
    180_000
  )
})

describe("a name server that never responds for AAAA", () => {
  it("does not delay a connection to the A address", async () => {
    await using names = await startNameServer((_, type) => (type === "A" ? "address" : "silent"))
    // Longer than this test can take
    const resolve = makeResolve({ servers: [names.address], timeoutMillis: 60_000 })
    assert.deepStrictEqual(await resolve("half.test"), ["127.0.0.1"])
    assert.lengthOf(names.asked, 2)
  })
})

describe("look-ups by the operating system, two at a time", () => {
  it("are not made if they were abandoned before their turn", async () => {
    const asked: Array<string> = []
    const running: Array<() => void> = []
    const resolve = makeResolve({
      lookup: (host) => {
        asked.push(host)
        return new Promise((resolve) => running.push(() => resolve([{ address: "1.1.1.1" }])))
      }
    })
    const found = ["one", "two"].map((host) => resolve(host))
    const given = new AbortController()
    for (let n = 0; n < 100; n += 1) resolve(`late${n}`, given.signal).catch(() => {})
    found.push(resolve("three"))
    await new Promise((resolve) => setImmediate(resolve))
    given.abort()
    running.shift()?.()
    await new Promise((resolve) => setImmediate(resolve))
    assert.deepStrictEqual(asked, ["one", "two", "three"])
    for (const end of running) end()
    assert.deepStrictEqual(await Promise.all(found), [["1.1.1.1"], ["1.1.1.1"], ["1.1.1.1"]])
    // One that has already been abandoned
    resolve("never", given.signal).catch(() => {})
    await new Promise((resolve) => setImmediate(resolve))
    assert.lengthOf(asked, 3)
  })
})
