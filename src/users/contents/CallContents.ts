import { Clock, Context, DateTime, Duration, Effect, Layer, Option, Queue } from "effect"
import type { Scope } from "effect"
import { AppConfig } from "../../config/Config.ts"
import type { UserId } from "../../domain/Ids.ts"
import {
  callContentsMax,
  callContentsOpenMax,
  callContentsPerMinuteMax,
  retentionBatchesMax,
  retentionTasksMax
} from "../../domain/limits/Limits.ts"
import { problem } from "../../domain/Problem.ts"
import type { Problem, StoreUnavailable } from "../../domain/Problem.ts"
import { warnOnce } from "../../domain/WarnOnce.ts"
import { Secrets } from "../../process/secrets/Secrets.ts"
import { Hints } from "../../process/signals/Hints.ts"
import { CallContent } from "./CallContent.ts"
import type { CallText, SentRequest } from "./CallContent.ts"
import { CallContentStore } from "./CallContentStore.ts"
import { openContent, sealContent } from "./SealedContent.ts"

/** How often a process rereads which users have their calls kept, because a hint may be lost. */
const rereadSeconds = 60

/** How many calls of one user a process may record at a time. */
const shareMax = callContentsOpenMax / 4

/**
 * Requests and responses of calls, for users who have enabled this. They are only for reading: they are written after
 * the settlement, no call waits for the write, and a process that ends may lose the latest ones.
 * docs/reference/passthrough.md#requests-and-responses, ADR 0309
 */
export class CallContents extends Context.Service<
  CallContents,
  {
    /** Starts recording a call. Undefined if the user has not enabled it, or too many calls are being recorded. */
    readonly beginUnsafe: (
      user: UserId,
      call: string,
      request: SentRequest
    ) => CallContent | undefined
    /** Whether the user's calls are kept. Fails with 2005. */
    readonly isKept: (user: UserId) => Effect.Effect<boolean, Problem | StoreUnavailable>
    /** Changes the setting. Switching it off deletes the kept calls in the same transaction. Fails with 2005. */
    readonly keep: (
      user: UserId,
      isKept: boolean
    ) => Effect.Effect<boolean, Problem | StoreUnavailable>
    /** Fails with 2005. */
    readonly find: (
      user: UserId,
      call: string
    ) => Effect.Effect<CallText, Problem | StoreUnavailable>
    /** Deletes calls older than `BODY_RETENTION` or `LOG_RETENTION`. */
    readonly removeOld: Effect.Effect<void, StoreUnavailable>
  }
>()("gateway/users/CallContents") {
  static readonly layer = Layer.effect(
    CallContents,
    Effect.gen(function* () {
      const store = yield* CallContentStore
      const secrets = yield* Secrets
      const hints = yield* Hints
      const clock = yield* Clock.Clock
      const { retention } = yield* AppConfig
      const keptFor = Duration.min(
        retention.log,
        Option.getOrElse(retention.bodies, () => retention.log)
      )
      const keepers = yield* makeKeepers(store)
      const add = yield* makeWriter(store, secrets)
      const counts = new Counts()
      return CallContents.of({
        beginUnsafe: (user, call, request) => {
          if (!keepers.has(user)) return undefined
          const minute = Math.floor(clock.currentTimeMillisUnsafe() / minuteMillis)
          if (!counts.take(user, minute)) return undefined
          return new CallContent(request, (text) => {
            add({ user, call, text }, () => counts.leave(user))
          })
        },
        isKept: (user) => known(store.isKept(user), `There is no user ${user}`),
        keep: Effect.fn("CallContents.keep")(function* (user, isKept) {
          const kept = yield* known(store.keep(user, isKept), `There is no user ${user}`)
          keepers.set(user, kept)
          hints.publishUnsafe("calls", user)
          return kept
        }),
        find: Effect.fn("CallContents.find")(function* (user, call) {
          const missing = `The request and response of the call ${call.slice(0, 60)} were not kept`
          const sealed = yield* known(store.find(user, call), missing)
          // If the master key is gone, the call counts as not kept
          return yield* Effect.mapError(openContent(secrets, sealed), () => problem(2005, missing))
        }),
        removeOld: Effect.flatMap(DateTime.now, (now) =>
          store.deleteBefore(DateTime.subtractDuration(now, keptFor), retentionTasksMax)
        ).pipe(
          Effect.repeat({
            while: (removed) => removed >= retentionTasksMax,
            times: retentionBatchesMax
          }),
          Effect.asVoid
        )
      })
    })
  )
}

