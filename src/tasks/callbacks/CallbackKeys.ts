import { Clock, Context, Duration, Effect, Layer, Semaphore } from "effect"
import {
  callbackKeysBytesMax,
  callbackKeysHours,
  callbackKeysRetrySeconds,
  callbackSeconds
} from "../../domain/limits/Limits.ts"
import { problem } from "../../domain/Problem.ts"
import type { Problem } from "../../domain/Problem.ts"
import type { ShareExhausted } from "../../domain/shares/FairShares.ts"
import { MediaFetch } from "../../egress/MediaFetch.ts"
import type { MediaFetchFailed } from "../../egress/MediaFetch.ts"
import type { CallbackSignature } from "../../vendors/CallbackScheme.ts"
import type { VendorAccount } from "../../vendors/VendorClient.ts"
import type { VendorError } from "../../vendors/VendorError.ts"

/**
 * Verifies the signatures of vendors' callbacks. Keys are cached for a day. If no key matches, the vendor may have
 * rotated its keys, so they are fetched again, at most once a minute. ADR 0107.
 */
export class CallbackKeys extends Context.Service<
  CallbackKeys,
  {
    /** Fails with 5003 while the vendor's keys cannot be fetched; the vendor then repeats the callback. */
    readonly isSigned: (
      account: VendorAccount,
      seal: CallbackSignature
    ) => Effect.Effect<boolean, Problem>
  }
>()("gateway/tasks/callbacks/CallbackKeys") {
  static readonly layer = Layer.effect(
    CallbackKeys,
    Effect.gen(function* () {
      const media = yield* MediaFetch
      const sources = new Map<string, Source>()

      /** Fetches published keys through the egress guard, and an account's own key from the account's base URL. */
      const fetch = ({
        keys
      }: Scheme): Effect.Effect<
        ReadonlyArray<string>,
        MediaFetchFailed | ShareExhausted | VendorError
      > =>
        keys._tag !== "Published"
          ? keys._tag === "OfAccount"
            ? keys.fetch
            : Effect.succeed([])
          : Effect.map(
              media.fetch({
                url: keys.url,
                schemes: [keys.url.startsWith("https:") ? "https" : "http"],
                bytesMax: callbackKeysBytesMax,
                caller: keys.url
              }),
              keys.parse
            )

      const refresh = Effect.fnUntraced(function* (name: string, source: Source, scheme: Scheme) {
        const now = yield* Clock.currentTimeMillis
        if (Math.abs(now - source.triedAt) < callbackKeysRetrySeconds * 1000) return
        source.triedAt = now
        const keys = yield* fetch(scheme).pipe(
          Effect.timeout(Duration.seconds(callbackSeconds)),
          Effect.catchCause((cause) =>
            Effect.as(Effect.logWarning(`The callback keys of ${name} were not fetched`, cause), [])
          )
        )
        if (keys.length > 0) Object.assign(source, { keys, fetchedAt: now })
      })

      return CallbackKeys.of({
        isSigned: Effect.fn("CallbackKeys.isSigned")(function* (account, seal) {
          const scheme = account.callbacks
          if (scheme === undefined || scheme.keys._tag === "None") return false
          const name = scheme.keys._tag === "Published" ? scheme.keys.url : account.accountId
          const source = sources.get(name) ?? newSource()
          sources.set(name, source)
          const isMatch = Effect.map(Clock.currentTimeMillis, (now) =>
            validKeys(source, now).some((key) => scheme.verify(seal, key))
          )
          if (yield* isMatch) return true
          yield* source.lock.withPermit(refresh(name, source, scheme))
          if (yield* isMatch) return true
          if (validKeys(source, yield* Clock.currentTimeMillis).length > 0) return false
          return yield* problem(5003, "Callbacks cannot be verified now: try again shortly")
        })
      })
    })
  )
}

type Scheme = NonNullable<VendorAccount["callbacks"]>

interface Source {
  /** Concurrent callbacks with an unknown key share one fetch. */
  readonly lock: Semaphore.Semaphore
  keys: ReadonlyArray<string>
  fetchedAt: number
  triedAt: number
}

const newSource = (): Source => ({
  lock: Semaphore.makeUnsafe(1),
  keys: [],
  fetchedAt: 0,
  triedAt: Number.NEGATIVE_INFINITY
})

const validKeys = ({ fetchedAt, keys }: Source, now: number): ReadonlyArray<string> =>
  Math.abs(now - fetchedAt) < callbackKeysHours * 3_600_000 ? keys : []
