import { assert, describe, it } from "@effect/vitest"
import { Clock, Context, Deferred, Effect, Fiber, Layer, Result, Schedule, Schema } from "effect"
import { TestClock } from "effect/testing"
import type { IncomingMessage, ServerResponse } from "node:http"
import { createServer as createTlsServer } from "node:https"
import { createServer as createTcpServer } from "node:net"
import type { AddressInfo, Server, Socket } from "node:net"
import { createServer as createRawTlsServer } from "node:tls"
import { request } from "undici"
import { parseEgressAllow } from "../../../src/domain/network/EgressAllow.ts"
import { AttemptOutcome } from "../../../src/domain/Webhook.ts"
import type { Resolve } from "../../../src/egress/EgressConnector.ts"
import { EgressGuard } from "../../../src/egress/EgressGuard.ts"
import { EgressRefused } from "../../../src/egress/EgressRules.ts"
import { nextAttemptAt } from "../../../src/webhooks/RetryPolicy.ts"
import { generateSecret } from "../../../src/webhooks/Signature.ts"
import { verifyWebhook } from "../../../src/webhooks/verifyWebhook.ts"
import {
  WebhookSender,
  WebhookSenderLog,
  mockOutcome
} from "../../../src/webhooks/WebhookSender.ts"
import type { WebhookRequest, WebhookSenderOptions } from "../../../src/webhooks/WebhookSender.ts"
import { makeAuthority } from "../../support/certificates.ts"
import { liveLayer } from "../../support/liveLayer.ts"

const secret = generateSecret()
const body = new TextEncoder().encode('{"type":"task.created","text":"雪"}')

/** What a test receiver recorded of one request. */
interface Received {
  readonly url: string
  readonly rawHeaders: ReadonlyArray<string>
  readonly headers: IncomingMessage["headers"]
  readonly body: Buffer
}

type Answer = (response: ServerResponse, request: IncomingMessage) => void

/** The certificates of this run. */
class Authority extends Context.Service<Authority, Awaited<ReturnType<typeof makeAuthority>>>()(
  "test/Authority"
) {
  static readonly layer = Layer.effect(Authority, Effect.promise(makeAuthority))
}

const listening = (server: Server) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const sockets = new Set<Socket>()
      server.on("connection", (socket: Socket) => {
        sockets.add(socket)
        socket.on("error", () => {})
        socket.on("close", () => sockets.delete(socket))
      })
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      return { port: (server.address() as AddressInfo).port, sockets, server }
    }),
    ({ sockets }) =>
      Effect.promise(async () => {
        for (const socket of sockets) socket.destroy()
        await new Promise((resolve) => server.close(resolve))
      })
  )

/** An HTTPS receiver that records its requests and responds according to a script. */
const receiver = Effect.fnUntraced(function* (
  answer: Answer,
  certificate?: { readonly name?: string; readonly expired?: boolean }
) {
  const authority = yield* Authority
  const received: Array<Received> = []
  const arrived = yield* Deferred.make<void>()
  const issued = yield* Effect.promise(() => authority.issue(certificate))
  let connections = 0
  const server = createTlsServer(issued, (request, response) => {
    const chunks: Array<Buffer> = []
    request.on("error", () => {})
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => {
      const { url = "", rawHeaders, headers } = request
      received.push({ url, rawHeaders, headers, body: Buffer.concat(chunks) })
      Deferred.doneUnsafe(arrived, Effect.void)
      answer(response, request)
    })
  })
  server.on("tlsClientError", () => {})
  server.on("connection", () => connections++)
  const { port, sockets } = yield* listening(server)
  const url = `https://localhost:${port}/hook?a=b`
  return {
    url,
    port,
    received,
    sockets,
    arrived: Deferred.await(arrived),
    connections: () => connections
  }
})

/** The sender has closed all its connections. */
const isClosed = ({ sockets }: { readonly sockets: ReadonlySet<Socket> }) =>
  Effect.repeat(
    Effect.sync(() => sockets.size),
    { until: (count) => count === 0, schedule: Schedule.spaced("5 millis") }
  )

const loopback: Resolve = () => Promise.resolve(["127.0.0.1"])

