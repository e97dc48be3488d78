import { bounded } from "./Clock.ts"
import { ConflictError, retryAfterOf, TaskFailedError, TimeoutError } from "./Errors.ts"
import { openEvents } from "./EventStream.ts"
import { newIdempotencyKey } from "./Keys.ts"
import { encodeBody } from "./Media.ts"
import type { FilterOf, List, Requests, WriteOptions } from "./Requests.ts"
import type { Quote, TaskListItem, TaskTimeline } from "./schema.ts"
import {
  isEnded,
  maxCostHeaders,
  notTheGateway,
  pathOf,
  placeOf,
  serviceHeader,
  taskOf
} from "./Task.ts"
import type { InputOf, ModelName, Task, TaskRef } from "./Task.ts"
import type { ClientRequest, RequestOptions } from "./Transport.ts"

/** A task as returned by its create. */
export interface CreatedTask extends Task {
  /** The idempotency key of the create. For 24 hours, the same create with this key returns this task. */
  readonly idempotencyKey: string
  /** Whether the task already existed, because an earlier create with the same key created it. */
  readonly replayed: boolean
  /** Available credits after the hold. */
  readonly balance?: string
}

export interface CreateOptions extends WriteOptions {
  /**
   * Credits, such as `7.50`. A create that costs more is refused.
   * docs/reference/keys-and-limits.md#maximum-of-a-request
   */
  readonly maxCost?: string | undefined
}

export interface WaitOptions extends RequestOptions {
  /**
   * The total time in milliseconds. After it the call rejects with `TimeoutError`, and the task continues. By default
   * there is none, because the gateway ends every task by `TASK_DEADLINE`.
   */
  readonly deadline?: number | undefined
  /** Called with the task after each observed change of state, including the last one. */
  readonly onProgress?: ((task: Task) => void) | undefined
  /** Whether to poll instead of opening a stream. */
  readonly poll?: boolean | undefined
}

/** Seconds between polls if the response has no `Retry-After`. docs/reference/tasks.md#polling */
const pollSeconds = 2

/** Generation jobs. docs/reference/tasks.md */
export class Tasks {
  readonly #requests: Requests
  readonly #serviceName: string

  constructor(requests: Requests, serviceName: string) {
    this.#requests = requests
    this.#serviceName = serviceName
  }

