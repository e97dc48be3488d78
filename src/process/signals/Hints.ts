import { Clock, Context, Deferred, Duration, Effect, Layer, Option, Schema } from "effect"
import { SecureRandom } from "effect/crypto"
import { Batcher } from "../../db/Batcher.ts"
import { DirectConnection, notificationChannel } from "../../db/DirectConnection.ts"
import { ownerDeadSeconds } from "../../domain/limits/Limits.ts"

/** The kinds of hints. Each comment says what the key is. */
export type HintTopic =
  /** The id of a task whose state changed. */
  | "task"
  /** The id of a due task that its process does not take. */
  | "run"
  /** Empty: a stopping process has handed over tasks. */
  | "left"
  /** The id of a task that was ended from outside. */
  | "stop"
  /** The id of an endpoint with due deliveries. */
  | "endpoint"
  /** What changed: the adopted catalog, drained accounts or account faults. */
  | "news"
  /** The id of a process that has started. */
  | "begun"
  /** The id of an API key that was changed or revoked. */
  | "key"
  /** The id of a user who changed whether calls are kept. */
  | "calls"
  /** JSON with what a response revealed about an account. */
  | "account"

interface HintsService {
  /** Sends a hint to the other processes soon. Never waits or fails. */
  readonly publishUnsafe: (topic: HintTopic, key: string) => void
  /** Receives the hints of other processes. The handler must not throw. */
  readonly subscribe: (topic: HintTopic, handler: (key: string) => void) => void
}

/**
 * Notifies the other processes. Hints may be lost, so every waiter also polls. The default has no other processes.
 * ADR 0178.
 */
export const Hints = Context.Reference<HintsService>("gateway/process/Hints", {
  defaultValue: () => ({ publishUnsafe: () => {}, subscribe: () => {} })
})

interface Hint {
  readonly topic: HintTopic
  readonly key: string
}

/** The minimum time between the starts of two statements. Hints that arrive in between share the next one. */
const roundMillis = 10

/** The maximum number of hints in one statement. */
const hintsPerRoundMax = 10_000

/** How long a process without peers waits before it checks for others again. */
const aloneMillis = 1000

/** Below Postgres's limit: notifications must be shorter than 8000 bytes. */
const payloadBytesMax = 7000

/** How long the probe waits for a notification that this process sent to itself. */
const probeTimeout = Duration.seconds(2)

const Message = Schema.fromJsonString(
  Schema.TupleWithRest(Schema.Tuple([Schema.String, Schema.String]), [Schema.String])
)
const decodeMessage = Schema.decodeUnknownOption(Message)

/** Sends nothing, and so commits nothing, if there is no other process. */
const send = `
  SELECT pg_notify($1, payload) AS sent FROM unnest($2::text[]) AS payload
  WHERE (
    SELECT count(*) FROM processes
    WHERE heartbeat_at > clock_timestamp() - make_interval(secs => $3)
  ) > 1`

/** Uses `NOTIFY` on the direct connection; without one, there are no hints. */
export const layer = Layer.effect(
  Hints,
  Effect.gen(function* () {
    const direct = yield* DirectConnection
    return Option.isNone(direct) ? Hints.defaultValue() : yield* make(direct.value)
  })
)

const make = Effect.fnUntraced(function* (
  direct: Option.Option.Value<typeof DirectConnection.Service>
) {
  const clock = yield* Clock.Clock
  /** Identifies this process, because it also receives its own notifications. */
  const sender = SecureRandom.uuidV4Unsafe()
  const probed = yield* Deferred.make<void>()
  const handlers = new Map<string, Array<(key: string) => void>>()
  let aloneAt = Number.NEGATIVE_INFINITY

  direct.onNotification((payload) => {
    const message = decodeMessage(payload)
    if (Option.isNone(message)) return
    const [from, topic, ...keys] = message.value
    if (from === sender) return void (topic === "probe" && Deferred.doneUnsafe(probed, Effect.void))
    aloneAt = Number.NEGATIVE_INFINITY
    for (const handle of handlers.get(topic) ?? []) keys.forEach(handle)
  })

  const publish = Effect.fnUntraced(
    function* (hints: ReadonlyArray<Hint>) {
      const payloads = [...Map.groupBy(hints, ({ topic }) => topic)].flatMap(([topic, some]) =>
        payloadsOf(sender, topic, [...new Set(some.map(({ key }) => key))])
      )
      const sent = yield* direct.query(send, [notificationChannel, payloads, ownerDeadSeconds])
      if (sent.length === 0) aloneAt = clock.currentTimeMillisUnsafe()
    },
    Effect.catchCause((cause) => Effect.logDebug("Hints were not sent", cause))
  )
  const batches = yield* Batcher.makeDetached({
    run: (hints: ReadonlyArray<Hint>) => Effect.as(publish(hints), hints),
    itemsMax: hintsPerRoundMax,
    runsMax: 1,
    intervalMillis: roundMillis
  })
  // Also sends what a process publishes while it stops
  yield* Effect.addFinalizer(() => batches.settled)
  yield* Effect.forkScoped(probe(direct, sender, Deferred.await(probed)))

  return {
    publishUnsafe: (topic, key) => {
      // Compares in both directions, because the clock may be set back
      if (Math.abs(clock.currentTimeMillisUnsafe() - aloneAt) < aloneMillis) return
      batches.add({ topic, key })
    },
    subscribe: (topic, handler) => {
      const known = handlers.get(topic)
      if (known === undefined) handlers.set(topic, [handler])
      else known.push(handler)
    }
  } satisfies HintsService
})

/**
 * Detects a pooler in transaction mode, behind which `LISTEN` succeeds but nothing arrives. If the connection is not
 * open, the log says why.
 */
const probe = (
  direct: Option.Option.Value<typeof DirectConnection.Service>,
  sender: string,
  arrived: Effect.Effect<void>
) =>
  direct
    .query("SELECT pg_notify($1, $2)", [notificationChannel, JSON.stringify([sender, "probe"])])
    .pipe(
      Effect.andThen(arrived),
      Effect.timeout(probeTimeout),
      Effect.catchCause(() =>
        direct.isOpen()
          ? Effect.logWarning(
              "Notifications of other processes do not arrive, as happens behind a pooler in transaction mode: their changes are noticed a second later"
            )
          : Effect.void
      )
    )

const payloadsOf = (
  sender: string,
  topic: HintTopic,
  keys: ReadonlyArray<string>
): ReadonlyArray<string> => {
  const payload = JSON.stringify([sender, topic, ...keys])
  if (Buffer.byteLength(payload) <= payloadBytesMax) return [payload]
  // A single key that is too long is dropped
  if (keys.length <= 1) return []
  const half = Math.ceil(keys.length / 2)
  return [
    ...payloadsOf(sender, topic, keys.slice(0, half)),
    ...payloadsOf(sender, topic, keys.slice(half))
  ]
}
