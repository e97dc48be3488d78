import { Console, Data, Effect, Layer } from "effect"
import { AppConfig } from "../../config/Config.ts"
import { ownerDeadSeconds } from "../../domain/Limits.ts"
import * as Gateway from "../../Gateway.ts"
import { MasterKeyRotation } from "../../process/MasterKeyRotation.ts"
import { Secrets } from "../../process/Secrets.ts"

/** Values that none of the keys opens; each was printed. */
export class ValuesUnreadable extends Data.TaggedError("ValuesUnreadable")<{
  readonly message: string
}> {}

/** Processes run that encrypt under another key. */
export class ProcessesBehind extends Data.TaggedError("ProcessesBehind")<{
  readonly message: string
}> {}

/** A process that is behind cannot read what is rewritten, or writes what nobody rewrites. */
const refuseStragglers = Effect.gen(function* () {
  const behind = yield* (yield* MasterKeyRotation).stragglers
  if (behind.length === 0) return
  return yield* new ProcessesBehind({
    message: `MASTER_KEY: ${behind.length} running processes do not encrypt under its first key: ${behind.join(", ")}; start them with the value that this command has, and run it again (one that was killed counts for ${ownerDeadSeconds} seconds)`
  })
})

/** The rotation on the store of this scope, with its progress on stderr. */
export const rotateStore = Effect.gen(function* () {
  yield* refuseStragglers
  const { rotate } = yield* MasterKeyRotation
  const { rewritten, unreadable } = yield* rotate((values) =>
    Console.error(`Encrypted ${values} values under the first key`)
  )
  for (const value of unreadable) yield* Console.error(`${value} can be read with none of the keys`)
  if (unreadable.length > 0) {
    return yield* new ValuesUnreadable({
      message: `MASTER_KEY: ${unreadable.length} values can be read with none of its keys; add the key that they were made with, and run the command again`
    })
  }
  // One may have been started meanwhile
  yield* refuseStragglers
  return { rewritten }
})

/**
 * `gateway rotate-master-key`: reads the variables of the service, and works on its store. An embedded
 * store is opened by one process, so that the service has to be stopped.
 * docs/operating.md#rotating-master_key
 */
export const rotateMasterKey = Effect.scoped(rotateStore).pipe(
  Effect.provide(
    MasterKeyRotation.layer.pipe(
      Layer.provide(Secrets.layer),
      Layer.provide(Gateway.database),
      Layer.provide(AppConfig.layer),
      Layer.provide(Gateway.platform)
    )
  )
)
