import { DateTime, Duration, Effect, Option, Schema, Stream } from "effect"
import { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "../../../contract/Api.ts"
import { WalletView } from "../../../contract/manage/WalletApi.ts"
import { WebhookDelivery } from "../../../contract/manage/WebhookDeliveriesApi.ts"
import { TaskListItem } from "../../../contract/TasksApi.ts"
import { StreamedEventType } from "../../../domain/Event.ts"
import type { TaskId, UserId } from "../../../domain/Ids.ts"
import {
  userStreamItemsMax,
  userStreamSeconds,
  userStreamsMax
} from "../../../domain/limits/SignInLimits.ts"
import { invalid, Problem } from "../../../domain/Problem.ts"
import { FairShares } from "../../../domain/shares/FairShares.ts"
import { TaskHistory } from "../../../tasks/history/TaskHistory.ts"
import type { TaskSummary } from "../../../tasks/history/TaskHistory.ts"
import { Wallet } from "../../../wallet/Wallet.ts"
import { Deliveries } from "../../../webhooks/Deliveries.ts"
import { EventLog } from "../../../webhooks/EventLog.ts"
import type { EventPosition } from "../../../webhooks/EventLog.ts"
import { makeAuthenticateManagement, requireReader } from "../../server/access/Authentication.ts"
import { eventStream } from "../../server/EventStream.ts"
import type { Sent } from "../../server/EventStream.ts"
import { showWallet } from "../wallet/WalletHandlers.ts"
import { showDelivery } from "../webhooks/WebhookDeliveriesHandlers.ts"
import { parsePosition, publishedEvents } from "./PublishedEvents.ts"
import { showListed } from "./TasksHandlers.ts"

/** Streams changes of a user's newest tasks and deliveries, and of the wallet. */
export const layer = HttpApiBuilder.group(
  Api,
  "events",
  Effect.fnUntraced(function* (handlers) {
    const current = yield* makeCurrent
    const authenticate = yield* makeAuthenticateManagement
    const open = new FairShares(userStreams)
    const log = yield* EventLog
    return handlers.handleAll({
      streamEvents: Effect.fnUntraced(function* ({ query, request }) {
        const { events: wanted, since, ...reader } = query
        const userId = yield* requireReader(reader)
        // The request's scope closes with the stream
        yield* Effect.mapError(open.hold(userId), () => tooMany)
        // The stream ends when the key or the session has ended
        const mayStill = Effect.provideService(
          authenticate(request, false),
          HttpServerRequest.HttpServerRequest,
          request
        )
        if (wanted === undefined && since !== undefined) return yield* sinceAlone
        const lastId = request.headers["last-event-id"]
        const position = lastId === undefined ? undefined : parsePosition(lastId)
        if (
          lastId !== undefined &&
          (position === undefined || !(yield* isIn(log, userId, position)))
        )
          return yield* foreignId
        const filter = {
          types: typesIn(wanted),
          since: Option.fromUndefinedOr(since),
          position: Option.fromUndefinedOr(position)
        }
        const texts: Stream.Stream<string | Sent, unknown> =
          wanted === undefined
            ? changes(Effect.andThen(mayStill, current.items(userId)), current.texts(userId))
            : publishedEvents(log, userId, filter, mayStill)
        return eventStream(texts, {})
      })
    })
  })
)

/**
 * Whether the position exists in the log. A position beyond its end belongs to another gateway or to a store that was
 * restored since; the stream would wait silently.
 */
const isIn = (log: EventLog["Service"], userId: UserId, { seq }: EventPosition) =>
  Effect.map(log.position(userId, Option.none()), (end) => seq <= end.seq)

const typesIn = (names: string | undefined): ReadonlyArray<StreamedEventType> =>
  StreamedEventType.literals.filter((type) => names?.split(",").includes(type))

const sinceAlone = invalid([{ pointer: "#/since", detail: "Expected only with events" }])

const foreignId = invalid([
  { pointer: "#/headers/last-event-id", detail: "Expected an id of this stream" }
])

/** Limits the streams of each user. The limit of connections bounds their total. */
const userStreams = { capacity: Infinity, aloneMax: 1, perCallerMax: userStreamsMax, queueMax: 0 }

const tooMany = new Problem({
  code: 1201,
  detail: `This user has ${userStreamsMax} streams of events open in this process`,
  retryAfterSeconds: 5
})

/** The current state of a task, a delivery or the wallet. `mark` changes whenever the state does. */
interface Item {
  readonly id: string
  readonly mark: string
  /** Only present for a task. */
  readonly task?: TaskId
  readonly text: (now: DateTime.Utc, task: TaskSummary | undefined) => string
}

const encodeTask = Schema.encodeSync(TaskListItem)
const encodeWallet = Schema.encodeSync(WalletView)
const encodeDelivery = Schema.encodeSync(WebhookDelivery)

/**
 * The newest tasks and deliveries, and the wallet, oldest first. Both lists are read through an index, so the cost does
 * not depend on their length.
 */
const makeCurrent = Effect.gen(function* () {
  const tasks = yield* TaskHistory
  const deliveries = yield* Deliveries
  const wallet = yield* Wallet
  const limit = userStreamItemsMax
  const items = Effect.fnUntraced(function* (userId: UserId) {
    const found = yield* tasks.search(userId, { limit, isBrief: true })
    const sent = yield* deliveries.search(userId, {}, { before: Option.none(), limit })
    const shownWallet = encodeWallet(showWallet(yield* wallet.get(userId)))
    return [
      {
        id: "wallet",
        mark: JSON.stringify(shownWallet),
        text: () => JSON.stringify({ type: "wallet", data: shownWallet })
      },
      ...found.rows.map((row): Item => ({
        id: row.id,
        mark: row.status,
        task: row.id,
        text: (now, task = row) =>
          JSON.stringify({ type: "task", data: encodeTask(showListed(now)(task)) })
      })),
      ...sent.rows.map((row): Item => {
        const shown = encodeDelivery(showDelivery(row))
        const { attempt_count, next_attempt_at, status } = shown
        return {
          id: row.id,
          mark: `${status} ${attempt_count} ${next_attempt_at}`,
          text: () => JSON.stringify({ type: "delivery", data: shown })
        }
      })
    ].toReversed()
  })
  /** Reads prompts only for the tasks that are about to be sent. */
  const texts = (userId: UserId) =>
    Effect.fnUntraced(function* (changed: ReadonlyArray<Item>) {
      const now = yield* DateTime.now
      const ids = changed.flatMap(({ task }) => (task === undefined ? [] : [task]))
      const rows = ids.length === 0 ? [] : yield* tasks.some(userId, ids)
      const byId = new Map<string, TaskSummary>(rows.map((row) => [row.id, row]))
      return changed.map(({ id, text }) => text(now, byId.get(id)))
    })
  return { items, texts }
})

/** Sends all current items, then each item that has changed. Ends when reading fails. */
const changes = <E, R, E2, R2>(
  items: Effect.Effect<ReadonlyArray<Item>, E, R>,
  texts: (changed: ReadonlyArray<Item>) => Effect.Effect<ReadonlyArray<string>, E2, R2>
) =>
  Stream.unfold<Marks | undefined, ReadonlyArray<string>, E | E2, R | R2>(undefined, (before) =>
    Effect.gen(function* () {
      const found = yield* before === undefined ? items : Effect.delay(items, pause)
      const changed = found.filter(({ id, mark }) => before?.get(id) !== mark)
      return [yield* texts(changed), new Map(found.map(({ id, mark }) => [id, mark]))] as const
    })
  ).pipe(
    Stream.flattenIterable,
    Stream.catchCause(() => Stream.empty)
  )

/** The last mark sent for each item. */
type Marks = ReadonlyMap<string, string>

const pause = Duration.seconds(userStreamSeconds)
