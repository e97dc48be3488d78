import { Clock, Context, DateTime, Duration, Effect, Layer, Option } from "effect"
import type { UserId } from "../../domain/Ids.ts"
import type { StoreUnavailable } from "../../domain/Problem.ts"
import { pollIntervalMax } from "../../vendors/Polling.ts"
import type { VendorAccount } from "../../vendors/VendorClient.ts"
import { Callbacks } from "../callbacks/Callbacks.ts"
import { pollQueue } from "../running/TaskQueue.ts"
import { PollPacingStore } from "./PollPacingStore.ts"
import { PollShares } from "./PollShares.ts"

/** A submitted job, and the wait that the vendor asked for or that follows from the job's age. */
export interface PolledJob {
  readonly account: VendorAccount
  readonly upstreamModel: string
  readonly userId: UserId
  readonly after: Duration.Duration
}

/** Decides when a job is polled next. docs/reference/vendors.md#poll-interval, ADR 0195. */
export class PollPacing extends Context.Service<
  PollPacing,
  {
    /** The first poll of a job that was just submitted. */
    readonly first: (job: PolledJob) => Effect.Effect<DateTime.Utc>
    readonly next: (job: PolledJob) => Effect.Effect<DateTime.Utc>
    /** Call this when the job has ended. */
    readonly ended: (job: Omit<PolledJob, "after">) => void
  }
>()("gateway/tasks/submission/PollPacing") {
  static readonly layer = Layer.effect(
    PollPacing,
    Effect.gen(function* () {
      const callbacks = yield* Callbacks
      const store = yield* PollPacingStore
      const all = new Map<string, PollShares>()

      const sharesOf = (queue: string): PollShares => {
        const known = all.get(queue)
        if (known !== undefined) return known
        const made = new PollShares()
        all.set(queue, made)
        return made
      }

      const read = Effect.fnUntraced(function* (
        shares: PollShares,
        queue: string,
        { accountId, callbacks: scheme }: VendorAccount
      ) {
        const began = performance.now()
        shares.replace(yield* store.waiting(queue))
        if (callbacks.isOn && scheme !== undefined) {
          const calledAt = yield* store.calledAt(accountId)
          shares.calledAt = Option.getOrElse(calledAt, () => Number.NEGATIVE_INFINITY)
        }
        shares.readAgainMillis = Math.max(readMillis, (performance.now() - began) * readShare)
      })

      const dueFrom = (now: number, job: PolledJob, change: 0 | 1): Effect.Effect<DateTime.Utc> => {
        const { account, after, upstreamModel, userId } = job
        const own = Math.min(Duration.toMillis(after), longestMillis)
        const { name, spacingMillis } = pollQueue(account, upstreamModel)
        const isCalled = callbacks.isOn && account.callbacks !== undefined
        if (spacingMillis === undefined && !isCalled) {
          return Effect.succeed(DateTime.makeUnsafe(now + own))
        }
        const shares = sharesOf(name)
        const paced = () => {
          if (change === 1) shares.add(userId, 1)
          const wasCalled = isCalled && Math.abs(now - shares.calledAt) < calledMillis
          const millis = wasCalled ? longestMillis : own
          const share =
            spacingMillis === undefined
              ? 0
              : shares.intervalMillis(userId, 1000 / spacingMillis, now)
          return DateTime.makeUnsafe(now + Math.max(millis, share))
        }
        if (Math.abs(now - shares.readAt) < shares.readAgainMillis) return Effect.succeed(paced())
        shares.readAt = now
        return Effect.map(bestEffort(read(shares, name, account)), paced)
      }
      const due = (job: PolledJob, change: 0 | 1) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) => dueFrom(now, job, change))

      return PollPacing.of({
        first: (job) => due(job, 1),
        next: (job) => due(job, 0),
        ended: ({ account, upstreamModel, userId }) =>
          all.get(pollQueue(account, upstreamModel).name)?.add(userId, -1)
      })
    })
  )
}

const longestMillis = Duration.toMillis(pollIntervalMax)

/**
 * The interval at which the jobs of other processes are counted. It grows so that counting takes at most one percent of
 * the time.
 */
const readMillis = 10_000
const readShare = 100

/** A vendor that sent a callback within this time is expected to send more. */
const calledMillis = 120_000

/** While the store is unavailable, the previous counts are used. */
const bestEffort = (work: Effect.Effect<void, StoreUnavailable>): Effect.Effect<void> =>
  Effect.catch(work, (error) => Effect.logDebug("Counting jobs at a vendor failed", error))
