import { Context, DateTime, Effect, Exit, FileSystem, Layer } from "effect"
import type { PgliteEngine } from "../db/PgliteStream.ts"
import type { AttemptOutcome } from "../domain/Webhook.ts"
import * as Gateway from "../Gateway.ts"
import { simulatedLine } from "../sandbox/SimulatedBatch.ts"
import type { MockScript } from "../vendors/mock/MockScript.ts"
import { MockVendor } from "../vendors/mock/MockVendor.ts"
import { VendorClient } from "../vendors/VendorClient.ts"
import { deliveryHeaders } from "../webhooks/Signature.ts"
import { mockOutcome, WebhookSender, WebhookSenderLog } from "../webhooks/WebhookSender.ts"
import type { WebhookRequest } from "../webhooks/WebhookSender.ts"
import { Failures } from "./Failures.ts"
import { embeddedTemplate, startedStore } from "./StoreTemplates.ts"
import { makeTestGateway, TestGateway } from "./TestGateway.ts"
import { makeProcesses } from "./TestProcesses.ts"
import { makeTestTime } from "./TestTime.ts"
import type { TestTime } from "./TestTime.ts"
import { returnStore, takeStore } from "./UsedStores.ts"

/** A receiver of webhooks, such as a route handler of your program. */
export type Receiver = (request: Request) => Response | Promise<Response>

export interface TestOptions {
  /** The outcome of each submit, for all models or by model label. Default: one image. */
  readonly vendor?: MockScript
  /**
   * Receives all webhooks. They are signed like those of the service, with the machine's clock, because receivers
   * compare the time with it. If it throws, the response is a 500.
   */
  readonly receiver?: Receiver
  /** The outcome of each webhook attempt if there is no receiver. Default: an immediate 200. */
  readonly webhook?: (request: WebhookRequest) => Effect.Effect<AttemptOutcome>
  /** docs/reference/configuration.md#variables */
  readonly env?: Readonly<Record<string, string>>
}

const adminToken = "operator-token-of-the-tests"

/**
 * A whole gateway inside a test process: a scripted vendor, recorded webhooks, and an embedded in-memory Postgres.
 * Every wait uses the fiber's clock, so that a test clock can advance by hours. docs/developing.md#test-layers
 */
export const layerTest = (
  options: TestOptions = {}
): Layer.Layer<TestGateway | MockVendor | WebhookSenderLog> =>
  Layer.effectContext(
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const dataDir = yield* files.makeTempDirectoryScoped()
      const env = {
        DATA_DIR: dataDir,
        BASE_URL: "http://gateway.test",
        ADMIN_TOKEN: adminToken,
        // A test clock stands still, so rate limits would not refill
        MANAGE_RATE_LIMIT_PER_MINUTE: "0",
        ...options.env
      }
      const time = yield* makeTestTime
      const failures = new Failures(time.now)
      yield* Effect.addFinalizer((exit) =>
        // A failed test already explains itself
        Exit.isFailure(exit) || failures.pending.length === 0
          ? Effect.void
          : Effect.die(
              new Error(`Failures requested but not reached: ${failures.pending.join(", ")}`)
            )
      )
      const mocks = yield* Layer.build(
        Layer.merge(
          WebhookSender.layerMock(scriptOf(options, time, env)),
          MockVendor.layer(options.vendor ?? [MockVendor.result()], simulatedLine)
        )
      )
      const processes = yield* makeProcesses({
        engine: yield* makeEngine(time),
        env,
        vendor: Context.get(mocks, VendorClient),
        sender: Context.get(mocks, WebhookSender),
        failures,
        time
      })
      const log = Context.get(mocks, WebhookSenderLog)
      const gateway = yield* makeTestGateway({
        processes,
        time,
        failures,
        log,
        adminToken: env.ADMIN_TOKEN,
        baseUrl: env.BASE_URL
      })
      return Context.make(TestGateway, gateway).pipe(
        Context.add(MockVendor, Context.get(mocks, MockVendor)),
        Context.add(WebhookSenderLog, log)
      )
    })
  ).pipe(Layer.provide(Gateway.platform), Layer.orDie)

/** An empty store as an earlier start left it. It is emptied again for the next gateway of this process. */
const makeEngine = Effect.fnUntraced(function* (time: TestTime) {
  const { fill, hash } = startedStore(DateTime.makeUnsafe(time.now()))
  const template = yield* embeddedTemplate(hash, fill)
  const { pglite } = yield* Effect.acquireRelease(
    Effect.promise(() => takeStore(hash, template)),
    (store) => Effect.promise(() => returnStore(store))
  )
  return {
    isInTransaction: () => pglite.isInTransaction(),
    execProtocolRawStream: (batch, options) => {
      time.noted()
      return pglite.execProtocolRawStream(batch, options)
    }
  } satisfies PgliteEngine
})

const scriptOf = (
  { receiver, webhook }: TestOptions,
  time: TestTime,
  env: Readonly<Record<string, string>>
) => {
  if (receiver === undefined) return webhook
  const serviceName = env["SERVICE_NAME"] ?? "Service"
  return (request: WebhookRequest) =>
    time.during(
      Effect.promise(async () => {
        const timestampSeconds = Math.floor(Date.now() / 1000)
        const { previousSecret, secret, url } = request
        const signed = { ...request, timestampSeconds }
        const headers = deliveryHeaders(serviceName, signed, secret, previousSecret)
        const body = new Uint8Array(request.body)
        try {
          const response = await receiver(new Request(url, { method: "POST", headers, body }))
          return { ...mockOutcome(response.status), answer: await response.text() }
        } catch (cause) {
          return { ...mockOutcome(500), answer: String(cause) }
        }
      })
    )
}