const known = <A>(found: Effect.Effect<Option.Option<A>, StoreUnavailable>, missing: string) =>
  Effect.flatMap(found, (it) =>
    Option.isSome(it) ? Effect.succeed(it.value) : Effect.fail(problem(2005, missing))
  )

/** The users whose calls are kept, reread at an interval and after each hint. */
const makeKeepers = Effect.fnUntraced(function* (
  store: CallContentStore["Service"]
): Effect.fn.Return<
  { readonly has: (user: UserId) => boolean; readonly set: (user: UserId, kept: boolean) => void },
  never,
  Scope.Scope
> {
  let users: Set<UserId> = new Set()
  const hints = yield* Hints
  const woken = yield* Queue.sliding<void>(1)
  hints.subscribe("calls", () => {
    Queue.offerUnsafe(woken, undefined)
  })
  const read = Effect.map(store.keepers, (ids) => {
    users = new Set(ids)
  }).pipe(warnOnce("The users whose calls are kept could not be read"))
  const wait = Effect.timeoutOption(Queue.take(woken), `${rereadSeconds} seconds`)
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(read, wait)))
  return {
    has: (user) => users.has(user),
    set: (user, kept) => {
      if (kept) users.add(user)
      else users.delete(user)
    }
  }
})

/** A call that has ended, with its complete text. */
interface EndedCall {
  readonly user: UserId
  readonly call: string
  readonly text: CallText
}

/** Writes calls one at a time, so that they use at most one connection. */
const makeWriter = Effect.fnUntraced(function* (
  store: CallContentStore["Service"],
  secrets: Secrets["Service"]
) {
  const ended = yield* Queue.unbounded<{
    readonly it: EndedCall
    readonly written: () => void
  }>()
  const write = ({ call, text, user }: EndedCall) =>
    Effect.flatMap(DateTime.now, (now) =>
      store.add({ user, call, sealed: sealContent(secrets, text) }, callContentsMax, now)
    )
  const next = Effect.flatMap(Queue.take(ended), ({ it, written }) =>
    Effect.ensuring(
      Effect.catchCause(write(it), (cause) =>
        Effect.logWarning(`The text of the call ${it.call} could not be kept`, cause)
      ),
      Effect.sync(written)
    )
  )
  yield* Effect.forkScoped(Effect.forever(next))
  return (it: EndedCall, written: () => void): void => {
    Queue.offerUnsafe(ended, { it, written })
  }
})

const minuteMillis = 60_000

/** Limits how many calls this process records at a time, and how many of each user in a minute. */
class Counts {
  #open = 0
  readonly #openOf = new Map<UserId, number>()
  #minute = 0
  #begunOf = new Map<UserId, number>()

  /** Returns false if a limit is reached. */
  take(user: UserId, minute: number): boolean {
    if (minute !== this.#minute) {
      this.#minute = minute
      this.#begunOf = new Map()
    }
    const open = this.#openOf.get(user) ?? 0
    const begun = this.#begunOf.get(user) ?? 0
    if (this.#open >= callContentsOpenMax || open >= shareMax) return false
    if (begun >= callContentsPerMinuteMax) return false
    this.#open += 1
    this.#openOf.set(user, open + 1)
    this.#begunOf.set(user, begun + 1)
    return true
  }

  leave(user: UserId): void {
    const open = (this.#openOf.get(user) ?? 1) - 1
    this.#open -= 1
    if (open === 0) this.#openOf.delete(user)
    else this.#openOf.set(user, open)
  }
}
