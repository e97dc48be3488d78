import { Array as Arr, DateTime, Duration, Effect, Option, Schema } from "effect"
import { AppConfig } from "../../config/Config.ts"
import { TaskRow } from "../../db/TaskRow.ts"
import type { Credits } from "../../domain/Credits.ts"
import type { TaskId } from "../../domain/Ids.ts"
import { idempotencyHours } from "../../domain/limits/Limits.ts"
import type { RequestHash } from "../../domain/RequestHash.ts"
import type { TaskAction } from "../../domain/task/Task.ts"
import { createdBodyOf, taskResult } from "../../domain/task/TaskBody.ts"
import type { TaskFacts } from "../../domain/task/TaskBody.ts"
import type { TaskWebhook } from "../../domain/task/TaskWebhook.ts"
import { Drain } from "../../process/Drain.ts"
import { Process } from "../../process/heartbeat/Process.ts"
import { Secrets } from "../../process/secrets/Secrets.ts"
import type { Principal } from "../../users/ApiKeys.ts"
import { taskEvent } from "../../webhooks/Events.ts"
import { makeSecret } from "../../webhooks/WebhookSecrets.ts"
import type { OwnedTask } from "../running/OwnedTask.ts"
import { TaskInbox } from "../running/TaskInbox.ts"
import { submitQueue } from "../running/TaskQueue.ts"
import { TaskStore } from "../TaskStore.ts"
import type { Acceptance, AcceptedWebhook } from "../TaskStore.ts"
import { candidatesOf } from "./Offer.ts"
import type { Offer, PricedRequest } from "./Offer.ts"

/** The path of a model: `/vendors/{vendor}/v1/{model}/{action}`. */
export interface ModelPath {
  readonly vendor: string
  readonly model: string
  readonly action: TaskAction
}

export interface CreateRequest extends AcceptRequest {
  /** The parsed JSON body. */
  readonly body: unknown
}

/** A create: the caller, the request and its limits. */
export interface AcceptRequest {
  readonly principal: Principal
  readonly path: ModelPath
  readonly traceId: string
  readonly idempotency: Option.Option<RequestHash & { readonly key: string }>
  /** How many tasks to create with this body, all or none. Default 1. */
  readonly count?: number
  /** The most that the client allows the request to cost in total. */
  readonly maxCost: Credits | undefined
}

/** The part of an offer that is needed to accept a task. */
export interface AcceptedOffer extends Pick<Offer, "alias" | "catalogId" | "sandbox"> {
  /** The model names that the API key must allow. Absent: those of the alias, or that of the path. */
  readonly allowedBy?: ReadonlyArray<string>
  /** The minimum time that its tasks have to finish. Absent: `TASK_DEADLINE`. */
  readonly deadline?: Duration.Duration
  /** When the file that the body names expires. Absent: its expiry stays. */
  readonly fileUntil?: DateTime.Utc
}

/** Idempotency records created before this time have expired. */
export const idempotencySince = (now: DateTime.Utc) =>
  DateTime.subtractDuration(now, Duration.hours(idempotencyHours))

/** A create that has been validated and priced. */
export interface PricedCreate {
  readonly request: Pick<AcceptRequest, "path" | "principal" | "traceId">
  readonly offer: AcceptedOffer
  readonly taskId: TaskId
  readonly priced: PricedRequest
}

