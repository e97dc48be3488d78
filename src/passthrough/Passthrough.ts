import { Clock, Context, Effect, Exit, Layer, Result } from "effect"
import { Catalog } from "../catalog/Catalog.ts"
import type { UpstreamCatalog } from "../catalog/UpstreamCatalog.ts"
import { AppConfig } from "../config/Config.ts"
import { Problem } from "../domain/Problem.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import { Drain } from "../process/Drain.ts"
import { makeAbandonedStreams } from "./AbandonedStreams.ts"
import { aliasedWith } from "./AliasedCall.ts"
import { aliasNamed } from "./AliasedPlan.ts"
import { planCall } from "./CallPlan.ts"
import type { CallPlan } from "./CallPlan.ts"
import { closedRoute } from "./ClosedRoute.ts"
import { withinLimits } from "./KeyLimits.ts"
import { MeteredCall } from "./MeteredCall.ts"
import { Metering } from "./Metering.ts"
import { aliasAt, soldModels } from "./ModelList.ts"
import { givenUpBy, plainRequestOf, relay } from "./PassthroughCall.ts"
import type {
  ForwardHandlers,
  GivenUp,
  OpenPath,
  PassthroughCall,
  Relayed
} from "./PassthroughCall.ts"
import { UpstreamCalls } from "./UpstreamCalls.ts"

export type {
  ForwardHandlers,
  GivenUp,
  OpenPath,
  PassthroughCall,
  Relayed
} from "./PassthroughCall.ts"

/** Forwards a call to its vendor, relays the response and meters the call. docs/reference/passthrough.md */
export class Passthrough extends Context.Service<
  Passthrough,
  {
    /** What `resolve` reads: another one after a reload. */
    readonly openFor: () => UpstreamCatalog
    /** Fails with 2006 (vendor or route not open) or 2007. */
    readonly resolve: (vendor: string, method: string, path: string) => Exit.Exit<OpenPath, Problem>
    readonly forward: (call: PassthroughCall) => Effect.Effect<Relayed, Problem | StoreUnavailable>
    /** The same for a caller that is no fiber. Returns what gives the call up. Never throws. */
    readonly forwardUnsafe: (
      call: PassthroughCall,
      nowMillis: number,
      handlers: ForwardHandlers
    ) => (why: GivenUp) => void
  }
>()("gateway/passthrough/Passthrough") {
  static readonly layer = Layer.effect(
    Passthrough,
    Effect.gen(function* () {
      const catalog = yield* Catalog
      const metering = yield* Metering
      const upstream = yield* UpstreamCalls
      const clock = yield* Clock.Clock
      const { abandonedStreamTimeout } = yield* AppConfig
      const abandoned = yield* makeAbandonedStreams(abandonedStreamTimeout, clock, yield* Drain)
      const services = { abandoned, clock, metering, upstream }
      const other = otherWith(services)

      // Most calls come here: from the hold to the response without a fiber
      const forwardUnsafe = (
        call: PassthroughCall,
        nowMillis: number,
        handlers: ForwardHandlers
      ) => {
        try {
          if (call.to.route.meter.per === "tokens" && abandoned.isFull(call.principal.userId)) {
            handlers.onRest(tooManyLeft)
            return () => {}
          }
          const { catalog, model, route } = call.to
          const plan = withinLimits(call, planCall(catalog, route, model, call.body, nowMillis))
          if (Result.isSuccess(plan) && plan.success.metered._tag !== "Nothing") {
            const metered = new MeteredCall(services, call, plan.success, nowMillis, handlers)
            metered.begin()
            return (why: GivenUp) => metered.giveUp(why)
          }
          handlers.onRest(other(call, plan, nowMillis))
        } catch (defect) {
          handlers.onRest(Exit.die(defect))
        }
        return () => {}
      }

      return Passthrough.of({
        openFor: () => catalog.current().upstream,
        resolve: resolveWith(() => catalog.current().upstream),
        forwardUnsafe,
        forward: (call) =>
          Effect.flatMap(Clock.currentTimeMillis, (now) =>
            Effect.uninterruptibleMask((restore) => {
              let giveUp: (why: GivenUp) => void = () => {}
              const rest = Effect.callback<Effect.Effect<Relayed, Problem | StoreUnavailable>>(
                (resume) => {
                  giveUp = forwardUnsafe(call, now, {
                    onResponse: (relayed) => resume(Exit.succeed(Exit.succeed(relayed))),
                    onRest: (rest) => resume(Exit.succeed(rest))
                  })
                }
              )
              return Effect.flatMap(restore(rest), restore).pipe(
                Effect.onError((cause) => Effect.sync(() => giveUp(givenUpBy(cause))))
              )
            })
          )
      })
    })
  )
}

const resolveWith =
  (catalogNow: () => UpstreamCatalog) => (vendor: string, method: string, path: string) => {
    const upstream = catalogNow()
    const match = upstream.match(vendor, method, path)
    switch (match._tag) {
      case "Open":
        return Exit.succeed(match)
      case "OtherMethod": {
        const { allow } = match
        return Exit.fail(
          new Problem({ code: 2007, detail: `${method} is not allowed here`, allow })
        )
      }
      case "Closed":
        return Exit.fail(closedRoute(upstream.routes, vendor))
    }
  }

const tooManyLeft = Exit.fail(
  new Problem({
    code: 1201,
    detail:
      "Too many streams that you left are still read for their usage figures: read streams to their end",
    retryAfterSeconds: 1
  })
)

/** A call that is not metered, one that names an alias, or a refusal. */
const otherWith = (services: Parameters<typeof aliasedWith>[0]) => {
  const plain = plainWith(services.upstream)
  const aliased = aliasedWith(services)
  return (call: PassthroughCall, plan: Result.Result<CallPlan, Problem>, nowMillis: number) => {
    if (Result.isSuccess(plan)) return plain(call, plan.success.body, nowMillis)
    const alias = aliasNamed(call)
    return alias === undefined ? Exit.fail(plan.failure) : aliased(call, alias, nowMillis)
  }
}

/** A call that is not metered. */
const plainWith =
  (upstream: UpstreamCalls["Service"]) =>
  (call: PassthroughCall, body: Uint8Array, nowMillis: number) => {
    const { provider } = call.to.route
    const alias = aliasAt(call.to, upstream.isSandbox(provider))
    if (alias !== undefined) return Effect.succeed(alias)
    return Effect.flatMap(upstream.reach(provider, plainRequestOf(call, body)), (reached) =>
      soldModels(call.to, relay(reached), nowMillis)
    )
  }