/** A sender for one test. By default its guard allows loopback. */
const sender = Effect.fnUntraced(function* (
  options: WebhookSenderOptions & { readonly allow?: string; readonly resolve?: Resolve } = {}
) {
  const { ca } = yield* Authority
  const guard = EgressGuard.layer({
    allow: Result.getOrThrow(parseEgressAllow(options.allow ?? "127.0.0.1")),
    resolve: options.resolve ?? loopback
  })
  const context = yield* Layer.build(
    WebhookSender.layer({ ca, timeout: "5 seconds", ...options }).pipe(Layer.provide(guard))
  )
  const { send } = Context.get(context, WebhookSender)
  return (url: string, overrides: Partial<WebhookRequest> = {}) =>
    Clock.currentTimeMillis.pipe(
      Effect.flatMap((now) =>
        send({
          userId: "user",
          url,
          secret,
          deliveryId: "whd_1",
          body,
          timestampSeconds: Math.trunc(now / 1000),
          ...overrides
        })
      ),
      Effect.tap((outcome) =>
        Effect.sync(() =>
          assert.isTrue(Schema.is(AttemptOutcome)(outcome), JSON.stringify(outcome))
        )
      )
    )
})

const status =
  (code: number, text = ""): Answer =>
  (response) => {
    response.writeHead(code).end(text)
  }

