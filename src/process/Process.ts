import { Clock, Context, DateTime, Duration, Effect, Layer, Option, Queue, Schedule } from "effect"
import { AppConfig } from "../config/Config.ts"
import { fault } from "../config/Setting.ts"
import { DatabaseClock } from "../db/DatabaseClock.ts"
import { callLeaseSeconds, heartbeatSeconds, ownerDeadSeconds } from "../domain/Limits.ts"
import type { Problem, StoreUnavailable } from "../domain/Problem.ts"
import { CallLease } from "./CallLease.ts"
import { makeMeasureSkew } from "./ClockSkew.ts"
import { Hints } from "./Hints.ts"
import { makeOutage } from "./Outage.ts"
import { makeFiberPlaces } from "./Places.ts"
import { isReadable, makeProcessId } from "./ProcessId.ts"
import { ProcessStore } from "./ProcessStore.ts"
import type { DutyInterval, News } from "./ProcessStore.ts"
import { Secrets } from "./Secrets.ts"
import { compareWith, StoreProgress } from "./StoreProgress.ts"

const dead = { seconds: ownerDeadSeconds }

/**
 * Writes the first heartbeat. A process that cannot read what the others encrypt would sign no webhook, and they not
 * those of its own. One whose heartbeat does not come again was killed, and is waited for: a supervisor may give up
 * after some failed starts. ADR 0222
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
  // The last look enters, unless one that is refused has come
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
    "set the value that they have"
  )
})

/** Rows of processes are kept for so long after their end (ADR 0104). */
const processRowHours = 24

const newsKinds = ["catalog", "drains", "faults"] as const
/** Of accounts that came or left only a hint tells: who needs one that it does not know looks. */
export type NewsKind = (typeof newsKinds)[number] | "accounts"

/** This process: its id owns tasks and attempts while its heartbeat is recent. */
export class Process extends Context.Service<
  Process,
  {
    readonly id: string
    /**
     * A process with a heartbeat older than this is dead. Returns the epoch, so that no
     * process counts as dead, while this process has not written its own heartbeats
     * without a gap for as long: then the store or this process was away, and missing
     * heartbeats of others prove nothing.
     */
    readonly aliveSince: Effect.Effect<DateTime.Utc, StoreUnavailable>
    /** The same for calls and reservations, whose leases last longer. ADR 0270. */
    readonly callsAliveSince: Effect.Effect<DateTime.Utc, StoreUnavailable>
    /**
     * What one process does for all of them, once in each interval of so many seconds. Returns the wait for
     * the next turn of this process, which comes with a heartbeat. ADR 0202.
     */
    readonly duty: (duty: DutyInterval) => Effect.Effect<Effect.Effect<void>>
    /** The wait until another process has become dead; it ends in all processes, at once. */
    readonly deaths: Effect.Effect<Effect.Effect<void>>
    /** The wait until something of this kind has changed: a hint says so, or a heartbeat. */
    readonly changed: (kind: NewsKind) => Effect.Effect<Effect.Effect<void>>
    /** Something of this kind was changed here. */
    readonly publishChange: (kind: NewsKind) => void
    /** Called at each heartbeat while tasks wait for their next step. */
    readonly onWaiting: (handler: () => void) => void
    /**
     * The last heartbeat of this process is not older than that of a dead one may be. If it is, as after a
     * pause, others free what it claims now.
     */
    readonly isAlive: () => boolean
    /**
     * Counts the silences after which others may have released the holds of its calls. Cheap. A hold of before the
     * last one has to be taken again.
     */
    readonly silences: () => number
    /** Writes a heartbeat, in addition to the regular ones. */
    readonly confirm: Effect.Effect<void, StoreUnavailable>
    /**
     * Now, or a time of this process's clock, by the clock of the database as of the last heartbeat, in milliseconds:
     * for what others judge, be they processes or the receivers of signatures.
     */
    readonly databaseMillis: (localMillis?: number) => number
    /** At the last heartbeat this process had tasks in hand. */
    readonly ownedTasks: () => boolean
    /** Succeeds when the store answers and this process's heartbeats are written. For `/readyz`. */
    readonly ready: Effect.Effect<void, Problem>
  }
>()("gateway/process/Process") {
  /**
   * Writes a heartbeat every few seconds. At the end of the scope the process is recorded as ended, so
   * that what it owned is free at once.
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
      const fork = yield* makeFiberPlaces
      const hints = yield* Hints
      const news = yield* makeNews
      const outage = makeOutage()
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
        // Else the next heartbeat sees it
        if (untilDeath < heartbeatSeconds * 1000) {
          fork(
            Effect.delay(Effect.sync(news.died), Duration.millis(untilDeath + deathMarginMillis))
          )
        }
      })
      const leave = Effect.flatMap(clock.now, (now) => store.leave(id, now))
      // Before it enters: a start that is interrupted leaves no row of a process that lives
      yield* Effect.addFinalizer(() => Effect.ignore(leave))
      // One process locks the embedded store's folder: every earlier process is dead
      if (database._tag === "Embedded") yield* store.deleteAll
      else {
        yield* enter(id, secrets, store)
        const now = yield* clock.now
        yield* store.deleteOld(DateTime.subtract(now, { hours: processRowHours }))
      }
      yield* beat(false)
      // One that was alone sends its hints from now on
      hints.publishUnsafe("begun", id)
      yield* beat(true).pipe(
        Effect.andThen(outage.ended),
        Effect.catchCause(outage.failed),
        Effect.repeat(Schedule.spaced(Duration.seconds(heartbeatSeconds))),
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

/** The loops of all nouns have begun by then. */
const firstTurn = Duration.millis(200)

/** A timer may be early by so much. */
const deathMarginMillis = 20

/** What heartbeats bring, for those who wait for it. */
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

/** Two heartbeats further apart than this, or a clock that was set back, are more than a late timer. */
const gapMillis = (ownerDeadSeconds * 1000) / 2

const isSteady = (newest: number, now: number): boolean => now >= newest && now - newest < gapMillis

/** When a lease that ends now began; the epoch while this process's own heartbeats have had a gap. */
const leaseStart =
  (own: { readonly newest: number; readonly steadySince: number }, seconds: number) =>
  (time: DateTime.Utc): DateTime.Utc => {
    const now = DateTime.toEpochMillis(time)
    const isReliable = isSteady(own.newest, now) && own.steadySince <= now - ownerDeadSeconds * 1000
    return DateTime.makeUnsafe(isReliable ? now - seconds * 1000 : 0)
  }
