import { Context, DateTime, Effect, Layer, Metric, Option, Schema } from "effect"
import { Base64Url } from "effect/encoding"
import { createHash } from "node:crypto"
import { AppConfig } from "../../config/Config.ts"
import type { InboundCallback } from "../../domain/Callback.ts"
import { TaskId } from "../../domain/Ids.ts"
import { signatureSkewSecondsMax, unsignedCallbackSeconds } from "../../domain/limits/Limits.ts"
import { problem } from "../../domain/Problem.ts"
import type { Problem, StoreUnavailable } from "../../domain/Problem.ts"
import { AccountKeys } from "../../process/accounts/AccountKeys.ts"
import { Drain } from "../../process/Drain.ts"
import { Process } from "../../process/heartbeat/Process.ts"
import { Secrets } from "../../process/secrets/Secrets.ts"
import { WorkNotifier } from "../../process/signals/WorkNotifier.ts"
import type { VendorAccount } from "../../vendors/VendorClient.ts"
import { CallbackKeys } from "./CallbackKeys.ts"
import { CallbackStore } from "./CallbackStore.ts"

/** The task that a callback URL names, and the account to which its job was submitted. */
export interface CallbackTarget {
  readonly taskId: TaskId
  readonly account: VendorAccount
}

/**
 * Vendors' callbacks about jobs. A verified callback that is not a repeat only triggers a poll; its body is not used.
 * ADR 0107.
 */
export class Callbacks extends Context.Service<
  Callbacks,
  {
    /** `PUBLIC_URL` is set. */
    readonly isOn: boolean
    /** `undefined` when the vendor makes no callbacks, or `PUBLIC_URL` is not set. */
    readonly callbackUrl: (target: CallbackTarget) => string | undefined
    /** The task named by a callback URL of this service. `None` for any other URL. */
    readonly taskIn: (url: string) => Effect.Effect<Option.Option<TaskId>>
    /** Fails with 2012 for a token that this service did not issue. Does not need the body. */
    readonly readToken: (token: string) => Effect.Effect<CallbackTarget, Problem>
    /** Fails with 2012 (forged, old, replayed) or 5003; reveals nothing about the task. */
    readonly accept: (
      target: CallbackTarget,
      callback: InboundCallback
    ) => Effect.Effect<void, Problem | StoreUnavailable>
    /** Deletes the records of callbacks that are now too old to be replayed. */
    readonly deleteExpired: Effect.Effect<void, StoreUnavailable>
  }
>()("gateway/tasks/callbacks/Callbacks") {
  static readonly layer = Layer.effect(
    Callbacks,
    Effect.gen(function* () {
      const { publicUrl } = yield* AppConfig
      const drain = yield* Drain
      const notifier = yield* WorkNotifier
      const keys = yield* CallbackKeys
      const secrets = yield* Secrets
      const store = yield* CallbackStore
      const accounts = yield* AccountKeys
      const process = yield* Process

      /** Verifies the signature and returns what it covers. Fails if the signature is wrong, too old or missing. */
      const readSealed = Effect.fnUntraced(function* (
        account: VendorAccount,
        callback: InboundCallback
      ) {
        const seal = account.callbacks?.readSignature(callback)
        if (seal === undefined) return yield* refused
        const age = Math.abs(Math.floor(process.databaseMillis() / 1000) - seal.signedAtSeconds)
        if (age > signatureSkewSecondsMax) return yield* refused
        if (!(yield* keys.isSigned(account, seal))) return yield* refused
        return {
          digest: createHash("sha256").update(seal.message).digest(),
          expiresAt: DateTime.makeUnsafe((seal.signedAtSeconds + recordSeconds) * 1000),
          dueAt: yield* DateTime.now
        }
      })

      const accept = Effect.fnUntraced(function* (
        { account, taskId }: CallbackTarget,
        callback: InboundCallback
      ) {
        const now = yield* DateTime.now
        const isUnsigned = account.callbacks?.keys._tag === "None"
        const proved = isUnsigned ? addressed(taskId, now) : yield* readSealed(account, callback)
        const { accountId } = account
        const accepted = yield* store.accept({ ...proved, taskId, accountId, now })
        if (accepted === "Repeated") {
          // The first callback of this interval made the task due at the end of the interval, which is still to come
          if (isUnsigned) return
          return yield* refused
        }
        // A draining process claims nothing, so it passes the task on
        if (drain.isDraining()) return yield* notifier.offerTask(taskId)
        yield* notifier.notifyDue(accepted === "Due" ? "now" : "after its step")
      })

      const openToken = Effect.fnUntraced(function* (token: string) {
        const bytes = yield* Effect.fromResult(Base64Url.decode(token.slice(0, tokenCharactersMax)))
        const [use, accountId = "", id] = (yield* secrets.decrypt(bytes)).split("\n")
        if (use !== purpose) return yield* refused
        return { taskId: yield* decodeTaskId(id), accountId }
      })
      const readToken = Effect.fnUntraced(function* (token: string) {
        const { accountId, taskId } = yield* openToken(token)
        return { taskId, account: yield* accounts.ownerOf(accountId) }
      })

      return Callbacks.of({
        isOn: Option.isSome(publicUrl),
        callbackUrl: ({ account, taskId }) => {
          if (Option.isNone(publicUrl) || account.callbacks === undefined) return undefined
          const text = [purpose, account.accountId, taskId].join("\n")
          return `${publicUrl.value}/callbacks?token=${Base64Url.encode(secrets.encrypt(text))}`
        },
        taskIn: (url) =>
          openToken(URL.parse(url)?.searchParams.get("token") ?? "").pipe(
            Effect.map(({ taskId }) => taskId),
            Effect.option
          ),
        readToken: (token) =>
          readToken(token).pipe(
            Effect.mapError(() => refused),
            Effect.tapError(() => count("refused"))
          ),
        accept: (target, callback) =>
          accept(target, callback).pipe(
            Effect.tap(() => count("taken")),
            Effect.tapError(() => count("refused"))
          ),
        deleteExpired: Effect.flatMap(DateTime.now, store.deleteExpired)
      })
    })
  )
}

/** Part of every token, so that no other ciphertext of the service is accepted as one. */
const purpose = "callback 1"
const tokenCharactersMax = 1024
const decodeTaskId = Schema.decodeUnknownEffect(TaskId)

/**
 * How long callbacks are remembered. A callback can be replayed while its timestamp is accepted, and the clocks of
 * processes may differ by the same amount.
 */
const recordSeconds = 3 * signatureSkewSecondsMax

/**
 * A callback without a signature: only its secret URL authenticates it. Anyone who learns the URL could send it
 * repeatedly, so all such callbacks of an interval make the task due once, at the end of the interval.
 */
const addressed = (taskId: TaskId, now: DateTime.Utc) => {
  const millis = unsignedCallbackSeconds * 1000
  const interval = Math.floor(DateTime.toEpochMillis(now) / millis)
  const dueAt = DateTime.makeUnsafe((interval + 1) * millis)
  return {
    digest: createHash("sha256").update(`unsigned\n${taskId}\n${interval}`).digest(),
    expiresAt: DateTime.add(dueAt, { seconds: recordSeconds }),
    dueAt
  }
}

/** The same text for every reason, so that a forger learns nothing. */
const refused = problem(2012, "The callback is not genuine, is too old, or was already received")

const callbacksTotal = Metric.counter("gateway_callbacks_total", {
  description: "Callbacks of vendors, by outcome: taken or refused"
})
const count = (outcome: "taken" | "refused") =>
  Metric.update(Metric.withAttributes(callbacksTotal, { outcome }), 1)
