import { Effect, Option } from "effect"
import type { TaskModel } from "../../catalog/CatalogEntry.ts"
import { retryStore } from "../../db/StoreFailures.ts"
import type { TaskRow } from "../../db/TaskRow.ts"
import { modelAt } from "../../domain/task/Candidate.ts"
import type { CatalogVersions } from "../../process/catalogs/CatalogVersions.ts"
import type { SubmitMedium, SubmitRequest } from "../../vendors/VendorClient.ts"
import { VendorError } from "../../vendors/VendorError.ts"
import type { PolledTask } from "../running/OwnedTask.ts"

/**
 * The task's current model, as the catalog defined it when the task was accepted, even if the catalog has been reloaded
 * since. Without the entry nothing is submitted, and a submitted job waits. ADR 0255
 */
export const entryWith =
  (versions: CatalogVersions["Service"]) =>
  (task: PolledTask): Effect.Effect<TaskModel, VendorError> =>
    Effect.flatMap(retryStore(versions.withId(task.catalogId)), (catalog) => {
      const { model, vendor } = modelAt(task)
      const entry = Option.flatMap(catalog, ({ taskModel }) =>
        taskModel(vendor, model, task.action)
      )
      return Effect.mapError(Effect.fromOption(entry), () => {
        const message = Option.isNone(catalog)
          ? `the catalog ${task.catalogId} cannot be read`
          : `${vendor}/${model} left the catalog`
        return new VendorError({ class: "OPERATOR", message })
      })
    })

/** The request of a task in the form that adapters receive. */
export const requestOf = (
  task: TaskRow,
  entry: TaskModel,
  media: ReadonlyArray<SubmitMedium>,
  more: Pick<SubmitRequest, "file" | "prepared"> = {}
): SubmitRequest => ({
  taskId: task.id,
  model: entry.label,
  upstreamModel: entry.upstreamModel,
  body: task.body,
  media,
  result: entry.result,
  ...(entry.input === undefined ? {} : { input: entry.input }),
  ...(entry.output === undefined ? {} : { output: entry.output }),
  ...(entry.described === undefined ? {} : { described: entry.described }),
  ...more
})
