import { Context, Duration, Effect, Layer, Schedule } from "effect"
import type { Credits } from "../domain/Credits.ts"
import { chargeHeld, requestedOf } from "../models/Price.ts"
import type { TaskRow } from "../store/TaskStore.ts"
import { VendorError } from "../vendors/VendorClient.ts"
import type { ResultItem, VendorResult } from "../vendors/VendorClient.ts"
import { Artifacts } from "./Artifacts.ts"

/** What a completed task shows and costs. */
export interface KeptOutput {
  readonly urls: ReadonlyArray<string>
  readonly captured: Credits
}

/** Turns a vendor's result into URLs that last, and into the price of what exists. */
export class TaskOutput extends Context.Service<
  TaskOutput,
  {
    /** Fails when the vendor's success holds nothing (vendors.md, Poll mapping). */
    readonly keep: (task: TaskRow, result: VendorResult) => Effect.Effect<KeptOutput, VendorError>
  }
>()("gateway/services/TaskOutput") {
  static readonly layer = Layer.effect(
    TaskOutput,
    Effect.gen(function* () {
      const artifacts = yield* Artifacts

      const urlOf = (task: TaskRow, item: ResultItem): Effect.Effect<string> =>
        item._tag === "Url"
          ? Effect.succeed(item.url)
          : artifacts
              .put({
                userId: task.userId,
                taskId: task.id,
                role: "output",
                mime: item.mime,
                bytes: item.bytes
              })
              .pipe(
                Effect.tapError((error) => Effect.logWarning("An artifact was not kept", error)),
                Effect.retry(Schedule.spaced(Duration.seconds(5))),
                Effect.orDie,
                Effect.map(artifacts.urlOf)
              )

      return TaskOutput.of({
        keep: Effect.fn("TaskOutput.keep")(function* (task, { items }) {
          if (items.length === 0) {
            return yield* new VendorError({
              class: "FAILED",
              message: "The upstream reported success without any result"
            })
          }
          const urls = yield* Effect.forEach(items, (item) => urlOf(task, item))
          return { urls, captured: chargeHeld(task.price, requestedOf(task.body), items.length) }
        })
      })
    })
  )
}
