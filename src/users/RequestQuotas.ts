import { Context, DateTime, Duration, Effect, Layer, Option } from "effect"
import ipaddr from "ipaddr.js"
import { AppConfig } from "../config/Config.ts"
import { foldAddress } from "../domain/EmailAddress.ts"
import type { EndpointId, UserId } from "../domain/Ids.ts"
import {
  testEventsPerEndpointPerDayMax,
  testEventsPerUserPerDayMax
} from "../domain/limits/Limits.ts"
import {
  signInMinutes,
  signInsPerAccountMax,
  signInsPerAddressMax
} from "../domain/limits/SignInLimits.ts"
import { Problem } from "../domain/Problem.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import { Secrets } from "../process/secrets/Secrets.ts"
import { AdmissionStore } from "./AdmissionStore.ts"

type Taken = Effect.Effect<void, Problem | StoreUnavailable>

/** Limits of requests other than inference; each fails with 1201. docs/reference/keys-and-limits.md */
export class RequestQuotas extends Context.Service<
  RequestQuotas,
  {
    readonly takeManagement: (userId: UserId) => Taken
    /** Counted per endpoint and per user, so that recreating an endpoint does not reset the limit. */
    readonly takeTestEvent: (userId: UserId, endpointId: EndpointId) => Taken
    /** A sign-in attempt, counted by network address and by e-mail address. */
    readonly takeSignIn: (address: Option.Option<string>, account: string | undefined) => Taken
    /** Removes buckets that have been unused long enough to be full again. */
    readonly deleteFull: Effect.Effect<void, StoreUnavailable>
  }
>()("gateway/users/RequestQuotas") {
  static readonly layer = Layer.effect(
    RequestQuotas,
    Effect.gen(function* () {
      const store = yield* AdmissionStore
      const { manageRateLimitPerMinute } = yield* AppConfig
      const secrets = yield* Secrets
      // Hashed, so that the bucket's name does not reveal who signs in
      const hidden = (kind: string, text: string) => `${kind}:${secrets.mac("sign-in", text)}`
      const take = Effect.fnUntraced(function* (
        bucket: string,
        max: number,
        seconds: number,
        detail: string
      ) {
        const taken = yield* store.take(bucket, max, seconds, yield* DateTime.now)
        if (taken.admitted) return
        return yield* new Problem({ code: 1201, detail, retryAfterSeconds: taken.resetSeconds })
      })
      const perMinute = `This user may send ${manageRateLimitPerMinute} management requests per minute`
      const perDay = `An endpoint may be sent ${testEventsPerEndpointPerDayMax} test events per day`
      const perUserAndDay = `A user may send ${testEventsPerUserPerDayMax} test events per day`
      return {
        takeManagement: (userId) =>
          manageRateLimitPerMinute === 0
            ? Effect.void
            : take(`manage:${userId}`, manageRateLimitPerMinute, minuteSeconds, perMinute),
        takeTestEvent: (userId, endpointId) =>
          Effect.andThen(
            take(`test:${endpointId}`, testEventsPerEndpointPerDayMax, daySeconds, perDay),
            take(`test:${userId}`, testEventsPerUserPerDayMax, daySeconds, perUserAndDay)
          ),
        takeSignIn: (address, account) =>
          Effect.andThen(
            take(
              hidden("sign-in", networkOf(Option.getOrElse(address, () => "unknown"))),
              signInsPerAddressMax,
              signInSeconds,
              tooOften
            ),
            account === undefined
              ? Effect.void
              : take(
                  hidden("sign-in-for", foldAddress(account)),
                  signInsPerAccountMax,
                  signInSeconds,
                  tooOften
                )
          ),
        deleteFull: Effect.flatMap(DateTime.now, (now) =>
          store.deleteBuckets(DateTime.subtractDuration(now, Duration.seconds(daySeconds)))
        )
      }
    })
  )
}

const tooOften = "Too many sign-in attempts: wait as long as Retry-After says"

/** The first 64 bits of an IPv6 address, which one customer controls; an IPv4 address in full. */
const networkOf = (address: string): string =>
  ipaddr.IPv6.isValid(address) ? ipaddr.IPv6.parse(address).parts.slice(0, 4).join(":") : address

const minuteSeconds = 60
const signInSeconds = signInMinutes * 60
const daySeconds = 24 * 3600
