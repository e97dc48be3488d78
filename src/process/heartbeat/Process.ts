import {
  Clock,
  Context,
  DateTime,
  Duration,
  Effect,
  Layer,
  Option,
  Queue,
  Schedule,
  Metric
} from "effect"
import { AppConfig } from "../../config/Config.ts"
import { fault } from "../../config/Setting.ts"
import { DatabaseClock } from "../../db/DatabaseClock.ts"
import {
  callLeaseSeconds,
  heartbeatSeconds,
  ownerDeadSeconds,
  clockSkewSecondsMax
} from "../../domain/limits/Limits.ts"
import type { Problem, StoreUnavailable } from "../../domain/Problem.ts"
import { Secrets } from "../secrets/Secrets.ts"
import { Hints } from "../signals/Hints.ts"
import { makeFiberSlots } from "../SlotArray.ts"
import { CallLease } from "./CallLease.ts"
import { makeOutage } from "./Outage.ts"
import { isReadable, makeProcessId } from "./ProcessId.ts"
import { ProcessStore } from "./ProcessStore.ts"
import type { DutyInterval, News } from "./ProcessStore.ts"
import { compareWith, StoreProgress } from "./StoreProgress.ts"

const dead = { seconds: ownerDeadSeconds }

/**
 * Writes the first heartbeat. A process with a different master key is refused while processes with the other key are
 * alive, because neither could use the other's secrets. If the other process sends no further heartbeat, it was killed;
 * this waits until it counts as dead, because a supervisor may give up after a few failed starts. ADR 0222
 */
const enter = Effect.fnUntraced(function* (
  id: string,
  secrets: Secrets["Service"],
  store: ProcessStore["Service"]
) {
  const clock = yield* DatabaseClock
  const now = yield* clock.now
  const isRefused = (other: string) => !isReadable(secrets, other)
  const enterBeside = Effect.fnUntraced(function* (since: DateTime.Utc) {
    const time = yield* clock.asParameter
    return yield* store.enter(id, Option.getOrNull(time), { since, isRefused })
  })
  if ((yield* enterBeside(DateTime.subtract(now, dead))).length === 0) return
  const soon = DateTime.add(now, { milliseconds: 1 })
  // The last attempt enters, unless a foreign process has sent a heartbeat
  const foreign = yield* Effect.repeat(
    Effect.map(store.alive(soon), (ids) => ids.filter(isRefused)),
    {
      until: (ids) => ids.length > 0,
      schedule: Schedule.spaced("1 second"),
      times: ownerDeadSeconds
    }
  )
  const refused = foreign.length === 0 ? yield* enterBeside(soon) : foreign
  if (refused.length === 0) return
  return yield* fault(
    "MASTER_KEY",
    `running processes encrypt under a key that is not among these: ${refused.join(", ")}`,
    "set the same value as theirs"
  )
})

/** Reports a wrong or lost key at the start, because deliveries fail for good without the secrets that it encrypted. */
const reportLostKey = Effect.fnUntraced(function* (
  secrets: Secrets["Service"],
  newest: Option.Option<string>
) {
  if (Option.isNone(newest) || isReadable(secrets, newest.value)) return
  yield* Effect.logError(
    "MASTER_KEY: the process before this one encrypted under a key that is not among these; what it stored cannot " +
      "be read, and webhooks fail, unless gateway rotate-master-key ended since then. Remedy: stop, and run it: if it " +
      "names values, add that key; if the key is lost, rotate the secrets of all endpoints"
  )
})

/** Seconds between two heartbeats. Tests that span hours set more, for a process that is alone on its store. */
export const HeartbeatSeconds = Context.Reference<number>("gateway/process/HeartbeatSeconds", {
  defaultValue: () => heartbeatSeconds
})

/** How long the row of an ended process is kept (ADR 0104). */
const processRowHours = 24

