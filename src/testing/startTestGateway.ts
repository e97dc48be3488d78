import { Effect, Layer, ManagedRuntime } from "effect"
import type { Duration } from "effect"
import { TestClock } from "effect/testing"
import type { EventType } from "../domain/Event.ts"
import { MockVendor } from "../vendors/mock/MockVendor.ts"
import type { SubmitRequest } from "../vendors/VendorClient.ts"
import type { Absence, Failure } from "./Failures.ts"
import { layerTest } from "./layerTest.ts"
import type { TestOptions } from "./layerTest.ts"
import { TestGateway } from "./TestGateway.ts"
import type { QuietOptions } from "./TestGateway.ts"
import type { ListenOptions, ReceivedOptions, ReceivedWebhook } from "./TestWebhooks.ts"

/** `TestGateway` with promises, for tests without Effect. Each method equals the one with the same name there. */
export interface StartedTestGateway extends AsyncDisposable {
  readonly key: string
  readonly adminToken: string
  readonly baseUrl: string
  /** For any client that takes a `fetch`. */
  readonly fetch: typeof globalThis.fetch
  readonly now: () => number
  readonly advance: (duration: Duration.Input) => Promise<void>
  readonly runUntilQuiet: (options?: QuietOptions) => Promise<void>
  readonly whileTimePasses: <A>(work: () => Promise<A>) => Promise<A>
  readonly webhooks: {
    readonly listen: (
      options?: ListenOptions
    ) => Promise<{ readonly id: string; readonly url: string; readonly secret: string }>
    readonly received: (type: EventType, options?: ReceivedOptions) => Promise<ReceivedWebhook>
    readonly all: () => Promise<ReadonlyArray<ReceivedWebhook>>
  }
  readonly failNext: (failure: Failure) => Promise<void>
  readonly setAway: (what: Absence, duration: Duration.Input) => Promise<void>
  readonly restart: () => Promise<void>
  readonly snapshot: () => Promise<string>
  /** The submits that the scripted vendor received, oldest first. */
  readonly submits: () => Promise<ReadonlyArray<SubmitRequest>>
  /** Stops the gateway and interrupts running work. */
  readonly close: () => Promise<void>
}

/**
 * Starts a gateway in this process with its own clock, which stands still at 1 January 1970 until the test advances it.
 * docs/developing.md#test-layers
 */
export const startTestGateway = async (options: TestOptions = {}): Promise<StartedTestGateway> => {
  const runtime = ManagedRuntime.make(
    Layer.provideMerge(layerTest(options), TestClock.layer({ warningDelay: "1 day" }))
  )
  const run = <A>(work: Effect.Effect<A, never, TestGateway | MockVendor>) =>
    runtime.runPromise(work)
  const [gateway, vendor] = await run(Effect.all([TestGateway, MockVendor]))
  const { webhooks } = gateway
  const close = () => runtime.dispose()
  return {
    key: gateway.key,
    adminToken: gateway.adminToken,
    baseUrl: gateway.baseUrl,
    fetch: async (input, init) => {
      const request = new Request(
        typeof input === "string" ? new URL(input, gateway.baseUrl) : input,
        init
      )
      return run(gateway.send(request))
    },
    now: () => Effect.runSync(gateway.now),
    advance: (duration) => run(gateway.advance(duration)),
    runUntilQuiet: (quiet) => run(gateway.runUntilQuiet(quiet)),
    whileTimePasses: (work) => run(gateway.whileTimePasses(Effect.promise(work))),
    webhooks: {
      listen: (listen) => run(webhooks.listen(listen)),
      received: (type, received) => run(webhooks.received(type, received)),
      all: () => run(webhooks.all)
    },
    failNext: (failure) => run(gateway.failNext(failure)),
    setAway: (what, duration) => run(gateway.setAway(what, duration)),
    restart: () => run(gateway.restart),
    snapshot: () => run(gateway.snapshot),
    submits: () => run(vendor.submits),
    close,
    [Symbol.asyncDispose]: close
  }
}
