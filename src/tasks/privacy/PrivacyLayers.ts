import { Layer } from "effect"
import { TaskRetention } from "./TaskRetention.ts"
import { TaskRetentionStore } from "./TaskRetentionStore.ts"
import { UserErasure } from "./UserErasure.ts"
import { UserErasureStore } from "./UserErasureStore.ts"
import { UserExport } from "./UserExport.ts"
import { UserExportStore } from "./UserExportStore.ts"

/** The layers that implement docs/reference/privacy.md. */
export const stores = Layer.mergeAll(
  TaskRetentionStore.layer,
  UserErasureStore.layer,
  UserExportStore.layer
)
export const services = Layer.mergeAll(TaskRetention.layer, UserErasure.layer, UserExport.layer)