const newsKinds = ["catalog", "drains", "faults"] as const
/** Added or removed accounts are announced by hints only: a process that needs an unknown account reads the store. */
export type NewsKind = (typeof newsKinds)[number] | "accounts"

/** This process. Its id owns tasks and attempts as long as its heartbeat is recent. */
export class Process extends Context.Service<
  Process,
  {
    readonly id: string
    /**
     * Processes without a heartbeat since this time are dead. Returns the Unix epoch, so that no process counts as
     * dead, until this process has written its own heartbeats without a gap for the same period: after a gap, the store
     * or this process was unavailable, and missing heartbeats of others prove nothing.
     */
    readonly aliveSince: Effect.Effect<DateTime.Utc, StoreUnavailable>
    /** The same for the leases of calls and reservations, which last longer. ADR 0270. */
    readonly callsAliveSince: Effect.Effect<DateTime.Utc, StoreUnavailable>
    /**
     * Work that one process does for all, once per interval in seconds. Returns the wait until this process has the
     * next turn, which comes with a heartbeat. ADR 0202.
     */
    readonly duty: (duty: DutyInterval) => Effect.Effect<Effect.Effect<void>>
    /** Waits until another process has died. Ends in all processes at the same time. */
    readonly deaths: Effect.Effect<Effect.Effect<void>>
    /** Waits until something of this kind has changed, which a hint or a heartbeat reports. */
    readonly changed: (kind: NewsKind) => Effect.Effect<Effect.Effect<void>>
    /** Announces that this process has changed something of this kind. */
    readonly publishChange: (kind: NewsKind) => void
    /** Registers a handler that is called at each heartbeat while tasks wait for their next step. */
    readonly onWaiting: (handler: () => void) => void
    /**
     * Whether this process's last heartbeat is recent enough that others consider it alive. If not, as after a pause,
     * others free what it claims now.
     */
    readonly isAlive: () => boolean
    /**
     * The number of silences after which others may have released the holds of this process's calls. Cheap. Holds from
     * before the last silence have to be taken again.
     */
    readonly silences: () => number
    /** Writes an additional heartbeat. */
    readonly confirm: Effect.Effect<void, StoreUnavailable>
    /**
     * The current time, or a time of this process's clock, converted to the database's clock as measured at the last
     * heartbeat, in milliseconds. For times that other processes or the receivers of signatures compare with their own.
     */
    readonly databaseMillis: (localMillis?: number) => number
    /** Whether this process had tasks in hand at the last heartbeat. */
    readonly ownedTasks: () => boolean
    /** Succeeds if the store responds and this process's heartbeats are written. For `/readyz`. */
    readonly ready: Effect.Effect<void, Problem>
  }
