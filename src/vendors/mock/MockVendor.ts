import { Clock, Context, Duration, Effect, Layer, Schema } from "effect"
import { VendorClient } from "../VendorClient.ts"
import type {
  Handle,
  Progress,
  ResultItem,
  SubmitRequest,
  Submitted,
  VendorAccount
} from "../VendorClient.ts"
import { VendorError } from "../VendorError.ts"
import type { VendorErrorClass } from "../VendorError.ts"
import { ScriptRun } from "./MockScript.ts"
import type { MockRefusal, MockScript, MockStep } from "./MockScript.ts"
import { pixel } from "./Pixel.ts"

/** A scripted vendor, for tests of code that is built on the gateway. */
export class MockVendor extends Context.Service<
  MockVendor,
  {
    /** All submits, including refused ones, oldest first. */
    readonly submits: Effect.Effect<ReadonlyArray<SubmitRequest>>
  }
>()("gateway/vendors/MockVendor") {
  /** The job runs for `after` and produces these media. */
  static readonly result = (
    after: Duration.Input = "2 seconds",
    items: ReadonlyArray<ResultItem> = [onePixel]
  ): MockStep => ({ _tag: "Result", after, items })

  /** The job is accepted and fails after this time. */
  static readonly jobFails = (
    kind: VendorErrorClass,
    message: string,
    after: Duration.Input = "2 seconds"
  ): MockStep => ({
    _tag: "JobFails",
    after,
    error: new VendorError({ class: kind, message })
  })

  /** The submit is refused, or its outcome stays unknown (`AMBIGUOUS`), after this time. */
  static readonly refused = (
    kind: VendorErrorClass,
    message: string,
    after: Duration.Input = 0
  ): MockRefusal => ({
    _tag: "Refused",
    after,
    error: new VendorError({ class: kind, message })
  })

  /** Serves all models of all vendors. `answerLine` computes the results of batches. */
  static readonly layer = (
    script: MockScript,
    answerLine?: VendorAccount["answerLine"]
  ): Layer.Layer<MockVendor | VendorClient> =>
    Layer.effectContext(
      Effect.sync(() => {
        const submits: Array<SubmitRequest> = []
        const account = { ...accountOf(script, submits), ...(answerLine && { answerLine }) }
        return Context.make(MockVendor, { submits: Effect.sync(() => [...submits]) }).pipe(
          Context.add(VendorClient, {
            choose: () => Effect.succeed(account),
            owner: () => Effect.succeed(account),
            isServed: () => true,
            accountsFor: () => [account],
            isSandbox: () => false
          })
        )
      })
    )
}

/** Its results are counted when `answerLine` has computed them. */
const endedBatch = { items: [], batch: { status: "completed", completed: 0, failed: 0 } } as const

const onePixel: ResultItem = { _tag: "Bytes", mime: "image/png", bytes: new Uint8Array(pixel) }

const Job = Schema.Struct({
  model: Schema.String,
  step: Schema.Int,
  endsAtMillis: Schema.Finite,
  isBatch: Schema.Boolean
})
const decodeJob = Schema.decodeUnknownEffect(Job)

const accountOf = (script: MockScript, submits: Array<SubmitRequest>): VendorAccount => {
  const run = new ScriptRun(script)
  const stepAt = (model: string, index: number): MockStep =>
    run.stepAt(model, index) ?? MockVendor.result()
  return {
    accountId: "mock",
    submit: Effect.fn("MockVendor.submit")(function* (
      request: SubmitRequest
    ): Effect.fn.Return<Submitted, VendorError> {
      const { model } = request
      const index = run.take(model)
      submits.push(request)
      const step = stepAt(model, index)
      const after = Duration.fromInputUnsafe(step.after)
      if (step._tag === "Refused") {
        // Callers make submits uninterruptible. This one buys nothing, and the test may end before it does
        yield* Effect.interruptible(Effect.sleep(after))
        return yield* step.error
      }
      const endsAtMillis = (yield* Clock.currentTimeMillis) + Duration.toMillis(after)
      const handle = { model, step: index, endsAtMillis, isBatch: request.result === "batches" }
      return { _tag: "Accepted", handle, pollAfter: after }
    }),
    poll: Effect.fnUntraced(function* (handle: Handle): Effect.fn.Return<Progress, VendorError> {
      const { endsAtMillis, isBatch, model, step: index } = yield* Effect.orDie(decodeJob(handle))
      const left = endsAtMillis - (yield* Clock.currentTimeMillis)
      if (left > 0) return { _tag: "Running", pollAfter: Duration.millis(left) }
      const step = stepAt(model, index)
      if (step._tag !== "Result") return yield* step.error
      return { _tag: "Done", result: isBatch ? endedBatch : { items: step.items } }
    }),
    cancel: () => Effect.succeed("Canceled")
  }
}
