import { assert, it } from "@effect/vitest"
import { Clock, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import type { RequestListener } from "node:http"
import { join } from "node:path"
import { describe } from "vitest"
import type { Finding } from "../../../src/cli/doctor/Finding.ts"
import { runCommand, withEnvironment } from "../../support/commandLine.ts"
import { fakeBucket } from "../../support/fakeBucket.ts"
import { localServer } from "../../support/localServer.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import { until } from "../../support/until.ts"

/** docs/cli.md#doctor: the requests of `gateway doctor` over the network, even without a response */

const folder = Effect.sync(() => temporaryFolder("doctor"))

const secret = "the-secret-of-the-bucket"

/** The output of `gateway doctor` for the bucket at this address. */
const doctorOf = Effect.fnUntraced(function* (endpoint: string) {
  yield* withEnvironment({
    DATA_DIR: join(yield* folder, "data"),
    BASE_URL: "http://localhost:8080",
    ARTIFACT_STORE: "s3://media/some/prefix",
    AWS_ACCESS_KEY_ID: "an-id",
    AWS_SECRET_ACCESS_KEY: secret,
    AWS_ENDPOINT_URL_S3: endpoint
  })
  const ran = yield* runCommand(["doctor", "--json"], { GATEWAY_URL: "http://127.0.0.1:9" })
  assert.notInclude(ran.out + ran.error, secret)
  const findings: ReadonlyArray<Finding> = JSON.parse(ran.out).findings
  const found = findings.find(({ check }) => check === "media")
  return { code: ran.code, status: found?.status, detail: found?.detail, remedy: found?.remedy }
})

describe("doctor", () => {
  it.effect("skips a service that has not responded for 10 seconds", () =>
    Effect.gen(function* () {
      const asked: Array<string> = []
      const url = yield* localServer(({ url: path = "" }) => asked.push(path))
      yield* withEnvironment({ DATA_DIR: join(yield* folder, "data") })
      const asking = yield* Effect.forkChild(runCommand(["doctor", "--json"], { GATEWAY_URL: url }))
      yield* Effect.promise(() => until(async () => asked[0]))
      yield* TestClock.adjust("10 seconds")
      const { out } = yield* Fiber.join(asking)
      const findings: ReadonlyArray<Finding> = JSON.parse(out).findings
      const found = findings.find(({ check }) => check === "service")
      assert.strictEqual(found?.status, "skipped")
      assert.include(found?.detail, url)
      assert.deepStrictEqual(asked, ["/healthz"])
    }).pipe(Effect.scoped)
  )

  it.effect("tries a service that does not respond to a key three times for 10 seconds", () =>
    Effect.gen(function* () {
      const asked: Array<string> = []
      const url = yield* localServer(({ url: path = "" }, response) => {
        if (path.endsWith("z")) response.end()
        else asked.push(path)
      })
      yield* withEnvironment({ DATA_DIR: join(yield* folder, "data") })
      const asking = yield* Effect.forkChild(
        runCommand(["doctor", "--json"], { GATEWAY_URL: url, GATEWAY_API_KEY: "sk-x" })
      )
      const began = yield* Clock.currentTimeMillis
      const passing = Effect.forever(
        Effect.andThen(
          TestClock.adjust("1 second"),
          Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
        )
      )
      // The clock stands still until the first request
      const first = Effect.promise(() => until(async () => asked[0]))
      const { out } = yield* Effect.raceFirst(Fiber.join(asking), Effect.andThen(first, passing))
      const findings: ReadonlyArray<Finding> = JSON.parse(out).findings
      const found = findings.find(({ detail }) => detail.startsWith("GATEWAY_API_KEY"))
      assert.include(found?.detail, "(no response within 10000 ms)")
      // Including the waits between the attempts
      assert.isBelow((yield* Clock.currentTimeMillis) - began, 40_000)
    }).pipe(Effect.scoped)
  )
})

describe("doctor with a bucket", () => {
  it.live("leaves a working bucket as it was", () =>
    Effect.gen(function* () {
      const bucket = yield* Effect.acquireRelease(Effect.promise(fakeBucket), ({ close }) =>
        Effect.sync(close)
      )
      bucket.objects.set("some/prefix/kept", Buffer.from("kept"))
      // A temporary failure is not a finding
      bucket.failures.push("PUT")
      const { code, detail, remedy, status } = yield* doctorOf(bucket.url)
      assert.deepStrictEqual([code, status, remedy], [0, "ok", null])
      assert.include(detail, "media")
      assert.deepStrictEqual([...bucket.objects.keys()], ["some/prefix/kept"])
    }).pipe(Effect.scoped)
  )

  it.live("reports a bucket that fails as broken, with a remedy", () =>
    Effect.gen(function* () {
      const error = (code: string) => `<Error><Code>${code}</Code></Error>`
      const refusing =
        (verb: string, status: number, code: string): RequestListener =>
        (request, response) => {
          request.resume()
          if (request.method === verb) return void response.writeHead(status).end(error(code))
          if (request.method === "GET") return void response.writeHead(404).end(error("NoSuchKey"))
          response.writeHead(200).end()
        }
      for (const [handler, detail, remedy] of [
        [refusing("GET", 404, "NoSuchBucket"), /does not exist/u, /create it/u],
        [refusing("GET", 403, "InvalidAccessKeyId"), /answered 403/u, /AWS_ACCESS_KEY_ID/u],
        [
          refusing("PUT", 403, "AccessDenied"),
          /cannot be written: .*403/u,
          /permissions to .*write/u
        ],
        [refusing("DELETE", 403, "AccessDenied"), /\.doctor-.*403/u, /permissions to .*delete/u]
      ] as const) {
        const found = yield* Effect.scoped(Effect.flatMap(localServer(handler), doctorOf))
        assert.deepStrictEqual([found.code, found.status], [1, "broken"])
        assert.match(found.detail ?? "", detail)
        assert.match(found.remedy ?? "", remedy)
      }
      const away = yield* Effect.scoped(doctorOf("http://127.0.0.1:9"))
      assert.strictEqual(away.status, "broken")
      assert.match(away.remedy ?? "", /AWS_ENDPOINT_URL/u)
    }).pipe(Effect.scoped)
  )

  it.effect("reports a bucket that has not responded for 15 seconds as broken", () =>
    Effect.gen(function* () {
      let requests = 0
      const url = yield* localServer(() => {
        requests += 1
      })
      const asking = yield* Effect.forkChild(doctorOf(url))
      yield* Effect.promise(() => until(() => requests > 0))
      yield* TestClock.adjust("15 seconds")
      const { detail, status } = yield* Fiber.join(asking)
      assert.strictEqual(status, "broken")
      assert.match(detail ?? "", /did not respond within 15s/u)
    }).pipe(Effect.scoped)
  )
})