liveLayer(Authority.layer)("WebhookSender over real HTTPS", (it) => {
  /** docs/reference/webhooks.md#delivery-request */
  describe("the request", () => {
    it.effect("has exactly these headers, the stored bytes and a valid signature", () =>
      Effect.gen(function* () {
        const target = yield* receiver(status(204))
        const send = yield* sender()
        const outcome = yield* send(target.url)
        assert.deepStrictEqual(outcome, {
          status: 204,
          failure: null,
          detail: null,
          answer: "",
          remoteAddress: "127.0.0.1"
        })
        const [request] = target.received
        assert.isDefined(request)
        assert.strictEqual(request.url, "/hook?a=b")
        assert.deepStrictEqual(new Uint8Array(request.body), body)
        const names = request.rawHeaders.filter((_, index) => index % 2 === 0)
        assert.sameMembers(names, [
          "host",
          "connection",
          "content-length",
          "Content-Type",
          "User-Agent",
          "X-Service-Webhook-Id",
          "X-Service-Webhook-Timestamp",
          "X-Service-Webhook-Signature",
          "webhook-id",
          "webhook-timestamp",
          "webhook-signature"
        ])
        assert.strictEqual(request.headers["content-type"], "application/json")
        assert.strictEqual(request.headers["user-agent"], "Service-Webhook/1.0")
        assert.strictEqual(request.headers["x-service-webhook-id"], "whd_1")
        const verified = yield* Effect.promise(() =>
          verifyWebhook({ headers: request.headers, body: request.body, secret })
        )
        assert.deepStrictEqual(verified, { valid: true })
      })
    )

    it.effect("is also signed with the previous secret, under the operator's service name", () =>
      Effect.gen(function* () {
        const target = yield* receiver(status(200))
        const send = yield* sender({ serviceName: "Acme" })
        yield* send(target.url, { previousSecret: "whsec_old" })
        const { headers, body } = target.received[0]!
        assert.strictEqual(headers["user-agent"], "Acme-Webhook/1.0")
        for (const known of [secret, "whsec_old"]) {
          const verified = yield* Effect.promise(() =>
            verifyWebhook({ headers, body, secret: known, serviceName: "Acme" })
          )
          assert.deepStrictEqual(verified, { valid: true })
        }
      })
    )

    it.effect("has a new timestamp and signature but the same id and bytes on every attempt", () =>
      Effect.gen(function* () {
        const target = yield* receiver(status(500))
        const send = yield* sender()
        yield* send(target.url)
        yield* TestClock.adjust("15 seconds")
        yield* send(target.url)
        const [first, second] = target.received.map(({ body, headers }) => ({
          id: headers["x-service-webhook-id"],
          at: Number(headers["x-service-webhook-timestamp"]),
          signature: headers["x-service-webhook-signature"],
          body: String(body)
        }))
        assert.deepStrictEqual([second!.id, second!.body], [first!.id, first!.body])
        assert.strictEqual(second!.at - first!.at, 15)
        assert.notStrictEqual(second!.signature, first!.signature)
        const at = new Date(second!.at * 1000)
        const { body, headers } = target.received[1]!
        const verified = yield* Effect.promise(() =>
          verifyWebhook({ headers, body, secret, now: at })
        )
        assert.deepStrictEqual(verified, { valid: true })
      }).pipe(Effect.provide(TestClock.layer()))
    )

    it.effect("is sent with up to 64 KiB, and not with one byte more", () =>
      Effect.gen(function* () {
        const target = yield* receiver(status(200))
        const send = yield* sender()
        assert.isNull((yield* send(target.url, { body: new Uint8Array(65_536) })).failure)
        const outcome = yield* send(target.url, { body: new Uint8Array(65_537) })
        assert.strictEqual(outcome.failure, "payload_too_large")
        assert.strictEqual(target.received.length, 1)
      })
    )
  })

  /** docs/reference/webhooks.md#delivery */
  describe("the response", () => {
    it.effect("is a success with any 2xx", () =>
      Effect.gen(function* () {
        for (const code of [200, 201, 202, 204, 206, 299]) {
          const target = yield* receiver(status(code))
          const send = yield* sender()
          const outcome = yield* send(target.url)
          assert.deepStrictEqual([outcome.status, outcome.failure], [code, null])
        }
      })
    )

    it.effect("is http_status with any other status; a 3xx is redirect and is not followed", () =>
      Effect.gen(function* () {
        const elsewhere = yield* receiver(status(200))
        for (const [code, failure] of [
          [400, "http_status"],
          [404, "http_status"],
          [410, "http_status"],
          [429, "http_status"],
          [500, "http_status"],
          [503, "http_status"],
          [301, "redirect"],
          [302, "redirect"],
          [303, "redirect"],
          [304, "redirect"],
          [307, "redirect"],
          [308, "redirect"]
        ] as const) {
          const target = yield* receiver((response) =>
            response.writeHead(code, { location: elsewhere.url }).end()
          )
          const send = yield* sender()
          const outcome = yield* send(target.url)
          assert.deepStrictEqual([outcome.status, outcome.failure], [code, failure])
        }
        assert.strictEqual(elsewhere.received.length, 0)
      })
    )

    it.effect("is not an informational response", () =>
      Effect.gen(function* () {
        const target = yield* receiver((response) => {
          response.writeProcessing()
          response.writeEarlyHints({ link: "</a>; rel=preload" })
          response.writeHead(200).end("ok")
        })
        const send = yield* sender()
        const outcome = yield* send(target.url)
        assert.deepStrictEqual([outcome.status, outcome.failure, outcome.answer], [200, null, "ok"])
      })
    )

    it.effect("is stored up to 16 KiB, where an endless body is cut off", () =>
      Effect.gen(function* () {
        let sent = 0
        const target = yield* receiver((response) => {
          const more = () => {
            sent += 8192
            if (!response.destroyed && sent < 1e9)
              response.write("x".repeat(8192), () => setImmediate(more))
          }
          response.writeHead(500)
          more()
        })
        const send = yield* sender()
        const outcome = yield* send(target.url)
        assert.strictEqual(outcome.failure, "http_status")
        assert.strictEqual(outcome.answer, "x".repeat(16_384))
        yield* isClosed(target)
        assert.isBelow(sent, 20_000_000)
      })
    )

    it.effect("of exactly 16 KiB keeps the connection", () =>
      Effect.gen(function* () {
        const target = yield* receiver(status(200, "y".repeat(16_384)))
        const send = yield* sender()
        assert.strictEqual((yield* send(target.url)).answer, "y".repeat(16_384))
        assert.strictEqual(target.sockets.size, 1)
      })
    )

    it.effect("is stored as text that a database accepts, whatever its bytes", () =>
      Effect.gen(function* () {
        const answers: Array<Buffer> = [
          Buffer.from("a\u0000b"),
          Buffer.concat([Buffer.alloc(16_383, 0x61), Buffer.from("é")]),
          Buffer.alloc(20_000, 0xff)
        ]
        const target = yield* receiver((response) => response.end(answers.shift()))
        const send = yield* sender()
        assert.strictEqual((yield* send(target.url)).answer, "a\uFFFDb")
        assert.strictEqual((yield* send(target.url)).answer, "a".repeat(16_383))
        const { answer } = yield* send(target.url)
        assert.isAtMost(Buffer.byteLength(answer ?? ""), 16_384)
        assert.match(answer ?? "", /^\uFFFD+$/u)
      })
    )

    it.effect(
      "is a success as soon as the status line of a 2xx arrives, even if the body breaks off or drips",
      () =>
        Effect.gen(function* () {
          const breaking = yield* receiver((response) => {
            response.writeHead(200, { "content-length": "1000" })
            response.write("part", () => response.destroy())
          })
          const dripping = yield* receiver((response) => {
            response.writeHead(200)
            const drip = setInterval(() => response.write("."), 20)
            response.on("close", () => clearInterval(drip))
          })
          const send = yield* sender()
          const broken = yield* send(breaking.url)
          assert.deepStrictEqual([broken.status, broken.failure], [200, null])
          const short = yield* sender({ timeout: "2 seconds" })
          const dripped = yield* short(dripping.url)
          assert.deepStrictEqual([dripped.status, dripped.failure], [200, null])
          assert.match(dripped.answer ?? "", /^\.+$/u)
        })
    )
  })

  describe("the time-out of the whole attempt", () => {
    it.effect("is 30 seconds by Effect's clock, and the request is aborted", () =>
      Effect.gen(function* () {
        const target = yield* receiver(() => {})
        const send = yield* sender({ timeout: "30 seconds" })
        yield* Effect.gen(function* () {
          const fiber = yield* Effect.forkChild(send(target.url))
          yield* target.arrived
          yield* TestClock.adjust("29999 millis")
          assert.isUndefined(fiber.pollUnsafe())
          yield* TestClock.adjust("1 millis")
          const outcome = yield* Fiber.join(fiber)
          assert.deepStrictEqual(outcome, {
            status: null,
            failure: "timeout",
            detail: "no response within 30 s",
            answer: null,
            remoteAddress: "127.0.0.1"
          })
        }).pipe(Effect.provide(TestClock.layer()))
        yield* isClosed(target)
      })
    )

    it.effect("ends dripping headers, a hanging handshake, and a silent DNS look-up", () =>
      Effect.gen(function* () {
        const { issue } = yield* Authority
        const issued = yield* Effect.promise(() => issue())
        /** Resolves each time an attempt has reached its furthest point. */
        let isStuck = () => {}
        const drip = createRawTlsServer(issued, (socket) => {
          socket.on("error", () => {})
          socket.write("HTTP/1.1 200 OK\r\n")
          const timer = setInterval(() => socket.write("x-a: b\r\n"), 20)
          socket.on("close", () => clearInterval(timer))
          socket.once("data", () => isStuck())
        })
        const dripping = yield* listening(drip)
        const silent = yield* listening(createTcpServer(() => isStuck()))
        const send = yield* sender({
          timeout: "30 seconds",
          resolve: (host) => {
            if (host !== "silent.test") return loopback(host)
            isStuck()
            return new Promise(() => {})
          }
        })
        yield* Effect.gen(function* () {
          for (const [url, detail] of [
            [`https://localhost:${dripping.port}/`, "no response within 30 s"],
            [`https://localhost:${silent.port}/`, "no connection within 30 s"],
            ["https://silent.test/", "no connection within 30 s"]
          ] as const) {
            const stuck = Promise.withResolvers<void>()
            isStuck = stuck.resolve
            const fiber = yield* Effect.forkChild(send(url))
            yield* Effect.promise(() => stuck.promise)
            yield* TestClock.adjust("29999 millis")
            assert.isUndefined(fiber.pollUnsafe(), url)
            yield* TestClock.adjust("1 millis")
            const outcome = yield* Fiber.join(fiber)
            assert.deepStrictEqual([outcome.failure, outcome.detail], ["timeout", detail])
          }
        }).pipe(Effect.provide(TestClock.layer()))
      })
    )

    it.effect("an interruption aborts the request", () =>
      Effect.gen(function* () {
        const target = yield* receiver(() => {})
        const send = yield* sender()
        const fiber = yield* Effect.forkChild(send(target.url))
        yield* target.arrived
        assert.strictEqual(target.sockets.size, 1)
        yield* Fiber.interrupt(fiber)
        yield* isClosed(target)
      })
    )

    it.effect("an attempt interrupted before it is connected is never sent", () =>
      Effect.gen(function* () {
        const target = yield* receiver(status(200))
        const gate = Promise.withResolvers<ReadonlyArray<string>>()
        const send = yield* sender({ resolve: () => gate.promise })
        const fiber = yield* Effect.forkChild(send(target.url))
        yield* Effect.sleep("20 millis")
        yield* Fiber.interrupt(fiber)
        gate.resolve(["127.0.0.1"])
        yield* Effect.sleep("100 millis")
        assert.strictEqual(target.received.length, 0)
      })
    )
  })

  describe("failure classes", () => {
    it.effect("are protocol for a reset, a close or garbage before a status line", () =>
      Effect.gen(function* () {
        const { issue } = yield* Authority
        const issued = yield* Effect.promise(() => issue())
        for (const answer of [
          (_: Socket, tcp: Socket) => tcp.resetAndDestroy(),
          (socket: Socket) => socket.end(),
          (socket: Socket) => socket.end("garbage\r\n\r\n"),
          (socket: Socket) => socket.end("HTTP/1.1 abc OK\r\n\r\n"),
          (socket: Socket) => socket.end("HTTP/1.1 200"),
          (socket: Socket) => socket.write(`HTTP/1.1 200 OK\r\nx: ${"y".repeat(100_000)}\r\n\r\n`),
          (socket: Socket) =>
            socket.write(
              "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"
            )
        ]) {
          let tcp: Socket | undefined
          const server = createRawTlsServer(issued, (socket) => {
            socket.on("error", () => {})
            socket.once("data", () => answer(socket, tcp!))
          })
          server.on("connection", (socket: Socket) => (tcp = socket))
          const { port } = yield* listening(server)
          const send = yield* sender()
          const outcome = yield* send(`https://localhost:${port}/`)
          assert.deepStrictEqual(
            [outcome.status, outcome.failure],
            [null, "protocol"],
            answer.toString()
          )
          assert.strictEqual(outcome.remoteAddress, "127.0.0.1")
        }
      })
    )

    it.effect(
      "are tls for a certificate with another name, an expired one, an unknown authority or no TLS",
      () =>
        Effect.gen(function* () {
          const other = yield* receiver(status(200), { name: "other.test" })
          const expired = yield* receiver(status(200), { expired: true })
          const fine = yield* receiver(status(200))
          const otherAuthority = yield* Effect.promise(makeAuthority)
          const plain = yield* listening(
            createTcpServer((socket) => socket.end("HTTP/1.1 200 OK\r\n\r\n"))
          )
          const resetting = yield* listening(
            createTcpServer((socket) => socket.once("data", () => socket.resetAndDestroy()))
          )
          const trusting = yield* sender()
          const otherSender = yield* sender({ ca: otherAuthority.ca })
          const system = yield* sender({ ca: undefined })
          for (const outcome of [
            yield* trusting(other.url),
            yield* trusting(expired.url),
            yield* otherSender(fine.url),
            yield* system(fine.url),
            yield* trusting(`https://localhost:${plain.port}/`),
            yield* trusting(`https://localhost:${resetting.port}/`)
          ]) {
            assert.deepStrictEqual(
              [outcome.status, outcome.failure],
              [null, "tls"],
              outcome.detail ?? ""
            )
          }
          assert.strictEqual(
            other.received.length + expired.received.length + fine.received.length,
            0
          )
        })
    )

    it.effect("say in the detail of a failed handshake what is wrong with the receiver", () =>
      Effect.gen(function* () {
        const { ca, issue } = yield* Authority
        const fine = yield* receiver(status(200))
        const plain = yield* listening(
          createTcpServer((socket) => socket.end("HTTP/1.1 200 OK\r\n\r\n"))
        )
        const closing = yield* listening(
          createTcpServer((socket) => socket.once("data", () => socket.end()))
        )
        const issued = yield* Effect.promise(() => issue())
        const old = createRawTlsServer({
          ...issued,
          minVersion: "TLSv1",
          maxVersion: "TLSv1.1",
          ciphers: "DEFAULT@SECLEVEL=0"
        })
        old.on("tlsClientError", () => {})
        const outdated = yield* listening(old)
        const send = yield* sender({ ca })
        const detail = ({ port }: { readonly port: number }) =>
          Effect.map(send(`https://localhost:${port}/`), (it) => it.detail)
        assert.deepStrictEqual(
          {
            plain: yield* detail(plain),
            closing: yield* detail(closing),
            outdated: yield* detail(outdated)
          },
          {
            plain: "the port does not respond with TLS",
            closing: "the host closed the connection during the TLS handshake",
            outdated: "the host does not support TLS 1.2 or newer"
          }
        )
        const system = yield* sender({ ca: undefined })
        assert.notInclude((yield* system(fine.url)).detail, "Node.js")
      })
    )

    it.effect("are connect for a refused connection", () =>
      Effect.gen(function* () {
        const { port } = yield* Effect.scoped(listening(createTcpServer()))
        const send = yield* sender()
        const outcome = yield* send(`https://localhost:${port}/`)
        assert.strictEqual(outcome.failure, "connect")
        assert.include(outcome.detail, "ECONNREFUSED")
      })
    )

    it.effect("are dns for a name without an address, also with the system's resolver", () =>
      Effect.gen(function* () {
        const scripted = yield* sender({
          resolve: () => Promise.reject(Object.assign(new Error("no"), { code: "EAI_AGAIN" }))
        })
        const outcome = yield* scripted("https://gone.test/")
        assert.deepStrictEqual(
          [outcome.failure, outcome.detail],
          ["dns", "gone.test does not resolve (EAI_AGAIN)"]
        )
        const live = yield* Layer.build(
          WebhookSender.layer().pipe(
            Layer.provide(EgressGuard.layer({ allow: Result.getOrThrow(parseEgressAllow("")) }))
          )
        )
        const real = yield* Context.get(live, WebhookSender).send({
          userId: "user",
          url: "https://no-such-name.invalid/",
          secret,
          deliveryId: "whd_1",
          body,
          timestampSeconds: 0
        })
        assert.strictEqual(real.failure, "dns")
      })
    )

    it.effect("are blocked for a non-public address, in the URL or behind a name", () =>
      Effect.gen(function* () {
        const target = yield* receiver(status(200))
        const send = yield* sender({
          allow: "",
          resolve: (host) =>
            Promise.resolve(host === "mixed.test" ? ["8.8.8.8", "127.0.0.1"] : ["127.0.0.1"])
        })
        for (const url of [
          `https://127.0.0.1:${target.port}/`,
          `https://2130706433:${target.port}/`,
          target.url,
          `https://rebound.test:${target.port}/`,
          `https://mixed.test:${target.port}/`,
          "https://[::ffff:127.0.0.1]/",
          "http://example.com/",
          "https://user:pass@example.com/",
          "not a url"
        ]) {
          const outcome = yield* send(url)
          assert.strictEqual(outcome.failure, "blocked", url)
          assert.notInclude(outcome.detail, "pass@")
          // The log belongs to the tenant, so it does not reveal what a name resolves to
          assert.strictEqual(outcome.detail, "the address is not allowed")
          assert.isNull(outcome.remoteAddress)
        }
        assert.strictEqual(target.connections(), 0, "no byte was sent")
      })
    )

    it.effect(
      "are blocked for a name that changes to a private address after the first connection",
      () =>
        Effect.gen(function* () {
          const target = yield* receiver((response) =>
            response.writeHead(200, { connection: "close" }).end()
          )
          const answers = [["127.0.0.1"], ["10.0.0.1"]]
          let lookups = 0
          const send = yield* sender({ resolve: () => Promise.resolve(answers[lookups++] ?? []) })
          const url = `https://hooks.test:${target.port}/`
          assert.isNull((yield* send(url)).failure)
          assert.strictEqual(lookups, 1, "one lookup for both check and connect")
          yield* Effect.sleep("50 millis")
          assert.strictEqual((yield* send(url)).failure, "blocked")
        })
    )
  })

  describe("EgressGuard.dispatcher, for other callers", () => {
    it.effect("itself checks addresses in the URL, and connects to those that are allowed", () =>
      Effect.gen(function* () {
        const plain = yield* listening(
          createTcpServer((socket) => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"))
        )
        const fetchWith = Effect.fnUntraced(function* (allow: string, url: string) {
          const layer = EgressGuard.layer({ allow: Result.getOrThrow(parseEgressAllow(allow)) })
          const guard = Context.get(yield* Layer.build(layer), EgressGuard)
          const dispatcher = yield* guard.dispatcher()
          return yield* Effect.promise(() =>
            request(url, { dispatcher }).then(
              ({ body }) => body.text(),
              (error: unknown) => error
            )
          )
        })
        for (const host of [
          "127.0.0.1",
          "2130706433",
          "localhost",
          "[::1]",
          "[::ffff:127.0.0.1]"
        ]) {
          const outcome = yield* fetchWith("", `http://${host}:${plain.port}/`)
          assert.instanceOf(outcome, EgressRefused, host)
        }
        assert.strictEqual(plain.sockets.size, 0)
        assert.strictEqual(yield* fetchWith("127.0.0.1", `http://127.0.0.1:${plain.port}/`), "ok")
        assert.strictEqual(yield* fetchWith("localhost", `http://localhost:${plain.port}/`), "ok")
      })
    )
  })

  describe("connections", () => {
    it.effect("are kept alive and reused", () =>
      Effect.gen(function* () {
        const target = yield* receiver(status(200, "ok"))
        const send = yield* sender()
        for (let round = 0; round < 10; round++) {
          assert.isNull((yield* send(target.url)).failure)
          yield* Effect.sleep("5 millis")
        }
        assert.strictEqual(target.connections(), 1)
      })
    )

    it.effect("to one origin are limited, and the attempts above the limit wait", () =>
      Effect.gen(function* () {
        const target = yield* receiver((response) => setTimeout(() => response.end("ok"), 10))
        const send = yield* sender({ connectionsPerOriginMax: 3 })
        const outcomes = yield* Effect.all(
          Array.from({ length: 30 }, () => send(target.url)),
          { concurrency: "unbounded" }
        )
        assert.isTrue(outcomes.every((outcome) => outcome.failure === null))
        assert.strictEqual(target.received.length, 30)
        assert.isAtMost(target.connections(), 3)
      })
    )

    it.effect(
      "to one origin are limited for each URL, so one that never responds does not affect the others",
      () =>
        Effect.gen(function* () {
          const target = yield* receiver((response, request) => {
            if (request.url !== "/silent") response.end("ok")
          })
          const send = yield* sender({ connectionsPerOriginMax: 5, timeout: "30 seconds" })
          const silent = new URL("/silent", target.url).href
          const stuck = yield* Effect.forEach(Array.from({ length: 20 }), () =>
            Effect.forkChild(send(silent))
          )
          while (target.received.length < 5) yield* Effect.sleep("5 millis")
          const outcomes = yield* Effect.all(
            Array.from({ length: 30 }, (_, n) => send(new URL(`/${n % 3}`, target.url).href)),
            { concurrency: "unbounded" }
          )
          assert.isTrue(outcomes.every((outcome) => outcome.failure === null))
          assert.strictEqual(target.received.filter((it) => it.url === "/silent").length, 5)
          assert.isAtMost(target.connections(), 5 + 3 * 2)
          // An abandoned attempt frees its slot
          for (const fiber of stuck.slice(0, 10)) yield* Fiber.interrupt(fiber)
          while (target.received.filter((it) => it.url === "/silent").length < 10)
            yield* Effect.sleep("5 millis")
          for (const fiber of stuck) yield* Fiber.interrupt(fiber)
          assert.isNull((yield* send(target.url)).failure)
        })
    )

    it.effect("of one user are limited over all origins, and not those of other users", () =>
      Effect.gen(function* () {
        const silent = [
          yield* receiver(() => {}),
          yield* receiver(() => {}),
          yield* receiver(() => {})
        ]
        const healthy = yield* receiver(status(200))
        const send = yield* sender({ attemptsPerUserMax: 3, timeout: "30 seconds" })
        const stuck = yield* Effect.forEach([...silent, ...silent], ({ url }) =>
          Effect.forkChild(send(url))
        )
        const received = () => silent.reduce((sum, one) => sum + one.received.length, 0)
        while (received() < 3) yield* Effect.sleep("5 millis")
        const waiting = yield* Effect.forkChild(send(healthy.url))
        assert.isNull((yield* send(healthy.url, { userId: "other" })).failure)
        assert.strictEqual(received(), 3)
        assert.strictEqual(healthy.received.length, 1)
        // Abandoned attempts free their places, whether they wait or run
        for (const fiber of stuck) yield* Fiber.interrupt(fiber)
        assert.isNull((yield* Fiber.join(waiting)).failure)
        assert.strictEqual(received(), 3)
      })
    )

    it.effect("of one user start no attempt that gets no place within 8 seconds or too late", () =>
      Effect.gen(function* () {
        const open: Array<ServerResponse> = []
        const target = yield* receiver((response) => open.push(response))
        const other = yield* receiver(status(200))
        const send = yield* sender({ attemptsPerUserMax: 1, timeout: "30 seconds" })
        const first = yield* Effect.forkChild(send(target.url))
        yield* Effect.promise(async () => {
          while (open.length === 0) await new Promise((resolve) => setImmediate(resolve))
        })
        const second = yield* Effect.forkChild(send(other.url))
        yield* TestClock.adjust("8 seconds")
        assert.strictEqual((yield* Effect.flip(Fiber.join(second)))._tag, "AttemptNotStarted")
        const third = yield* Effect.forkChild(send(other.url, { startBeforeMillis: 9000 }))
        yield* TestClock.adjust("1001 millis")
        open[0]!.end("ok")
        assert.isNull((yield* Fiber.join(first)).failure)
        assert.strictEqual((yield* Effect.flip(Fiber.join(third)))._tag, "AttemptNotStarted")
        assert.strictEqual(other.received.length, 0)
        assert.isNull((yield* send(other.url)).failure)
      }).pipe(Effect.provide(TestClock.layer()))
    )

    /** Three attempts at an origin with two slots: two have reached the receiver, the third waits. */
    const crowded = Effect.fnUntraced(function* (overrides: Partial<WebhookRequest> = {}) {
      const open: Array<ServerResponse> = []
      const target = yield* receiver((response) => open.push(response))
      const send = yield* sender({ connectionsPerOriginMax: 2, timeout: "30 seconds" })
      const first = [
        yield* Effect.forkChild(send(target.url)),
        yield* Effect.forkChild(send(target.url))
      ]
      const third = yield* Effect.forkChild(send(target.url, overrides))
      const received = (count: number) =>
        Effect.promise(async () => {
          while (target.received.length < count)
            await new Promise((resolve) => setImmediate(resolve))
        })
      yield* received(2)
      /** Responds to the two, so that the third gets a slot. */
      const makeRoom = Effect.gen(function* () {
        for (const response of open) response.end("ok")
        for (const fiber of first) assert.isNull((yield* Fiber.join(fiber)).failure)
      })
      return { makeRoom, received, target, third }
    })

    it.effect("start the 30 seconds of an attempt when it gets a place, not while it waits", () =>
      Effect.gen(function* () {
        const { makeRoom, received, third } = yield* crowded()
        yield* TestClock.adjust("7999 millis")
        yield* makeRoom
        yield* received(3)
        yield* TestClock.adjust("29999 millis")
        assert.isUndefined(third.pollUnsafe())
        yield* TestClock.adjust("1 millis")
        assert.strictEqual((yield* Fiber.join(third)).failure, "timeout")
      }).pipe(Effect.provide(TestClock.layer()))
    )

    it.effect("start no attempt that gets no place within 8 seconds", () =>
      Effect.gen(function* () {
        const { makeRoom, target, third } = yield* crowded()
        yield* TestClock.adjust("7999 millis")
        assert.isUndefined(third.pollUnsafe())
        yield* TestClock.adjust("1 millis")
        assert.strictEqual((yield* Effect.flip(Fiber.join(third)))._tag, "AttemptNotStarted")
        yield* makeRoom
        assert.strictEqual(target.received.length, 2)
      }).pipe(Effect.provide(TestClock.layer()))
    )

    it.effect("start no attempt whose claim is too old when it gets a place", () =>
      Effect.gen(function* () {
        const { makeRoom, target, third } = yield* crowded({ startBeforeMillis: 3000 })
        yield* TestClock.adjust("3001 millis")
        assert.isUndefined(third.pollUnsafe())
        yield* makeRoom
        assert.strictEqual((yield* Effect.flip(Fiber.join(third)))._tag, "AttemptNotStarted")
        assert.strictEqual(target.received.length, 2)
      }).pipe(Effect.provide(TestClock.layer()))
    )

    it.effect("are closed with the layer", () =>
      Effect.gen(function* () {
        const target = yield* receiver(status(200))
        yield* Effect.scoped(Effect.flatMap(sender(), (send) => send(target.url)))
        yield* isClosed(target)
      })
    )
  })
})

describe("WebhookSender.layerMock", () => {
  it.effect(
    "records every request with its time and responds by the script, so all retries take milliseconds",
    () =>
      Effect.gen(function* () {
        const { send } = yield* WebhookSender
        const log = yield* WebhookSenderLog
        const deliver = Effect.fnUntraced(function* () {
          for (let attempt = 1; ; attempt++) {
            const now = yield* Clock.currentTimeMillis
            const outcome = yield* send({
              userId: "user",
              url: "https://example.com/",
              secret,
              deliveryId: "whd_1",
              body,
              timestampSeconds: Math.trunc(now / 1000)
            })
            const endedAt = yield* Clock.currentTimeMillis
            const next = nextAttemptAt(attempt, endedAt)
            if (outcome.failure === null || next._tag === "None") return
            yield* Effect.sleep(next.value - endedAt)
          }
        })
        const fiber = yield* Effect.forkChild(deliver())
        yield* TestClock.adjust("3 hours")
        yield* Fiber.join(fiber)
        const sent = yield* log.sent
        assert.deepStrictEqual(
          sent.map(({ atMillis }) => atMillis / 1000),
          [0, 15, 75, 375, 2175, 5775]
        )
        assert.isTrue(
          sent.every(({ request }) => request.body === body && request.deliveryId === "whd_1")
        )
      }).pipe(Effect.provide(WebhookSender.layerMock(() => Effect.succeed(mockOutcome(500)))))
  )

  it.effect("lets every attempt succeed without a script", () =>
    Effect.gen(function* () {
      const { send } = yield* WebhookSender
      const outcome = yield* send({
        userId: "user",
        url: "https://example.com/",
        secret,
        deliveryId: "whd_1",
        body,
        timestampSeconds: 0
      })
      assert.deepStrictEqual([outcome.status, outcome.failure], [200, null])
    }).pipe(Effect.provide(WebhookSender.layerMock()))
  )
})