>()("gateway/process/Process") {
  /**
   * Writes a heartbeat every few seconds. When the scope closes, records that the process has ended, so that everything
   * it owned is free at once.
   */
  static readonly layer = Layer.effectContext(
    Effect.gen(function* () {
      const store = yield* ProcessStore
      const clock = yield* DatabaseClock
      const { database } = yield* AppConfig
      const measureSkew = makeMeasureSkew()
      const secrets = yield* Secrets
      const id = makeProcessId(secrets)
      const own = { newest: -Infinity, steadySince: 0, begunAt: -Infinity, aheadMillis: 0 }
      const progress: StoreProgress = { processId: id, seen: 0 }
      const compare = compareWith(store, progress)
      const local = yield* Clock.Clock
      const lease = new CallLease(local)
      const fork = yield* makeFiberSlots()
      const hints = yield* Hints
      const news = yield* makeNews
      const outage = makeOutage()
      const intervalSeconds = yield* HeartbeatSeconds
      const beat = Effect.fnUntraced(function* (takes: boolean) {
        const sentAt = lease.now()
        const time = yield* clock.asParameter
        const { seen } = progress
        const { news: read, aheadMillis } = yield* measureSkew(
          store.heartbeat(id, Option.getOrNull(time), takes ? news.duties() : [], seen)
        )
        const { at, ...found } = read
        own.aheadMillis = Option.isSome(time) ? 0 : Math.round(aheadMillis)
        const millis = DateTime.toEpochMillis(at)
        yield* compare(found, { id, seen, since: DateTime.makeUnsafe(Math.max(0, own.newest)) })
        if (!isSteady(own.newest, millis)) own.steadySince = millis
        own.newest = millis
        own.begunAt = sentAt.wall
        lease.confirmed(sentAt)
        news.read(found)
        if (found.silent === null) return
        const untilDeath = DateTime.toEpochMillis(found.silent) + ownerDeadSeconds * 1000 - millis
        // If the death is later than the next heartbeat, that heartbeat notices it
        if (untilDeath < heartbeatSeconds * 1000) {
          fork(
            Effect.delay(Effect.sync(news.died), Duration.millis(untilDeath + deathMarginMillis))
          )
        }
      })
      const leave = Effect.flatMap(clock.now, (now) => store.leave(id, now))
      // Before it enters, so that an interrupted startup leaves no row that looks alive
      yield* Effect.addFinalizer(() => Effect.ignore(leave))
      // Only one process can lock the embedded store's folder, so all earlier processes are dead
      if (database._tag === "Embedded") yield* reportLostKey(secrets, yield* store.deleteAll)
      else {
        yield* reportLostKey(secrets, yield* store.newest)
        yield* enter(id, secrets, store)
        const now = yield* clock.now
        yield* store.deleteOld(DateTime.subtract(now, { hours: processRowHours }))
      }
      yield* beat(false)
      // Tells a process that was alone that it now has to send hints
      hints.publishUnsafe("begun", id)
      yield* beat(true).pipe(
        Effect.andThen(outage.written(store.tryToWrite)),
        Effect.catchCause(outage.failed),
        Effect.repeat(Schedule.spaced(Duration.seconds(intervalSeconds))),
        Effect.delay(firstTurn),
        Effect.forkScoped
      )
      const since = (leaseSeconds: number) => Effect.map(clock.now, leaseStart(own, leaseSeconds))
      const service = Process.of({
        id,
        aliveSince: since(ownerDeadSeconds),
        callsAliveSince: since(callLeaseSeconds),
        ...news.service,
        isAlive: () =>
          Math.abs(local.currentTimeMillisUnsafe() - own.begunAt) < ownerDeadSeconds * 1000,
        silences: () => lease.silences(),
        confirm: beat(false),
        databaseMillis: (localMillis = local.currentTimeMillisUnsafe()) =>
          localMillis - own.aheadMillis,
        ready: outage.readyWith(
          store.ping,
          () => Math.abs(local.currentTimeMillisUnsafe() - own.begunAt) >= gapMillis
        )
      })
      return Context.make(Process, service).pipe(Context.add(StoreProgress, progress))
    })
  )
}

/** The first turn comes after the loops of all duties have started. */
const firstTurn = Duration.millis(200)

/** Timers may fire this many milliseconds early. */
const deathMarginMillis = 20

