import { Console, Effect, Layer } from "effect"
import { AppConfig } from "../../config/Config.ts"
import { requireGateway } from "../../db/StoreTools.ts"
import { ownerDeadSeconds } from "../../domain/limits/Limits.ts"
import * as Gateway from "../../Gateway.ts"
import { MasterKeyRotation } from "../../process/secrets/MasterKeyRotation.ts"
import { Secrets } from "../../process/secrets/Secrets.ts"
import { failed } from "../terminal/Fault.ts"

/**
 * Refuses to rotate while such processes run: they could not read rewritten values, or would write values under the old
 * key.
 */
const refuseStragglers = Effect.gen(function* () {
  const behind = yield* (yield* MasterKeyRotation).stragglers
  if (behind.length === 0) return
  return yield* failed(
    `MASTER_KEY: these running processes do not encrypt under its first key: ${behind.join(", ")}; restart them with the value of this command, and run it again (a killed process counts for ${ownerDeadSeconds} seconds)`
  )
})

/** Rotates the key in this scope's store and prints progress to stderr. */
export const rotateStore = Effect.gen(function* () {
  yield* refuseStragglers
  const { rotate } = yield* MasterKeyRotation
  const { rewritten, unreadable } = yield* rotate((values) =>
    Console.error(`Encrypted ${values} values under the first key`)
  )
  for (const value of unreadable) yield* Console.error(`None of the keys can read ${value}`)
  if (unreadable.length > 0) {
    return yield* failed(
      `MASTER_KEY: ${unreadable.length} values cannot be read with any of its keys; add the key that encrypted them, and run the command again`
    )
  }
  // A process may have started in the meantime
  yield* refuseStragglers
  return { rewritten }
})

/**
 * `gateway rotate-master-key`: reads the service's variables and works directly on its store. An embedded store can be
 * opened by one process only, so the service must be stopped first. docs/operating.md#rotating-master_key
 */
export const rotateMasterKey = requireGateway("Set it to the value that the service has").pipe(
  Effect.andThen(
    Effect.provide(
      Effect.scoped(rotateStore),
      MasterKeyRotation.layer.pipe(
        Layer.provide(Secrets.layer),
        Layer.provide(Gateway.database),
        Layer.provide(Gateway.platform)
      )
    )
  ),
  Effect.provide(AppConfig.layer)
)