  /**
   * Creates a task, which costs credits. Each call has an `Idempotency-Key`, so the client's own retries return the
   * same task. After `ConnectionError` or `ServerError` it is unknown whether the task exists: call again with the
   * error's `idempotencyKey`.
   */
  async create<Model extends ModelName>(
    model: Model,
    body: InputOf<Model>,
    options: CreateOptions = {}
  ): Promise<CreatedTask> {
    const { idempotencyKey = newIdempotencyKey(), maxCost, ...others } = options
    const place = placeOf(model)
    const {
      body: result,
      headers,
      status
    } = await this.#requests.transport.send({
      ...others,
      method: "POST",
      path: pathOf(place),
      headers: maxCostHeaders(this.#serviceName, maxCost),
      body: await encodeBody(body),
      idempotencyKey,
      isRepeatable: true
    })
    const balance = serviceHeader(headers, "balance")
    return {
      ...taskOf(place, result, status, headers),
      idempotencyKey,
      replayed: headers.get("idempotency-replayed") === "true",
      ...(balance === undefined ? {} : { balance })
    }
  }

  /** Returns what a create would cost, without creating anything. docs/reference/tasks.md#dry-run */
  async quote<Model extends ModelName>(
    model: Model,
    body: InputOf<Model>,
    options: RequestOptions = {}
  ): Promise<Quote["quote"]> {
    const reply = await this.#requests.transport.send({
      ...options,
      method: "POST",
      path: `${pathOf(placeOf(model))}?dry_run=true`,
      body: await encodeBody(body),
      isRepeatable: true
    })
    if (!isQuote(reply.body)) throw notTheGateway(reply.status)
    return reply.body.quote
  }

  /** Returns the current state of the task. A failed task does not reject. */
  async get(task: TaskRef, options: RequestOptions = {}): Promise<Task> {
    return (await this.#poll(task, options)).polled
  }

  /**
   * Yields the task now and after each observed change of state until it ends. Uses the event stream. If streams are
   * blocked, polls as often as `Retry-After` allows. A failed task does not reject.
   */
  async *watch(
    task: TaskRef,
    { poll = false, ...options }: RequestOptions & { readonly poll?: boolean | undefined } = {}
  ): AsyncGenerator<Task> {
    const { signal } = this.#requests.transport.settings(options)
    let seen: string | undefined
    for (let streams = !poll; ;) {
      let isStreamed = false
      for await (const streamed of streams ? this.#stream(task, options) : []) {
        isStreamed = true
        if (streamed.status !== seen) yield streamed
        seen = streamed.status
        if (isEnded(streamed)) return
      }
      // If the stream delivered nothing, something in between buffers it
      streams = isStreamed
      const { polled, retryAfter } = await this.#poll(task, options)
      if (polled.status !== seen) yield polled
      seen = polled.status
      if (isEnded(polled)) return
      await this.#requests.transport.sleep(retryAfter * 1000, signal)
    }
  }

  /**
   * Waits until the task is completed. Rejects with `TaskFailedError`, with `TimeoutError`, or with the reason of the
   * signal. After the last two the task continues, and you can wait for it again.
   */
  async wait(task: TaskRef, options: WaitOptions = {}): Promise<Task> {
    const { deadline: timeout, onProgress, ...others } = options
    const { clock } = this.#requests.transport
    const { signal } = this.#requests.transport.settings(options)
    const late = () => new TimeoutError(lateDetails(timeout), task)
    const ended = await bounded({ clock, signal, timeout, late }, async (ending) => {
      let last: Task | undefined
      for await (const seen of this.watch(task, { ...others, signal: ending })) {
        onProgress?.(seen)
        last = seen
      }
      return last
    })
    if (ended === undefined) throw late()
    if (ended.error === undefined) return ended
    const { code, detail, title } = ended.error
    throw new TaskFailedError({ status: 200, code, title, detail }, ended)
  }

  /**
   * Creates a task and waits for it. `onProgress` is first called with the created task. The deadline includes the
   * create; if it passes before the response, the `TimeoutError` has no task, but the `idempotencyKey` of the create.
   */
  async run<Model extends ModelName>(
    model: Model,
    body: InputOf<Model>,
    options: CreateOptions & WaitOptions = {}
  ): Promise<Task> {
    const { deadline, idempotencyKey = newIdempotencyKey(), onProgress, ...others } = options
    const { clock } = this.#requests.transport
    const { signal } = this.#requests.transport.settings(options)
    const start = clock.now()
    const late = () => new TimeoutError({ ...unansweredDetails(deadline), idempotencyKey })
    const created = await bounded({ clock, signal, timeout: deadline, late }, (ending) =>
      this.create(model, body, { ...others, idempotencyKey, signal: ending })
    )
    onProgress?.(created)
    return this.wait(created, {
      ...others,
      deadline: deadline === undefined ? undefined : start + deadline - clock.now(),
      // The first task of the stream usually repeats the state that the create returned
      onProgress: (task) => {
        if (task.status !== created.status) onProgress?.(task)
      }
    })
  }

  /**
   * Cancels the task: it fails with code 4004, and its hold is released. Rejects with `ConflictError` if the task has
   * ended in another way. A task that was already cancelled is returned.
   */
  async cancel(task: TaskRef, options: RequestOptions = {}): Promise<Task> {
    try {
      const { body, headers, status } = await this.#requests.transport.send({
        ...requestOf("DELETE", task),
        ...options
      })
      return taskOf(task, body, status, headers)
    } catch (error) {
      if (!(error instanceof ConflictError)) throw error
      const found = await this.get(task, options)
      if (found.error?.code !== cancelledCode) throw error
      return found
    }
  }

  /** The tasks of the key's user. Requires scope `manage`. docs/reference/tasks.md#history */
  list(filter?: FilterOf<"GET /manage/v1/tasks">, options?: RequestOptions): List<TaskListItem> {
    return this.#requests.list("GET /manage/v1/tasks", filter, options)
  }

  /**
   * A task with its body, changes of state, vendor attempts, ledger entries and deliveries. Requires scope `manage`.
   */
  timeline(id: string, options: RequestOptions = {}): Promise<TaskTimeline> {
    return this.#requests.request("GET /manage/v1/tasks/{id}", { ...options, path: { id } })
  }

  async #poll(ref: TaskRef, options: RequestOptions) {
    const { transport } = this.#requests
    const { body, headers, status } = await transport.send({ ...requestOf("GET", ref), ...options })
    return {
      polled: taskOf(ref, body, status, headers),
      retryAfter: retryAfterOf(headers, transport.clock.now()) ?? pollSeconds
    }
  }

  /** Yields the tasks of the event stream until it ends or is cut off. */
  async *#stream(ref: TaskRef, options: RequestOptions): AsyncGenerator<Task> {
    const { transport } = this.#requests
    const request = { ...requestOf("GET", ref), ...options }
    try {
      for await (const data of openEvents(transport, request)) {
        yield taskOf(ref, JSON.parse(data), 200, new Headers())
      }
    } catch {
      transport.settings(options).signal?.throwIfAborted()
    }
  }
}

const cancelledCode = 4004

const requestOf = (method: "GET" | "DELETE", task: TaskRef): ClientRequest => ({
  method,
  path: pathOf(task, task.id),
  isRepeatable: true
})

const lateDetails = (deadline: number | undefined) => ({
  status: 0,
  title: "The task did not end in time",
  detail: `${deadline} ms have passed; the task continues`
})

const unansweredDetails = (deadline: number | undefined) => ({
  status: 0,
  title: "The task was not created in time",
  detail: `${deadline} ms have passed; repeat with the same idempotency key to find out whether it exists`
})

const isQuote = (body: unknown): body is Quote =>
  typeof body === "object" && body !== null && "quote" in body
