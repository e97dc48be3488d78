import { Effect, Layer } from "effect"
import type { Context } from "effect"
import { AppConfig } from "../../src/config/Config.ts"
import type { Database } from "../../src/db/Database.ts"
import { Process } from "../../src/process/heartbeat/Process.ts"
import { ProcessStore } from "../../src/process/heartbeat/ProcessStore.ts"
import { Secrets } from "../../src/process/secrets/Secrets.ts"
import * as Hints from "../../src/process/signals/Hints.ts"
import { adminToken } from "./gateway.ts"

/** Another process that shares this store. It runs until the scope closes. */
export const startProcess = (store: Context.Context<Database>, MASTER_KEY: string) =>
  Layer.build(Process.layer).pipe(
    Effect.provide(
      Layer.mergeAll(ProcessStore.layer, Hints.layer, Secrets.layer).pipe(
        Layer.provideMerge(Layer.succeedContext(store)),
        Layer.provideMerge(
          AppConfig.layerOf({
            MASTER_KEY,
            ADMIN_TOKEN: adminToken,
            DATABASE_URL: "postgres://shared.example/gateway"
          })
        )
      ),
      { local: true }
    )
  )
