import { Context, DateTime, Duration, Effect, Exit, Layer, Option, Schema } from "effect"
import { AppConfig } from "../config/Config.ts"
import type { Alerting } from "../db/BatchWrites.ts"
import { formatExact, zero } from "../domain/Credits.ts"
import type { Credits } from "../domain/Credits.ts"
import { makeCallId } from "../domain/Ids.ts"
import type { EndpointId, UserId } from "../domain/Ids.ts"
import { callRescueSeconds } from "../domain/limits/Limits.ts"
import { problem } from "../domain/Problem.ts"
import type { Problem, StoreUnavailable } from "../domain/Problem.ts"
import { spendLimitProblem } from "../domain/SpendLimit.ts"
import { warnOnce } from "../domain/WarnOnce.ts"
import { Admission, begun } from "../process/admission/Admission.ts"
import type { AdmissionLimiter } from "../process/admission/AdmissionLimiter.ts"
import { Drain } from "../process/Drain.ts"
import { Process } from "../process/heartbeat/Process.ts"
import { WorkNotifier } from "../process/signals/WorkNotifier.ts"
import { balanceLow } from "../webhooks/Events.ts"
import { makeCallBatches, released } from "./CallBatches.ts"
import type { CallBatches, Held, Raised, WriteBatch } from "./CallBatches.ts"
import { makeCallHolds } from "./CallHolds.ts"
import type { CallHold } from "./CallHolds.ts"
import { CallStore } from "./CallStore.ts"
import type { CallEnd, CallRefusal, CallRow, CallStart } from "./CallStore.ts"
import { makeReservations } from "./reservations/Reservations.ts"
import type { Reservations, WriteReservations } from "./reservations/Reservations.ts"
import { ReservationStore } from "./reservations/ReservationStore.ts"
import type { RaiseHold, RaiseOutcome } from "./slices/SlicedHold.ts"

export type { CallEnd, CallRow, CallStart } from "./CallStore.ts"

/** The most lost calls in one round of the rescue. */
const orphansMax = 5000

/** The longest lifetime of a call in hours. After it the hold is released, whatever went wrong. */
const callHoursMax = 24

/** A call that may go upstream. */
export interface HeldCall {
  readonly hold: CallHold
  /** Raises the hold while the call runs. ADR 0306. */
  readonly raise: RaiseHold
  /** Settles the call soon; only the first call has an effect. Never waits and never fails. */
  readonly close: (end: CallEnd) => void
  /** Credits left of its key's spend limit; `undefined` without one. */
  readonly left: Credits | undefined
}

/**
 * Money of metered calls: a hold before, a settlement after, a receipt. Concurrent calls share one
 * transaction, so that a busy gateway writes a few large batches instead of thousands of small ones.
 * docs/reference/passthrough.md#metering, ADR 0072.
 */
export class Metering extends Context.Service<
  Metering,
  {
    /**
     * Takes a hold for a call and checks its key again in the same transaction, or draws on the reservation of its key,
     * which was checked a moment ago. Fails with 1101, 1102, or with 1003 if the key has become invalid or has been
     * given limits since it was authenticated. Uninterruptible, except for the wait for the call's own hold. After an
     * interruption nothing is held.
     */
    readonly hold: (
      start: CallStart,
      options: { readonly nowMillis: number; readonly mayDraw: boolean }
    ) => Effect.Effect<HeldCall, Problem | StoreUnavailable>
    readonly search: CallStore["Service"]["search"]
    /** Fails with 2005. */
    readonly find: (
      userId: UserId,
      id: string
    ) => Effect.Effect<CallRow, Problem | StoreUnavailable>
  }
>()("gateway/passthrough/Metering") {
  static readonly layer = Layer.effect(
    Metering,
    Effect.gen(function* () {
      const store = yield* CallStore
      const reservationStore = yield* ReservationStore
      const process = yield* Process
      const { graceEnd } = yield* Drain
      const writes = yield* makeWrites
      const batches = yield* makeCallBatches(writes.calls, graceEnd)
      const reservations = yield* makeReservations(writes.reservations(process.id), graceEnd)
      const { closeUnsafe } = batches
      const holdOf = yield* makeCallHolds({ process, store, reservations })
      const { calls } = yield* Admission

      const turn = yield* process.duty({ name: "calls", seconds: callRescueSeconds })
      const rescue = Effect.gen(function* () {
        const now = yield* DateTime.now
        const before = DateTime.subtract(now, { hours: callHoursMax })
        const aliveSince = yield* process.callsAliveSince
        const orphans = yield* store.orphans(aliveSince, before, orphansMax)
        for (const { id, userId } of orphans) closeUnsafe(lost({ id, user: userId }))
        const left = yield* reservationStore.lost(aliveSince, orphansMax)
        for (const { key, processId, userId: user } of left) {
          const size = { key, rotation: 0, user, hold: makeCallId(DateTime.toEpochMillis(now)) }
          const sizes = [{ ...size, needs: zero, extra: zero }]
          yield* writes.reservations(processId)({ sizes, ended: [] })
        }
        if (orphans.length + left.length > 0) {
          yield* Effect.logWarning(
            `Released ${orphans.length} calls and ${left.length} reservations of dead processes`
          )
        }
      })
      yield* rescue.pipe(
        warnOnce("The rescue of calls failed"),
        (next) => Effect.andThen(turn, next),
        Effect.forever,
        Effect.forkScoped
      )

      return Metering.of({
        hold: holdWith({ batches, calls, holdOf, reservations }),
        search: store.search,
        find: Effect.fn("Metering.find")(function* (userId, id) {
          const found = isCallId(id) ? yield* store.find(userId, id) : Option.none<CallRow>()
          return yield* Effect.mapError(Effect.fromOption(found), () =>
            problem(2005, `There is no call ${id.slice(0, 60)}`)
          )
        })
      })
    })
  )
}

