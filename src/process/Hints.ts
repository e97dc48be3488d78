import { Clock, Context, Deferred, Duration, Effect, Latch, Layer, Option, Schema } from "effect"
import { SecureRandom } from "effect/crypto"
import { DirectConnection, notificationChannel } from "../db/DirectConnection.ts"
import { ownerDeadSeconds } from "../domain/Limits.ts"

/** Kinds of hints; the comment describes the key of each. */
export type HintTopic =
  /** A task that has moved. */
  | "task"
  /** A due task that its process does not take. */
  | "run"
  /** No key: a stopping process has handed over tasks. */
  | "left"
  /** A task ended from outside. */
  | "stop"
  /** Endpoints with due deliveries. */
  | "endpoint"
  /** What changed: the adopted catalog, drained accounts, faults of accounts. */
  | "news"
  /** A process that has started. */
  | "begun"
  /** A revoked API key. */
  | "key"
  /** JSON: what a response of an account has shown. */
  | "account"

interface HintsService {
  /** Sends to the other processes soon. Never waits, never fails. */
  readonly publishUnsafe: (topic: HintTopic, key: string) => void
  /** Receives the hints of other processes. The handler must not throw. */
  readonly subscribe: (topic: HintTopic, handler: (key: string) => void) => void
}

/**
 * Notifies the other processes. A hint may be lost, so every waiter also polls. Default: there is no other
 * process. ADR 0178.
 */
export const Hints = Context.Reference<HintsService>("gateway/process/Hints", {
  defaultValue: () => ({ publishUnsafe: () => {}, subscribe: () => {} })
})

/** Pause between two statements; hints that arrive in the meantime share the next one. */
const roundMillis = 10

/** A process that was alone checks for others again after this time. */
const aloneMillis = 1000

/** Postgres refuses a notification of 8000 bytes. */
const payloadBytesMax = 7000

/** Longest wait for a notification that this process sends to itself. */
const probeTimeout = Duration.seconds(2)

const Message = Schema.fromJsonString(
  Schema.TupleWithRest(Schema.Tuple([Schema.String, Schema.String]), [Schema.String])
)
const decodeMessage = Schema.decodeUnknownOption(Message)

/** Without another process, nothing is sent or committed. */
const send = `
  SELECT pg_notify($1, payload) AS sent FROM unnest($2::text[]) AS payload
  WHERE (
    SELECT count(*) FROM processes
    WHERE heartbeat_at > clock_timestamp() - make_interval(secs => $3)
  ) > 1`

/** Uses `NOTIFY` on the direct connection, if there is one. */
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
  /** Identifies this process, which also receives its own notifications. */
  const sender = SecureRandom.uuidV4Unsafe()
  const probed = yield* Deferred.make<void>()
  const handlers = new Map<string, Array<(key: string) => void>>()
  const waiting = new Map<HintTopic, Set<string>>()
  const busy = yield* Latch.make()
  let aloneAt = Number.NEGATIVE_INFINITY

  direct.onNotification((payload) => {
    const message = decodeMessage(payload)
    if (Option.isNone(message)) return
    const [from, topic, ...keys] = message.value
    if (from === sender) return void (topic === "probe" && Deferred.doneUnsafe(probed, Effect.void))
    aloneAt = Number.NEGATIVE_INFINITY
    for (const handle of handlers.get(topic) ?? []) keys.forEach(handle)
  })

  const flush = Effect.suspend(() => {
    if (waiting.size === 0) return Effect.void
    const payloads = [...waiting].flatMap(([topic, keys]) => payloadsOf(sender, topic, [...keys]))
    waiting.clear()
    return Effect.map(
      direct.query(send, [notificationChannel, payloads, ownerDeadSeconds]),
      (sent) => {
        if (sent.length === 0) aloneAt = clock.currentTimeMillisUnsafe()
      }
    )
  }).pipe(Effect.catchCause((cause) => Effect.logDebug("Could not send hints", cause)))

  yield* Effect.addFinalizer(() => flush)
  yield* busy.await.pipe(
    Effect.andThen(busy.close),
    Effect.andThen(flush),
    Effect.andThen(Effect.sleep(roundMillis)),
    Effect.forever,
    Effect.forkScoped
  )
  yield* Effect.forkScoped(probe(direct, sender, Deferred.await(probed)))

  return {
    publishUnsafe: (topic, key) => {
      // In both directions, because the clock may be set back
      if (Math.abs(clock.currentTimeMillisUnsafe() - aloneAt) < aloneMillis) return
      const keys = waiting.get(topic)
      if (keys === undefined) waiting.set(topic, new Set([key]))
      else keys.add(key)
      busy.openUnsafe()
    },
    subscribe: (topic, handler) => {
      const known = handlers.get(topic)
      if (known === undefined) handlers.set(topic, [handler])
      else known.push(handler)
    }
  } satisfies HintsService
})

/**
 * Behind a pooler in transaction mode `LISTEN` succeeds but nothing arrives. If the connection is not open, the log
 * says why.
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
              "Notifications of other processes do not arrive, as behind a pooler in transaction mode: their changes are noticed a second later"
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
  // A single key that is too long is not sent
  if (keys.length <= 1) return []
  const half = Math.ceil(keys.length / 2)
  return [
    ...payloadsOf(sender, topic, keys.slice(0, half)),
    ...payloadsOf(sender, topic, keys.slice(half))
  ]
}
