import { Context, DateTime, Duration, Effect, Layer } from "effect"
import { AppConfig } from "../config/Config.ts"
import type { EndpointId, UserId } from "../domain/Ids.ts"
import { testEventsPerEndpointPerDayMax, testEventsPerUserPerDayMax } from "../domain/Limits.ts"
import { Problem } from "../domain/Problem.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import { AdmissionStore } from "./AdmissionStore.ts"

type Taken = Effect.Effect<void, Problem | StoreUnavailable>

/** Limits of requests that are no inference; each fails with 1201. docs/reference/keys-and-limits.md */
export class RequestQuotas extends Context.Service<
  RequestQuotas,
  {
    readonly takeManagement: (userId: UserId) => Taken
    /** Of the endpoint, and of its user: one who makes endpoints anew is bounded too. */
    readonly takeTestEvent: (userId: UserId, endpointId: EndpointId) => Taken
    /** Removes the buckets from which nothing was taken for so long that every one is full. */
    readonly deleteFull: Effect.Effect<void, StoreUnavailable>
  }
>()("gateway/users/RequestQuotas") {
  static readonly layer = Layer.effect(
    RequestQuotas,
    Effect.gen(function* () {
      const store = yield* AdmissionStore
      const { manageRateLimitPerMinute } = yield* AppConfig
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
      const perMinute = `This user may send ${manageRateLimitPerMinute} management requests a minute`
      const perDay = `An endpoint may be sent ${testEventsPerEndpointPerDayMax} test events a day`
      const perUserAndDay = `A user may send ${testEventsPerUserPerDayMax} test events a day`
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
        deleteFull: Effect.flatMap(DateTime.now, (now) =>
          store.deleteBuckets(DateTime.subtractDuration(now, Duration.seconds(daySeconds)))
        )
      }
    })
  )
}

const minuteSeconds = 60
const daySeconds = 24 * 3600