const isCallId = Schema.is(Schema.String.check(Schema.isUUID()))

interface Holding {
  readonly batches: CallBatches
  readonly calls: AdmissionLimiter
  readonly holdOf: (start: CallStart) => CallHold
  readonly reservations: Reservations
}

const holdWith =
  ({ batches, calls, holdOf, reservations }: Holding): Metering["Service"]["hold"] =>
  (start, { mayDraw, nowMillis }) =>
    Effect.suspend(() => {
      // Created before the hold is taken, because a silence from here on may lose the hold
      const hold = holdOf(start)
      const drawn =
        mayDraw && start.checked === undefined
          ? reservations.drawUnsafe(start, nowMillis)
          : undefined
      if (drawn !== undefined) {
        hold.drawn = true
        const { close, left, raise } = drawn
        return Effect.succeed({ hold, raise, close: once(close), left })
      }
      return Effect.map(opened(batches, calls, start), (left) => ({
        hold,
        ...ownHold(batches, start),
        left
      }))
    })

const ownHold = (batches: CallBatches, { id, user }: CallStart) => {
  let giveUp = () => {}
  const raise: RaiseHold = (amount, onRaised) => {
    giveUp = batches.raiseUnsafe({ id, user, amount }, (raised) => onRaised(outcomeOf(raised)))
  }
  const close = once((end) => {
    giveUp()
    batches.closeUnsafe(end)
  })
  return { raise, close }
}

/** Revoking a key does not end its running calls. */
const outcomeOf = (raised: Raised): RaiseOutcome => {
  if (typeof raised === "object") return "budget"
  return raised === "key" ? "held" : raised
}

/** Takes the call's own hold. If interrupted, even just after the commit, the hold is released. */
const opened = (batches: CallBatches, calls: AdmissionLimiter, start: CallStart) => {
  let isHeld = false
  const waited = Effect.callback<Credits | undefined, Problem | StoreUnavailable>((resume) => {
    const ended = begun(calls, start.user)
    const giveUp = batches.openUnsafe(start, (exit) => {
      ended()
      const held: Exit.Exit<Credits | undefined, Problem | StoreUnavailable> = Exit.isSuccess(exit)
        ? leftOf(exit.value, start.amount)
        : Exit.failCause(exit.cause)
      isHeld = Exit.isSuccess(held)
      resume(held)
    })
    return Effect.sync(() => {
      ended()
      giveUp()
    })
  })
  return Effect.onInterrupt(Effect.interruptible(waited), () =>
    Effect.sync(() => {
      if (isHeld) batches.closeUnsafe(released(start))
    })
  )
}

const leftOf = (held: Held, amount: Credits): Exit.Exit<Credits | undefined, Problem> => {
  if (held === undefined) return noLimit
  if (held === "lost") return Exit.die(new Error("A call that begins has no hold to lose"))
  return typeof held === "object" && held._tag === "Held"
    ? Exit.succeed(held.left)
    : Exit.fail(refusalProblem(held, amount))
}

const noLimit = Exit.succeed(undefined)

/** Ignores repeated closes: a defect may close a call that is already closed. */
const once = (close: (end: CallEnd) => void) => {
  let isOpen = true
  return (end: CallEnd): void => {
    if (isOpen) close(end)
    isOpen = false
  }
}

const refusalProblem = (refusal: CallRefusal, amount: Credits): Problem => {
  if (refusal === "key") return problem(1003, "This API key was revoked or has expired")
  const held = formatExact(amount)
  return refusal === "balance"
    ? problem(1101, `The available balance is lower than the ${held} credits that this call holds`)
    : spendLimitProblem(refusal, `, and this call holds ${held}`)
}

/** The end of a call whose process died before settling it. It is released in the customer's favor. ADR 0072. */
const lost = (call: { readonly id: string; readonly user: UserId }): CallEnd => ({
  ...released(call),
  outcome: "lost"
})

const heldOf = (left: ReadonlyMap<string, Credits>): ReadonlyMap<string, Held> =>
  new Map([...left].map(([id, left]) => [id, { _tag: "Held", left }]))

/** Writes a batch and the alerts of its charges in one transaction, then notifies their endpoints. */
const makeWrites = Effect.gen(function* () {
  const { balanceAlertThrottle } = yield* AppConfig
  const calls = yield* CallStore
  const reservations = yield* ReservationStore
  const notifier = yield* WorkNotifier
  const { id } = yield* Process
  const throttleSeconds = Duration.toSeconds(balanceAlertThrottle)
  const settled = <A extends { readonly endpoints: ReadonlyArray<EndpointId> }>(
    write: (alerting: Alerting) => Effect.Effect<A, StoreUnavailable>
  ) =>
    Effect.flatMap(DateTime.now, (now) =>
      Effect.tap(
        write({ now, throttleSeconds, alert: (wallet) => balanceLow(wallet, now) }),
        ({ endpoints }) =>
          endpoints.length === 0 ? Effect.void : notifier.notifyEndpoints(endpoints)
      )
    )
  return {
    calls: ((batch) =>
      Effect.map(
        settled((alerting) => calls.write({ ...alerting, ...batch, processId: id })),
        ({ left, refused }): ReadonlyMap<string, Held> =>
          left.size === 0 ? refused : new Map([...heldOf(left), ...refused])
      )) satisfies WriteBatch,
    /** The reservations of this process, or of a dead one. */
    reservations:
      (processId: string): WriteReservations =>
      ({ ended, sizes }) =>
        Effect.map(
          settled((alerting) => reservations.write({ ...alerting, ended, sizes, processId })),
          ({ grants }) => grants
        )
  }
})
