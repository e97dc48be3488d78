import { Context, DateTime, Duration, Effect, Exit, Layer, Option, Schema } from "effect"
import { AppConfig } from "../config/Config.ts"
import type { Alerting } from "../db/BatchWrites.ts"
import { zero } from "../domain/Credits.ts"
import type { Credits } from "../domain/Credits.ts"
import { makeCallId } from "../domain/Ids.ts"
import type { EndpointId, UserId } from "../domain/Ids.ts"
import { callRescueSeconds } from "../domain/Limits.ts"
import { problem } from "../domain/Problem.ts"
import type { Problem, StoreUnavailable } from "../domain/Problem.ts"
import { spendLimitProblem } from "../domain/SpendLimit.ts"
import { Admission, begun } from "../process/Admission.ts"
import { Drain } from "../process/Drain.ts"
import { Process } from "../process/Process.ts"
import { WorkNotifier } from "../process/WorkNotifier.ts"
import { balanceLow } from "../webhooks/Events.ts"
import { makeCallBatches, released } from "./CallBatches.ts"
import type { Held, WriteBatch } from "./CallBatches.ts"
import { makeCallHolds } from "./CallHolds.ts"
import type { CallHold } from "./CallHolds.ts"
import { CallStore } from "./CallStore.ts"
import type { CallEnd, CallRefusal, CallRow, CallStart } from "./CallStore.ts"
import type { Drawn } from "./reservations/ReservationBook.ts"
import { makeReservations } from "./reservations/Reservations.ts"
import type { WriteReservations } from "./reservations/Reservations.ts"
import { ReservationStore } from "./reservations/ReservationStore.ts"

export type { CallEnd, CallRow, CallStart } from "./CallStore.ts"

/** Lost calls of one round of the rescue at most. */
const orphansMax = 5000

/** No call lives longer: its hold is released then, whatever went wrong. */
const callHoursMax = 24

/**
 * Money of metered calls: a hold before, a settlement after, a receipt. Concurrent calls share one
 * transaction, so that a busy gateway writes a few large batches instead of thousands of small ones.
 * docs/reference/passthrough.md#metering, ADR 0072.
 */
export class Metering extends Context.Service<
  Metering,
  {
    /** Begins with the hold of a call, before it is taken. */
    readonly holdOf: (start: CallStart) => CallHold
    /**
     * Covers a call by the reservation of its key, which was checked a moment ago: it may go upstream
     * at once. `close` closes the call. `undefined`: it has to be opened.
     */
    readonly drawUnsafe: (start: CallStart, nowMillis: number) => Drawn | undefined
    /**
     * Holds, and checks the key once more; for a caller that is no fiber. `onExit` is called after the
     * commit and must not throw: 1101, 1102, or 1003 when the key has lost its validity, or has got
     * limits, since it was recognized; else what its spend limit leaves, if it has one. Returns what
     * gives the hold up, which has no effect after `onExit`.
     */
    readonly openUnsafe: (
      start: CallStart,
      onExit: (exit: Exit.Exit<Credits | undefined, Problem | StoreUnavailable>) => void
    ) => () => void
    /** For a call that was opened. Settles soon: never waits, never fails. */
    readonly closeUnsafe: (end: CallEnd) => void
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
        Effect.catchCause((cause) => Effect.logWarning("The rescue of calls failed", cause)),
        (next) => Effect.andThen(turn, next),
        Effect.forever,
        Effect.forkScoped
      )

      return Metering.of({
        holdOf,
        drawUnsafe: reservations.drawUnsafe,
        openUnsafe: (start, onExit) => {
          const ended = begun(calls, start.user)
          const giveUp = batches.openUnsafe(start, (exit) => {
            ended()
            if (Exit.isFailure(exit)) return onExit(Exit.failCause(exit.cause))
            const { value: held } = exit
            if (held === undefined) return onExit(noLimit)
            return onExit(
              typeof held === "object" && held._tag === "Held"
                ? Exit.succeed(held.left)
                : Exit.fail(refusalProblem(held))
            )
          })
          return () => {
            ended()
            giveUp()
          }
        },
        closeUnsafe,
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

const noLimit = Exit.succeed(undefined)

const refusalProblem = (refusal: CallRefusal): Problem => {
  if (refusal === "key") return problem(1003, "This API key was revoked or has expired")
  return refusal === "balance"
    ? problem(1101, "The available balance is lower than the most that this call can cost")
    : spendLimitProblem(refusal)
}

/** The process died before the call was settled: doubt is in the customer's favour. ADR 0072. */
const lost = (call: { readonly id: string; readonly user: UserId }): CallEnd => ({
  ...released(call),
  outcome: "lost"
})

const heldOf = (left: ReadonlyMap<string, Credits>): ReadonlyMap<string, Held> =>
  new Map([...left].map(([id, left]) => [id, { _tag: "Held", left }]))

/** The transactions of a batch, with the alerts of its charges; their endpoints are notified afterwards. */
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
    calls: (({ ends, starts }) =>
      Effect.map(
        settled((alerting) => calls.write({ ...alerting, ends, starts, processId: id })),
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