/** Passes the news in heartbeats on to waiters. */
const makeNews = Effect.gen(function* () {
  const hints = yield* Hints
  const duties: Array<DutyInterval & { readonly turns: Queue.Queue<void> }> = []
  const deaths: Array<Queue.Queue<void>> = []
  const changes = new Map<string, { last: string | undefined; waits: Array<Queue.Queue<void>> }>()
  const changesOf = (kind: string) => {
    const known = changes.get(kind)
    if (known !== undefined) return known
    const made = { last: undefined, waits: [] }
    changes.set(kind, made)
    return made
  }
  const waiting: Array<() => void> = []
  let owns = false
  const offer = (queue: Queue.Queue<void>) => Queue.offerUnsafe(queue, undefined)
  const tell = (kind: string) => changesOf(kind).waits.forEach(offer)
  hints.subscribe("news", tell)

  return {
    duties: () => duties,
    died: () => deaths.forEach(offer),
    read: (found: Omit<News, "at">) => {
      for (const { name, turns } of duties) if (found.duties.includes(name)) offer(turns)
      for (const kind of newsKinds) {
        const change = changesOf(kind)
        if (change.last !== undefined && change.last !== found[kind]) tell(kind)
        change.last = found[kind]
      }
      owns = found.owns
      if (found.waiting) for (const handle of waiting) handle()
    },
    service: {
      duty: (duty: DutyInterval) =>
        Effect.map(Queue.sliding<void>(1), (turns) => {
          duties.push({ ...duty, turns })
          return Queue.take(turns)
        }),
      deaths: Effect.map(Queue.sliding<void>(1), (wait) => {
        deaths.push(wait)
        return Queue.take(wait)
      }),
      changed: (kind: NewsKind) =>
        Effect.map(Queue.sliding<void>(1), (wait) => {
          changesOf(kind).waits.push(wait)
          return Queue.take(wait)
        }),
      publishChange: (kind: NewsKind) => hints.publishUnsafe("news", kind),
      onWaiting: (handler: () => void) => {
        waiting.push(handler)
      },
      ownedTasks: () => owns
    }
  }
})

/** Reads again after each change, in the background. If a read fails, the next change repeats it. */
export const readAfterEach = <A, E, R>(
  changed: Effect.Effect<void>,
  read: Effect.Effect<A, E, R>
) =>
  read.pipe(
    Effect.catchCause((cause) => Effect.logDebug("Could not read what has changed", cause)),
    (attempt) => Effect.andThen(changed, attempt),
    Effect.forever,
    Effect.forkScoped
  )

/** If two heartbeats are further apart than this, or the clock was set back, it was more than a late timer. */
const gapMillis = (ownerDeadSeconds * 1000) / 2

const isSteady = (newest: number, now: number): boolean => now >= newest && now - newest < gapMillis

/** The start of a lease that ends now. Returns the Unix epoch while this process's own heartbeats have a gap. */
const leaseStart =
  (own: { readonly newest: number; readonly steadySince: number }, seconds: number) =>
  (time: DateTime.Utc): DateTime.Utc => {
    const now = DateTime.toEpochMillis(time)
    const isReliable = isSteady(own.newest, now) && own.steadySince <= now - ownerDeadSeconds * 1000
    return DateTime.makeUnsafe(isReliable ? now - seconds * 1000 : 0)
  }

const clockSkew = Metric.gauge("gateway_clock_skew_seconds", {
  description: "How far the clock of this process is ahead of the clock of the database."
})

/** Compares the clocks at each reading. Logs when they begin to differ and when they agree again. */
const makeMeasureSkew = () => {
  let isSkewed = false
  return Effect.fnUntraced(function* <E>(read: Effect.Effect<News, E>) {
    const before = yield* Clock.currentTimeMillis
    const news = yield* read
    const now = news.at
    const after = yield* Clock.currentTimeMillis
    // The database's clock was read at some time between the two
    const aheadMillis = (before + after) / 2 - DateTime.toEpochMillis(now)
    const skew = aheadMillis / 1000
    yield* Metric.update(clockSkew, skew)
    const isNowSkewed = Math.abs(skew) - (after - before) / 2000 > clockSkewSecondsMax
    if (isNowSkewed !== isSkewed) {
      isSkewed = isNowSkewed
      const seconds = Math.abs(skew).toFixed(1)
      yield* isNowSkewed
        ? Effect.logError(
            `The clock of this process differs from the database's by ${seconds} s; synchronize it`
          )
        : Effect.logInfo("The clock of this process agrees with the database's again")
    }
    // Smaller differences can come from the round trip and from ordinary clock synchronization
    return { news, aheadMillis: isSkewed ? aheadMillis : 0 }
  })
}
