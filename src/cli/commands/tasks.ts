import { Duration, Effect, Option, Schema, Stream, FileSystem, Path } from "effect"
import { Command, Flag } from "effect/cli"
import { HttpClient } from "effect/http"
import { accessSync, constants } from "node:fs"
import { extensionOf } from "../../catalog/media/Formats.ts"
import type { TaskRef } from "../../client/index.ts"
import { isEnded, pathOf } from "../../client/Task.ts"
import { makeFolder } from "../../db/MakeFolder.ts"
import { TaskResult } from "../../domain/task/Task.ts"
import { foreign, Management } from "../Management.ts"
import type { Answer } from "../Management.ts"
import { CommandFault, failed } from "../terminal/Fault.ts"
import { note, print } from "../terminal/Output.ts"
import { makeProgress } from "../terminal/Progress.ts"
import { Json } from "../terminal/Settings.ts"
import { details, table } from "../terminal/Table.ts"
import { id, ofUser, pageFlags, printList, readBy, timeFlags } from "./Lists.ts"

const task = id("task", "the id of a task")

const list = Command.make(
  "list",
  {
    status: Flag.Literals("status", ["pending", "processing", "completed", "failed"]).pipe(
      Flag.withDescription("In this state"),
      Flag.optional
    ),
    model: Flag.String("model").pipe(Flag.withDescription("Of this model"), Flag.optional),
    vendor: Flag.String("vendor").pipe(Flag.withDescription("Of this vendor"), Flag.optional),
    key: Flag.String("api-key-id").pipe(
      Flag.withDescription("Created with this key"),
      Flag.optional
    ),
    trace: Flag.String("trace-id").pipe(Flag.withDescription("Of this trace"), Flag.optional),
    metadata: Flag.KeyValuePair("metadata").pipe(
      Flag.withDescription("With this metadata, such as order=17; may be repeated"),
      Flag.withDefault({})
    ),
    ...timeFlags,
    ...pageFlags,
    ...ofUser
  },
  ({ cursor, key, limit, metadata, model, since, status, trace, until, user, vendor }) => {
    const filters = {
      status: Option.getOrUndefined(status),
      model: Option.getOrUndefined(model),
      vendor: Option.getOrUndefined(vendor),
      api_key_id: Option.getOrUndefined(key),
      trace_id: Option.getOrUndefined(trace),
      since: Option.getOrUndefined(since),
      until: Option.getOrUndefined(until),
      ...Object.fromEntries(
        Object.entries(metadata).map(([name, value]) => [`metadata[${name}]`, value])
      )
    }
    const read = (api: Management["Service"], page: object) =>
      api.call("listTasks", readBy(user, { ...filters, ...page }))
    return printList(read, { limit, cursor }, [
      { title: "ID", of: (it) => it.id },
      { title: "MODEL", of: (it) => `${it.vendor}/${it.model}` },
      { title: "STATUS", of: (it) => it.status },
      { title: "COST", of: (it) => it.receipt.captured, isRight: true },
      { title: "CREATED", of: (it) => it.created_at },
      {
        title: "ERROR",
        of: (it) => (it.error === null ? "" : `${it.error.code} ${it.error.title}`)
      }
    ])
  }
).pipe(Command.withDescription("List tasks, newest first"))

/** The events in a task's history, in chronological order. */
const happenings = (it: Answer<"getTask">) =>
  [
    ...it.moves.map(({ at, status }) => ({ at, what: status, about: "" })),
    ...it.attempts.map(({ account_id, failure_class, n, started_at, state }) => ({
      at: started_at,
      what: `submit ${n}`,
      about: `${account_id}: ${state}${failure_class === null ? "" : ` (${failure_class})`}`
    })),
    ...it.entries.map(({ amount, created_at, kind }) => ({
      at: created_at,
      what: `wallet ${kind}`,
      about: `${amount} credits`
    })),
    ...it.deliveries.map(({ created_at, id, status, type }) => ({
      at: created_at,
      what: type,
      about: `${id}: ${status}`
    }))
  ].toSorted((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0))

const get = Command.make(
  "get",
  { task, ...ofUser },
  Effect.fnUntraced(function* ({ task, user }) {
    const api = yield* Management
    const value = yield* api.call("getTask", { params: { id: task }, ...readBy(user) })
    const text = [
      details([
        ["id", value.id],
        ["model", `${value.vendor}/${value.model}`],
        ["status", value.status],
        ...(value.error === null
          ? []
          : [
              ["error", `${value.error.code} ${value.error.title}: ${value.error.detail}`] as const
            ]),
        ["held", value.receipt.held],
        ["charged", value.receipt.captured],
        ["trace", value.trace_id],
        ...(value.result ?? []).map((url) => ["result", url] as const)
      ]),
      "",
      table(happenings(value), [
        { title: "AT", of: (it) => it.at },
        { title: "WHAT", of: (it) => it.what },
        { title: "", of: (it) => it.about }
      ])
    ].join("\n")
    yield* print(value, text)
  })
).pipe(Command.withDescription("Show a task with its timeline"))

