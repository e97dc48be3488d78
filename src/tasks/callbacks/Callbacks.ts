import { Clock, Context, DateTime, Effect, Layer, Metric, Option, Schema } from "effect"
import { Base64Url } from "effect/encoding"
import { createHash } from "node:crypto"
import { AppConfig } from "../../config/Config.ts"
import type { InboundCallback } from "../../domain/Callback.ts"
import { TaskId } from "../../domain/Ids.ts"
import { signatureSkewSecondsMax } from "../../domain/Limits.ts"
import { problem } from "../../domain/Problem.ts"
import type { Problem, StoreUnavailable } from "../../domain/Problem.ts"
import { Secrets } from "../../process/Secrets.ts"
import { VendorClient } from "../../vendors/VendorClient.ts"
import type { VendorAccount } from "../../vendors/VendorClient.ts"
import { CallbackKeys } from "./CallbackKeys.ts"
import { CallbackSignals } from "./CallbackSignals.ts"
import { CallbackStore } from "./CallbackStore.ts"

/** Whom an address names: the task, and the account that its job was bought from. */
export interface Addressee {
  readonly taskId: TaskId
  readonly account: VendorAccount
}

/**
 * Calls of vendors about jobs: verified, never repeated, and then a reason to poll, no more. What they
 * say is not read. ADR 0107.
 */
export class Callbacks extends Context.Service<
  Callbacks,
  {
    /** `PUBLIC_URL` is set. */
    readonly isOn: boolean
    /** Where a vendor is to call about a task; absent when it does not call, or cannot reach us. */
    readonly addressOf: (addressee: Addressee) => string | undefined
    /** Fails with 2012 for an address that was not made here: told before the body is read. */
    readonly addressee: (token: string) => Effect.Effect<Addressee, Problem>
    /** Fails with 2012 (forged, old, replayed) or 5003; says nothing of the task itself. */
    readonly take: (
      addressee: Addressee,
      callback: InboundCallback
    ) => Effect.Effect<void, Problem | StoreUnavailable>
    /** Forgets callbacks that are too old to be replayed. */
    readonly forget: Effect.Effect<void, StoreUnavailable>
  }
>()("gateway/tasks/callbacks/Callbacks") {
  static readonly layer = Layer.effect(
    Callbacks,
    Effect.gen(function* () {
      const { publicUrl } = yield* AppConfig
      const bells = yield* CallbackSignals
      const keys = yield* CallbackKeys
      const secrets = yield* Secrets
      const store = yield* CallbackStore
      const vendors = yield* VendorClient

      const take = Effect.fnUntraced(function* (
        { account, taskId }: Addressee,
        callback: InboundCallback
      ) {
        const seal = account.callbacks?.readSignature(callback)
        if (seal === undefined) return yield* refused
        const now = yield* Clock.currentTimeMillis
        const age = Math.abs(Math.floor(now / 1000) - seal.signedAtSeconds)
        if (age > signatureSkewSecondsMax) return yield* refused
        if (!(yield* keys.isSigned(account, seal))) return yield* refused
        const isNew = yield* store.take({
          digest: createHash("sha256").update(seal.message).digest(),
          expiresAt: DateTime.makeUnsafe((seal.signedAtSeconds + keptSeconds) * 1000),
          taskId,
          isForOwner: !bells.isHere(taskId)
        })
        if (!isNew) return yield* refused
        yield* bells.ring(taskId)
      })

      const addressee = Effect.fnUntraced(function* (token: string) {
        const bytes = yield* Effect.fromResult(Base64Url.decode(token))
        const [use, accountId = "", id] = (yield* secrets.decrypt(bytes)).split("\n")
        if (use !== purpose) return yield* refused
        const taskId = yield* decodeTaskId(id)
        return { taskId, account: yield* vendors.owner(accountId) }
      })

      return Callbacks.of({
        isOn: Option.isSome(publicUrl),
        addressOf: ({ account, taskId }) => {
          if (Option.isNone(publicUrl) || account.callbacks === undefined) return undefined
          const text = [purpose, account.accountId, taskId].join("\n")
          return `${publicUrl.value}/callbacks?token=${Base64Url.encode(secrets.encrypt(text))}`
        },
        addressee: (token) =>
          addressee(token.slice(0, tokenCharactersMax)).pipe(
            Effect.mapError(() => refused),
            Effect.tapError(() => count("refused"))
          ),
        take: (to, callback) =>
          take(to, callback).pipe(
            Effect.tap(() => count("taken")),
            Effect.tapError(() => count("refused"))
          ),
        forget: Effect.flatMap(DateTime.now, store.forgetExpired)
      })
    })
  )
}

/** Stands in every address, so that no other ciphertext of the service passes for one. */
const purpose = "callback 1"
const tokenCharactersMax = 1024
const decodeTaskId = Schema.decodeUnknownEffect(TaskId)

/** A callback can be replayed while its timestamp is taken; clocks of processes may differ by as much. */
const keptSeconds = 3 * signatureSkewSecondsMax

/** The same words for whatever is wrong: whoever tries finds out nothing. */
const refused = problem(2012, "The callback is not genuine, is too old, or was taken before")

const callbacksTotal = Metric.counter("gateway_callbacks_total", {
  description: "Calls of vendors about their jobs, by what became of them: taken or refused"
})
const count = (outcome: "taken" | "refused") =>
  Metric.update(Metric.withAttributes(callbacksTotal, { outcome }), 1)