/** Builds the row of an accepted task, without its owner and idempotency record. */
export const makeAcceptance = Effect.gen(function* () {
  const { concurrentTasksPerKey, concurrentTasksPerUser, taskDeadline } = yield* AppConfig
  const secrets = yield* Secrets
  return Effect.fnUntraced(function* (
    { offer, priced, request, taskId }: PricedCreate,
    now: DateTime.Utc
  ) {
    const { path, principal } = request
    const { alias, allowedBy = alias?.allowedBy, catalogId, deadline, fileUntil, sandbox } = offer
    const { body, metadata, models, most, webhook } = priced
    const kind = models[0].entry.result
    const aliased =
      alias === undefined ? undefined : { candidates: candidatesOf(priced, taskId, now) }
    const task: TaskFacts = {
      id: taskId,
      status: "pending",
      createdAt: now,
      updatedAt: now,
      error: null,
      result: null,
      metadata
    }
    const acceptance: Omit<Acceptance, "idempotency"> = {
      ...path,
      resultKind: kind,
      taskId,
      userId: principal.userId,
      apiKeyId: principal.apiKeyId,
      rotation: principal.rotation,
      body: yield* Effect.orDie(decodeJson(body)),
      metadata,
      webhook: webhook === null ? null : withSecret(webhook, secrets),
      sandbox,
      price: most,
      ...aliased,
      ...(allowedBy === undefined ? {} : { allowedBy }),
      ...(fileUntil === undefined ? {} : { fileUntil }),
      catalogId,
      deadlineAt: DateTime.addDuration(now, Duration.max(taskDeadline, deadline ?? taskDeadline)),
      traceId: request.traceId,
      now,
      queue: submitQueue(aliased?.candidates[0] ?? path).name,
      runningMax: concurrentTasksPerKey,
      userRunningMax: concurrentTasksPerUser,
      event: taskEvent(path, taskResult(task, kind), now)
    }
    return { acceptance, task }
  })
})

/** Accepts in one transaction: idempotency record, tasks, holds, events and deliveries. */
export const makeAccept = Effect.gen(function* () {
  const acceptanceOf = yield* makeAcceptance
  const drain = yield* Drain
  const inbox = yield* TaskInbox
  const process = yield* Process
  const tasks = yield* TaskStore

  // Otherwise the task waits for any process: this one has no capacity, is draining or has no heartbeat
  const isTaken = (queue: string) => !drain.isDraining() && process.isAlive() && inbox.admits(queue)

  /** Accepts the creates of one request. */
  return Effect.fnUntraced(function* (
    { idempotency, path }: AcceptRequest,
    creates: Arr.NonEmptyReadonlyArray<PricedCreate>
  ) {
    const now = yield* DateTime.now
    const accepting = yield* Effect.forEach(creates, (create) =>
      Effect.map(acceptanceOf(create, now), ({ acceptance, task }) => ({
        acceptance,
        task,
        isTaken: isTaken(acceptance.queue)
      }))
    )
    const responseBody = createdBodyOf(
      Arr.map(accepting, ({ task }) => task),
      path.action
    )
    const outcome = yield* tasks.accept(
      Arr.map(accepting, ({ acceptance, isTaken }, n) => ({
        ...acceptance,
        ...(isTaken ? { owner: process.id } : {}),
        idempotency: Option.map(n === 0 ? idempotency : Option.none(), (it) => ({
          ...it,
          responseBody,
          since: idempotencySince(now)
        }))
      }))
    )
    const accepted = accepting.map(({ acceptance, isTaken }) => ({
      id: acceptance.taskId,
      queue: acceptance.queue,
      owned: isTaken ? acceptedTask(acceptance) : undefined
    }))
    return { outcome, accepted, responseBody }
  })
})

type Accepting = Omit<
  Acceptance,
  "event" | "idempotency" | "owner" | "runningMax" | "userRunningMax" | "webhook"
>

/** The task as stored after acceptance with an owner. */
const acceptedTask = (task: Accepting): OwnedTask => ({
  task: new TaskRow({
    ...task,
    id: task.taskId,
    status: "pending",
    catalogId: task.catalogId ?? null,
    candidates: task.candidates ?? null,
    candidate: task.candidates === undefined ? null : 0,
    metadata: task.metadata ?? null,
    captured: null,
    result: null,
    error: null,
    createdAt: task.now,
    startedAt: null,
    updatedAt: task.now
  }),
  epoch: 1,
  deadlineAt: task.deadlineAt,
  attempt: Option.none(),
  queue: task.queue,
  startsAt: task.now,
  accountId: null,
  slotHeld: false,
  inputs: {},
  inDoubt: false
})

/** Generates a signing secret, which is used only if the user does not have one yet. */
const withSecret = (webhook: TaskWebhook, secrets: Secrets["Service"]): AcceptedWebhook => {
  const { encrypted, preview } = makeSecret(secrets)
  return { ...webhook, secret: encrypted, secretPreview: preview }
}

const decodeJson = Schema.decodeUnknownEffect(Schema.Json)
