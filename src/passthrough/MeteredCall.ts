import { Effect, Exit } from "effect"
import type { Clock } from "effect"
import type { Credits } from "../domain/Credits.ts"
import { makeCallId } from "../domain/Ids.ts"
import type { Problem, StoreUnavailable } from "../domain/Problem.ts"
import type { AbandonedStreams } from "./AbandonedStreams.ts"
import { CallBill } from "./CallBill.ts"
import { stillHeld } from "./CallHolds.ts"
import type { CallPlan } from "./CallPlan.ts"
import type { CallStart, Metering } from "./Metering.ts"
import { dropBodies, givenUpBy, relay, requestOf, routeName } from "./PassthroughCall.ts"
import type { ForwardHandlers, GivenUp, PassthroughCall, Relayed } from "./PassthroughCall.ts"
import type { Reached, ReachHandlers, UpstreamCalls, UpstreamRequest } from "./UpstreamCalls.ts"

interface Services {
  readonly abandoned: AbandonedStreams
  readonly clock: Clock.Clock
  readonly metering: Metering["Service"]
  readonly upstream: UpstreamCalls["Service"]
}

/**
 * A call from its hold to its response, without a fiber: most calls are of this kind. However it ends,
 * its hold is settled or released. docs/reference/passthrough.md#metering, ADR 0113.
 */
export class MeteredCall implements ReachHandlers {
  readonly #services: Services
  readonly #call: PassthroughCall
  readonly #plan: CallPlan
  readonly #nowMillis: number
  readonly #handlers: ForwardHandlers
  readonly #id: string
  readonly #start: CallStart
  readonly #bill: CallBill
  #request: UpstreamRequest | undefined
  /** What the spend limit of the key leaves. */
  #left: Credits | undefined
  #state: "opening" | "held" | "responded" | "abandoned" = "opening"
  /** Aborts what is under way. */
  #stop: () => void = () => {}

  constructor(
    services: Services,
    call: PassthroughCall,
    plan: CallPlan,
    nowMillis: number,
    handlers: ForwardHandlers
  ) {
    this.#services = services
    this.#call = call
    this.#plan = plan
    this.#nowMillis = nowMillis
    this.#handlers = handlers
    this.#id = makeCallId(nowMillis)
    this.#start = this.#startOf()
    const billed = { id: this.#id, user: call.principal.userId, begunMillis: nowMillis }
    this.#bill = new CallBill(billed, plan, call.body.length, {
      ...services,
      close: services.metering.closeUnsafe,
      hold: services.metering.holdOf(this.#start)
    })
  }

  begin(): void {
    const { metering } = this.#services
    const start = this.#start
    const drawn =
      start.checked !== undefined ? undefined : metering.drawUnsafe(start, this.#nowMillis)
    if (drawn !== undefined) {
      this.#bill.closeBy(drawn.close)
      this.#left = drawn.left
      return this.#reach()
    }
    const giveUp = metering.openUnsafe(start, (held) => {
      if (Exit.isFailure(held)) return this.#handlers.onRest(Exit.failCause(held.cause))
      this.#left = held.value
      return this.#reach()
    })
    if (this.#state === "opening") this.#stop = giveUp
  }

  /** Nobody waits for the response any more. A stream that is relayed ends by itself. */
  giveUp(why: GivenUp): void {
    if (this.#state === "responded") return
    // First, so that the handlers are not called any more
    this.#end(why)
    this.#stop()
  }

  onResponse(reached: Reached): void {
    if (this.#state === "abandoned") return
    if (this.#bill.isHeld()) this.#handlers.onResponse(this.#relayed(reached))
    else this.onRest(Effect.succeed(reached))
  }

  onRest(rest: Effect.Effect<Reached, Problem | StoreUnavailable>): void {
    if (this.#state === "abandoned") return
    this.#handlers.onRest(
      Effect.interruptible(
        Effect.flatMap(rest, (reached) => stillHeld(this.#bill.hold, reached))
      ).pipe(
        Effect.onError((cause) => Effect.sync(() => this.#end(givenUpBy(cause)))),
        Effect.map((reached) => this.#relayed(reached)),
        Effect.uninterruptible
      )
    )
  }

  #startOf(): CallStart {
    const { apiKeyId: key, limits, rotation, userId: user } = this.#call.principal
    const { route } = this.#call.to
    const start: CallStart = {
      id: this.#id,
      user,
      key,
      rotation,
      amount: this.#plan.hold,
      trace: this.#call.traceId,
      vendor: route.vendor,
      model: this.#plan.model,
      route: routeName(route),
      sandbox: this.#services.upstream.isSandbox(route.provider),
      catalogId: this.#call.to.catalog.id
    }
    return limits === undefined ? start : { ...start, checked: limits }
  }

  #reach(): void {
    this.#state = "held"
    try {
      const model = limitedBy(this.#plan, this.#call)
      const request = requestOf(this.#call, this.#plan.body, model, this.#bill)
      const { provider } = this.#call.to.route
      this.#request = request
      this.#stop = this.#services.upstream.reachUnsafe(provider, request, this.#nowMillis, this)
    } catch (defect) {
      this.#end("failed")
      this.#handlers.onRest(Exit.die(defect))
    }
  }

  #relayed(reached: Reached): Relayed {
    this.#state = "responded"
    dropBodies(this.#call, this.#plan, this.#request)
    const cost = this.#bill.onResponse(reached)
    return relay(reached, this.#id, cost, { left: this.#left, ending: this.#plan.ending })
  }

  #end(why: GivenUp): void {
    if (this.#state === "held") {
      if (why === "left") this.#bill.leave()
      else this.#bill.release(null)
    }
    this.#state = "abandoned"
  }
}

/** Dated versions of a model share its price and its rate. */
const limitedBy = ({ metered, model }: CallPlan, call: PassthroughCall): string =>
  metered._tag === "Tokens" ? metered.model.model : (model ?? routeName(call.to.route))
