import { Effect, Exit } from "effect"
import type { Clock } from "effect"
import { nameOf } from "../catalog/Alias.ts"
import type { CallAlias } from "../catalog/AliasTargets.ts"
import type { SkipReason } from "../domain/Candidate.ts"
import { format } from "../domain/Credits.ts"
import type { Credits } from "../domain/Credits.ts"
import { makeCallId } from "../domain/Ids.ts"
import { problem } from "../domain/Problem.ts"
import type { Problem, StoreUnavailable } from "../domain/Problem.ts"
import { countFallback } from "../vendors/FallbacksTotal.ts"
import type { AbandonedStreams } from "./AbandonedStreams.ts"
import { planAliased } from "./AliasedPlan.ts"
import type { AliasedPlan, CallCandidate, SkippedModel } from "./AliasedPlan.ts"
import { released } from "./CallBatches.ts"
import { CallBill } from "./CallBill.ts"
import { stillHeld } from "./CallHolds.ts"
import type { CallHold } from "./CallHolds.ts"
import type { CallEnd, CallStart, Metering } from "./Metering.ts"
import { dropBodies, givenUpBy, relay, requestOf, routeName } from "./PassthroughCall.ts"
import type { PassthroughCall, Relayed } from "./PassthroughCall.ts"
import { skipReasonOf } from "./UpstreamCalls.ts"
import type { Reached, UpstreamCalls, UpstreamRequest } from "./UpstreamCalls.ts"

interface Services {
  readonly abandoned: AbandonedStreams
  readonly clock: Clock.Clock
  readonly metering: Metering["Service"]
  readonly upstream: UpstreamCalls["Service"]
}

/**
 * A call that names an alias: one hold for its dearest model, and its models in turn until one responds. The next
 * is tried only while nothing can have been bought, so no byte of a response has reached the client.
 * docs/reference/aliases.md#calls, ADR 0224.
 */
export const aliasedWith = (services: Services) =>
  Effect.fnUntraced(function* (call: PassthroughCall, alias: CallAlias, nowMillis: number) {
    const id = makeCallId(nowMillis)
    const { isSandbox } = services.upstream
    const plan = yield* Effect.fromResult(planAliased(call, alias, id, nowMillis, isSandbox))
    if (call.maxCost !== undefined && plan.hold > call.maxCost) {
      return yield* problem(1103, `This call can cost up to ${format(plan.hold)} credits`)
    }
    const start = startOf(services, call, plan, id)
    const hold = services.metering.holdOf(start)
    const left = yield* opened(services, start)
    const close = onceBy(services.metering.closeUnsafe)
    return yield* Effect.onError(
      inTurn(services, { call, plan, id, hold, left, nowMillis, close }),
      // A defect: the bill of the model has closed it otherwise
      () => Effect.sync(() => close(released({ id, user: call.principal.userId })))
    )
  }, Effect.uninterruptible)

type Close = (end: CallEnd) => void

/** Apart from the call, because a stream that is read on keeps what closes it. */
const onceBy = (close: Close): Close => {
  let isOpen = true
  return (end) => {
    if (isOpen) close(end)
    isOpen = false
  }
}

const startOf = (
  { upstream }: Services,
  { principal, to: { catalog, route }, traceId: trace }: PassthroughCall,
  { alias, candidates, hold }: AliasedPlan,
  id: string
): CallStart => {
  const { apiKeyId: key, limits, rotation, userId: user } = principal
  return {
    id,
    user,
    key,
    rotation,
    amount: hold,
    trace,
    vendor: route.vendor,
    model: alias.alias,
    route: routeName(route),
    sandbox: upstream.isSandbox(candidates[0].call.to.route.provider),
    catalogId: catalog.id,
    ...(limits === undefined ? {} : { checked: limits })
  }
}

