import type { PgClient } from "@effect/sql-pg"
import { Array, DateTime, Effect, Option, Schema } from "effect"
import { Batcher } from "../../db/Batcher.ts"
import { groupCommit, hex, outcomes, retryDeadlock } from "../../db/BatchWrites.ts"
import { Bytes, Micro, rowOf, rowsOf, toDate } from "../../db/Rows.ts"
import { storeFailures } from "../../db/StoreFailures.ts"
import { EndpointId } from "../../domain/Ids.ts"
import type { TaskBatchId } from "../../domain/Ids.ts"
import type { StoreUnavailable } from "../../domain/Problem.ts"
import { overSpendLimit, SpendRefusal } from "../../domain/SpendLimit.ts"
import { encodeCandidates } from "../../domain/task/Candidate.ts"
import { KeyEnding } from "../../users/ApiKeys.ts"
import type { Acceptance, AcceptOutcome, TaskStore } from "../TaskStore.ts"

const Row = Schema.Struct({
  n: Schema.Int,
  outcome: Schema.Literals([
    "accepted",
    "replayed",
    "balance_too_low",
    "too_many_running",
    "too_many_running_of_user",
    "model",
    "file_gone",
    ...KeyEnding.literals,
    ...SpendRefusal.literals
  ]),
  requestHash: Schema.NullOr(Bytes),
  body: Schema.NullOr(Schema.String),
  cost: Schema.NullOr(Micro),
  balance: Schema.NullOr(Micro),
  endpoints: Schema.NullOr(Schema.Array(EndpointId))
})

/** Implements `TaskStore.accept`. Creates that arrive together share a commit. */
export const makeAccept = (sql: PgClient.PgClient) =>
  Batcher.make({
    ...groupCommit,
    run: (creates: ReadonlyArray<Create>) => {
      const calls = creates.flatMap((create) =>
        create.map((acceptance, place) => ({ acceptance, place, together: create.length }))
      )
      return sql`SELECT * FROM task_accept_many(${sql.json(calls.map(toCall))})`.pipe(
        rowsOf(Row),
        Effect.map((rows) => {
          const all = outcomes(calls, rows, (row, { acceptance }) => outcomeOf(row, acceptance))
          let next = 0
          return creates.map(({ length }) => outcomeOfAll(all.slice(next, (next += length))))
        }),
        retryDeadlock,
        storeFailures
      )
    }
  }).pipe(Effect.map(({ call }) => call))

/** Tasks that are created together, usually one. */
type Create = Array.NonEmptyReadonlyArray<Acceptance>

/** All tasks share the outcome of the first one. The balances are those after the last one. */
const outcomeOfAll = (all: ReadonlyArray<AcceptOutcome>): AcceptOutcome => {
  const [first = { _tag: "BalanceTooLow" }] = all
  if (first._tag !== "Accepted") return first
  const accepted = all.filter((it) => it._tag === "Accepted")
  const endpoints = new Set(accepted.flatMap((it) => it.endpoints))
  return { ...first, ...accepted.at(-1), endpoints: [...endpoints] }
}

/** The outcome of a batch. A refusal gives the index of the refused task. */
export type BatchOutcome =
  | Extract<AcceptOutcome, { readonly _tag: "Accepted" | "Replayed" }>
  | (Exclude<AcceptOutcome, { readonly _tag: "Accepted" | "Replayed" }> & { readonly n: number })

/**
 * Implements `TaskBatchStore.accept`. A batch does not share a commit with other creates, because its statement is long
 * already.
 */
export const makeAcceptBatch =
  (sql: PgClient.PgClient) =>
  (
    id: TaskBatchId,
    acceptances: ReadonlyArray<Acceptance>
  ): Effect.Effect<BatchOutcome, StoreUnavailable> =>
    sql`SELECT * FROM task_batch_accept(${id}, ${sql.json(acceptances.map(callOf))})`.pipe(
      rowOf(Row),
      Effect.flatMap((row) => {
        const acceptance = acceptances[row.n]
        if (acceptance === undefined) return Effect.die("the row of a batch names no task")
        const outcome = outcomeOf(row, acceptance)
        return Effect.succeed(
          outcome._tag === "Accepted" || outcome._tag === "Replayed"
            ? outcome
            : { ...outcome, n: row.n }
        )
      }),
      retryDeadlock,
      storeFailures
    )

const ReplayRow = Schema.Struct({
  requestHash: Bytes,
  body: Schema.String,
  cost: Micro,
  balance: Micro
})