/** The task as the client identifies it. docs/reference/tasks.md#paths */
const taskRef = Effect.fnUntraced(function* (taskId: string) {
  const api = yield* Management
  const request = { as: "user", params: { id: taskId } } as const
  const { action, id, model, vendor } = yield* api.call("getTask", request)
  return { id, vendor, model, action }
})

/** Reads a task as GET returns it. */
const readTask = Effect.fnUntraced(function* (task: TaskRef) {
  const api = yield* Management
  const answer = yield* api.use(
    "user",
    (client) => client.request(`GET /${pathOf(task, task.id).slice(1)}`),
    "tasks"
  )
  return yield* Effect.all({ document: decodeJson(answer), value: decodeResult(answer) }).pipe(
    Effect.mapError(() => foreign(api.url, `task ${task.id} has another form`))
  )
})

const decodeJson = Schema.decodeUnknownEffect(Schema.Json)
const decodeResult = Schema.decodeUnknownEffect(TaskResult)

export const out = Flag.Directory("out").pipe(
  Flag.withMetavar("FOLDER"),
  Flag.withDescription("Save the results in this folder")
)

/** Whether only completed tasks are charged. A response or a batch may have been paid for before it ended otherwise. */
const isMedia = ({ action }: TaskRef): boolean => action === "generation" || action === "edit"

/** The outcome of the command: it fails if the task failed. */
const outcomeOf = (
  ref: TaskRef,
  document: Schema.Json,
  task: TaskResult,
  files: ReadonlyArray<string>
) =>
  Effect.gen(function* () {
    const api = yield* Management
    const { error, id: taskId, status } = task.task_info
    if (status === "failed") {
      return yield* new CommandFault({
        message: `Task ${taskId} failed: ${error?.code ?? ""} ${error?.title ?? ""}: ${error?.detail ?? ""}`,
        remedy: `${isMedia(ref) ? "Nothing was charged; the" : "The"} codes are at ${api.url}/docs/errors`,
        problem: document
      })
    }
    const lines = files.length > 0 ? files.map((it) => `Saved ${it}`) : resultsOf(task)
    yield* print({ task: document, files }, [`Task ${taskId} is completed`, ...lines].join("\n"))
  })

/** Retries of a request while waiting. Enough for a restart of the service, about a minute. */
const waitRetries = 15

/** The command that waits for the task and saves its results in the same folder. */
const waitFor = ({ id }: TaskRef, folder: Option.Option<string>): string =>
  [`gateway tasks wait ${id}`, ...Option.toArray(folder).map((it) => `--out ${quoted(it)}`)].join(
    " "
  )