/** Never from a reservation: that one is settled by the model that was held for. */
const opened = ({ metering }: Services, start: CallStart) => {
  let isHeld = false
  const hold = Effect.callback<Credits | undefined, Problem | StoreUnavailable>((resume) => {
    const giveUp = metering.openUnsafe(start, (exit) => {
      isHeld = Exit.isSuccess(exit)
      resume(exit)
    })
    return Effect.sync(giveUp)
  })
  return Effect.onInterrupt(Effect.interruptible(hold), () =>
    // It was held a moment before
    Effect.sync(() => {
      if (isHeld) metering.closeUnsafe(released(start))
    })
  )
}

interface HeldCall {
  readonly call: PassthroughCall
  readonly plan: AliasedPlan
  readonly id: string
  readonly hold: CallHold
  readonly left: Credits | undefined
  readonly nowMillis: number
  /** Has an effect once. */
  readonly close: Close
}

/** Who closes the call: the model that is asked now. Of one that was passed over nothing is settled. */
interface Turn {
  isNow: boolean
}

const inTurn = Effect.fnUntraced(function* (services: Services, held: HeldCall) {
  const { call, hold, id, left, nowMillis, plan } = held
  const skipped = [...plan.skipped]
  for (const [place, candidate] of plan.candidates.entries()) {
    const turn: Turn = { isNow: true }
    const bill = new CallBill(
      { id, user: call.principal.userId, begunMillis: nowMillis },
      candidate.plan,
      candidate.call.body.length,
      {
        ...services,
        hold,
        close: closeIn(turn, held.close, servedBy(plan, candidate, skipped))
      }
    )
    const request = requestOf(candidate.call, candidate.plan.body, candidate.model.model, bill)
    const exit = yield* reach(services, candidate, request)
    const reason = place === plan.candidates.length - 1 ? undefined : skipReasonOf(exit)
    if (reason !== undefined) {
      turn.isNow = false
      if (Exit.isSuccess(exit)) discard(exit.value)
      skipped.push(yield* skippedBy(candidate, reason))
      continue
    }
    const taken = yield* Effect.exit(
      Effect.interruptible(Effect.flatMap(exit, (reached) => stillHeld(hold, reached)))
    )
    if (Exit.isFailure(taken)) {
      if (givenUpBy(taken.cause) === "left") bill.leave()
      else bill.release(null)
      return yield* Effect.failCause(taken.cause)
    }
    dropBodies(call, request, ...plan.candidates.flatMap((it) => [it.call, it.plan]))
    const { ending } = candidate.plan
    const cost = bill.onResponse(taken.value)
    const { model } = candidate
    return {
      ...relay(taken.value, id, cost, { left, ending }),
      by: { model: nameOf(model), skipped }
    } satisfies Relayed
  }
  return yield* Effect.die("an alias without a model was planned")
})

const reach = (
  { upstream }: Services,
  { call }: CallCandidate,
  request: UpstreamRequest
): Effect.Effect<Exit.Exit<Reached, Problem | StoreUnavailable>> =>
  Effect.exit(
    Effect.interruptible(Effect.suspend(() => upstream.reach(call.to.route.provider, request)))
  )

/** A stream that is not relayed. */
const discard = ({ response: { body } }: Reached): void => {
  if (!(body instanceof Uint8Array)) body.destroy()
}

const skippedBy = ({ model: { model, vendor } }: CallCandidate, reason: SkipReason) =>
  Effect.as(countFallback({ vendor, model }, reason), {
    vendor,
    model,
    reason
  } satisfies SkippedModel)

/** The receipt names the model that did it. */
const servedBy = (
  { alias }: AliasedPlan,
  { call: { to }, plan: { model }, model: { vendor } }: CallCandidate,
  skipped: ReadonlyArray<SkippedModel>
): NonNullable<CallEnd["alias"]> => ({
  alias: alias.alias,
  vendor,
  model: model ?? "",
  route: routeName(to.route),
  skipped
})

const closeIn =
  (turn: Turn, close: Close, alias: NonNullable<CallEnd["alias"]>): Close =>
  (end) => {
    if (turn.isNow) close({ ...end, alias })
  }