/** Implements `TaskStore.findReplay`. Returns nothing for a key or a secret that has ended. */
export const makeFindReplay =
  (sql: PgClient.PgClient): TaskStore["Service"]["findReplay"] =>
  ({ apiKeyId, key, now, rotation, since, userId }) =>
    sql`
      SELECT request_hash, body, cost, balance FROM idempotency_keys
      WHERE user_id = ${userId} AND key = ${key} AND created_at >= ${toDate(since)}
        AND EXISTS (
          SELECT FROM api_keys WHERE id = ${apiKeyId} AND revoked_at IS NULL AND disabled_at IS NULL
            AND (expires_at IS NULL OR expires_at > ${toDate(now)})
            AND (rotations = ${rotation}
              OR rotations = ${rotation}::int + 1 AND previous_key_until > ${toDate(now)}))`.pipe(
      rowsOf(ReplayRow),
      Effect.map((rows) =>
        Option.map(Array.head(rows), (row) => ({ _tag: "Replayed" as const, ...row }))
      ),
      storeFailures
    )

interface Call {
  readonly acceptance: Acceptance
  /** The index among tasks that are created together. */
  readonly place: number
  readonly together: number
}

const toCall = ({ acceptance, place, together }: Call, n: number) => ({
  ...callOf(acceptance, n),
  ...(together === 1 ? {} : place === 0 ? { together } : { follows: true })
})

const callOf = (a: Acceptance, n: number) => ({
  n,
  task: a.taskId,
  user_id: a.userId,
  api_key: a.apiKeyId,
  rotation: a.rotation,
  vendor: a.vendor,
  model: a.model,
  action: a.action,
  kind: a.resultKind,
  body: a.body,
  // Passed as text, because `jsonb` would reorder the members
  metadata: a.metadata == null ? null : JSON.stringify(a.metadata),
  ...webhookOf(a.webhook),
  sandbox: a.sandbox,
  price: String(a.price),
  deadline: DateTime.formatIso(a.deadlineAt),
  trace: a.traceId,
  now: DateTime.formatIso(a.now),
  event: a.event.id,
  event_body: hex(a.event.body),
  batch: a.batchId,
  running_max: a.runningMax,
  user_running_max: a.userRunningMax,
  owner: a.owner,
  queue: a.queue,
  catalog: a.catalogId,
  ...(a.candidates === undefined
    ? {}
    : { candidates: encodeCandidates(a.candidates), candidate: 0 }),
  ...(a.allowedBy === undefined ? {} : { models: a.allowedBy }),
  ...(a.fileUntil === undefined ? {} : { file_until: DateTime.formatIso(a.fileUntil) }),
  ...Option.match(a.idempotency, {
    onNone: () => ({}),
    onSome: ({ key, requestHash, responseBody, since }) => ({
      key,
      request_hash: hex(requestHash),
      answer: responseBody,
      key_since: DateTime.formatIso(since)
    })
  })
})

/** Task webhooks share the limits of the user's webhooks at the same origin. */
const webhookOf = (webhook: Acceptance["webhook"]) =>
  webhook == null
    ? {}
    : {
        webhook: {
          url: webhook.url,
          origin: new URL(webhook.url).origin,
          events: webhook.events,
          format: webhook.format
        },
        webhook_secret: hex(webhook.secret),
        webhook_preview: webhook.secretPreview
      }

const isOverSpendLimit = Schema.is(SpendRefusal)
const isKeyEnding = Schema.is(KeyEnding)

const outcomeOf = (row: typeof Row.Type | undefined, { now }: Acceptance): AcceptOutcome => {
  if (row?.outcome === "too_many_running") return { _tag: "TooManyRunning", of: "API key" }
  if (row?.outcome === "too_many_running_of_user") return { _tag: "TooManyRunning", of: "user" }
  if (row?.outcome === "model") return { _tag: "ModelNotAllowed" }
  if (row?.outcome === "file_gone") return { _tag: "FileGone" }
  if (isKeyEnding(row?.outcome)) return { _tag: "KeyEnded", how: row.outcome }
  if (row === undefined || row.balance === null) return { _tag: "BalanceTooLow" }
  if (row.outcome === "accepted") {
    const { balance, cost: left, endpoints } = row
    return { _tag: "Accepted", balance, endpoints: endpoints ?? [], left }
  }
  if (isOverSpendLimit(row.outcome)) return overSpendLimit(row.outcome, row.balance, now)
  return row.requestHash !== null && row.body !== null && row.cost !== null
    ? {
        _tag: "Replayed",
        requestHash: row.requestHash,
        body: row.body,
        cost: row.cost,
        balance: row.balance
      }
    : { _tag: "BalanceTooLow" }
}