/** A word of a POSIX shell. */
const quoted = (word: string): string =>
  /^[\w./~:-]+$/u.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`

/** Shows a task's progress until it has ended. Ctrl-C leaves it running and prints how to continue. */
const watchTask = Effect.fnUntraced(function* (task: TaskRef, folder: Option.Option<string>) {
  const api = yield* Management
  const progress = yield* makeProgress(`Task ${task.id}`, yield* Json)
  const stillRuns = `Task ${task.id} is still running. To wait for it: ${waitFor(task, folder)}`
  return yield* api
    .use(
      "user",
      ({ tasks }) =>
        tasks.watch(task, { maxRetries: waitRetries }).pipe(
          Stream.tap(({ status }) => progress.show(status)),
          Stream.runForEachWhile((seen) => Effect.succeed(!isEnded(seen)))
        ),
      "tasks"
    )
    .pipe(
      Effect.ensuring(progress.end),
      Effect.onInterrupt(() => note(stillRuns)),
      Effect.tapError(() => note(stillRuns))
    )
})

/** Waits for a task, saves its results, and exits according to its outcome. */
export const followTask = Effect.fnUntraced(function* (
  task: TaskRef,
  {
    folder,
    timeout
  }: { readonly folder: Option.Option<string>; readonly timeout: Duration.Duration }
) {
  yield* Effect.timeoutOrElse(watchTask(task, folder), {
    duration: timeout,
    orElse: () => failed(`Task ${task.id} did not end within ${Duration.format(timeout)}`)
  })
  const again = `Task ${task.id} has ended. To see it again: ${waitFor(task, folder)}`
  const { document, files, value } = yield* Effect.gen(function* () {
    const ended = yield* readTask(task)
    const isSaved = Option.isSome(folder) && ended.value.task_info.status === "completed"
    return { ...ended, files: isSaved ? yield* saveResults(ended.value, folder.value) : [] }
  }).pipe(
    Effect.onInterrupt(() => note(again)),
    Effect.tapError(() => note(again))
  )
  yield* outcomeOf(task, document, value, files)
})

/** Longer than any task can take. */
export const timeoutDefault = Duration.hours(24)

const wait = Command.make(
  "wait",
  {
    task,
    out: Flag.optional(out),
    timeout: Flag.String("timeout").pipe(
      Flag.withMetavar("DURATION"),
      Flag.withDescription("Stop waiting after this time, such as 5 minutes; the task continues"),
      Flag.withSchema(Schema.DurationFromString),
      Flag.withDefault(timeoutDefault)
    )
  },
  Effect.fnUntraced(function* ({ out, task, timeout }) {
    yield* followTask(yield* taskRef(task), { folder: out, timeout })
  })
).pipe(Command.withDescription("Wait for a task; exit code 0 if it is completed, 1 if it failed"))

const cancel = Command.make(
  "cancel",
  { task },
  Effect.fnUntraced(function* ({ task }) {
    const api = yield* Management
    const ref = yield* taskRef(task)
    yield* api.use("user", ({ tasks }) => tasks.cancel(ref), "tasks")
    const { document } = yield* readTask(ref)
    yield* print(document, `Cancelled ${task}${isMedia(ref) ? "; nothing is charged" : ""}`)
  })
).pipe(Command.withDescription("Cancel a task that has not ended"))

/** docs/reference/tasks.md */
export const tasks = Command.make("tasks").pipe(
  Command.withDescription("List, show, wait for and cancel tasks"),
  Command.withSubcommands([list, get, wait, cancel]),
  Command.provide(Management.layer)
)

/** The URIs of a result. */
const resultsOf = (task: TaskResult): ReadonlyArray<string> =>
  task.images ??
  task.videos ??
  task.audios ??
  task.meshes ??
  task.documents ??
  task.responses ??
  task.batches ??
  []

const unusable = (folder: string, { message }: { readonly message: string }) =>
  failed(`${folder}: ${message}`, "Use --out to name a writable folder")

/** Creates the folder of results. Fails if it cannot be written to, so before a task is bought for it. */
export const makeWritable = (folder: string) =>
  Effect.try({
    try: () => {
      makeFolder(folder, 0o777)
      accessSync(folder, constants.W_OK)
    },
    catch: (cause) => unusable(folder, cause instanceof Error ? cause : { message: String(cause) })
  })

/** The route of a result that only its user may read: a file of a batch. */
const fileRoute = /v1\/files\/[^/]+\/content$/u

/** Reads such a file from the service with the user's key, which is sent nowhere else. */
const readFile = Effect.fnUntraced(function* (route: string) {
  const api = yield* Management
  const text = yield* api.use("user", (client) => client.request(`GET /${route}`), "files")
  return new TextEncoder().encode(String(text))
})

/**
 * Downloads the results of a task into a folder. Each file is named after the task, so an existing file is the same
 * result and is overwritten.
 */
const saveResults = Effect.fnUntraced(function* (task: TaskResult, folder: string) {
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const http = yield* HttpClient.HttpClient
  const usable = Effect.mapError((error: { readonly message: string }) => unusable(folder, error))
  yield* makeWritable(folder)
  const download = Effect.fnUntraced(function* (url: string) {
    const [route] = task.batches === undefined ? [] : (fileRoute.exec(url) ?? [])
    if (route !== undefined) return { bytes: yield* readFile(route), extension: "jsonl" }
    const response = yield* http.get(url)
    if (response.status !== 200) return yield* notThere(url, `HTTP ${response.status}`)
    const type = response.headers["content-type"]?.split(";")[0]?.trim() ?? ""
    return { bytes: new Uint8Array(yield* response.arrayBuffer), extension: extensionOf(type) }
  })
  return yield* Effect.forEach(resultsOf(task), (url, at) =>
    Effect.gen(function* () {
      const { bytes, extension } = yield* download(url)
      const file = path.join(folder, `${task.task_info.id}-${at + 1}.${extension}`)
      // Written under another name first, so that the file is complete or absent
      yield* usable(files.writeFile(`${file}.part`, bytes))
      yield* usable(files.rename(`${file}.part`, file))
      return file
    }).pipe(Effect.catchTag("HttpClientError", ({ message }) => notThere(url, message)))
  )
})

const notThere = (url: string, why: string) =>
  failed(
    `The result cannot be downloaded (${why}): ${url.split("?")[0]}`,
    "Results are kept for 24 hours; check BASE_URL of the service, with which the address starts"
  )
