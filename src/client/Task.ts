import { ServerError } from "./Errors.ts"
import { builtInModels } from "./schema.ts"
import type { ModelInputs, TaskError, TaskResult } from "./schema.ts"

/**
 * The name of a model in the built-in catalog, or any model as `vendor/model` (its path ends with `generation`) or
 * `vendor/model/edit`.
 */
export type ModelName = keyof ModelInputs | (`${string}/${string}` & {})

/** The body of a create. It is typed for models in the built-in catalog; for others it is any object. */
export type InputOf<Model extends ModelName> = Model extends keyof ModelInputs
  ? ModelInputs[Model]
  : Readonly<Record<string, unknown>>

/** Identifies a task, as items of `tasks.list()` also do. It is plain data that you can store with your order. */
export interface TaskRef {
  readonly id: string
  readonly vendor: string
  readonly model: string
  readonly action: "generation" | "edit" | "responses" | "batches"
}

/** The state of a task at a given time. docs/reference/tasks.md#result */
export interface Task extends TaskRef {
  readonly status: "pending" | "processing" | "completed" | "failed"
  /** ISO 8601. */
  readonly created_at: string
  readonly updated_at: string
  /** Present only when `status` is `failed`. */
  readonly error?: TaskError
  /** URLs that are valid for 24 hours. Empty unless `status` is `completed` and the model generates images. */
  readonly images: ReadonlyArray<string>
  readonly videos: ReadonlyArray<string>
  readonly audios: ReadonlyArray<string>
  /** 3D files. */
  readonly meshes: ReadonlyArray<string>
  /** JSON documents. */
  readonly documents: ReadonlyArray<string>
  /** The metadata that was sent with the create. */
  readonly metadata?: Readonly<Record<string, string>>
  /** Credits held or charged. Absent if the task comes from a stream. */
  readonly cost?: string
  /** Whether the simulator runs the task. */
  readonly sandbox: boolean
}

/** The vendor, model and action of a model name. */
export const placeOf = (name: string): Omit<TaskRef, "id"> => {
  if (isBuiltIn(name)) return { model: name, ...builtInModels[name] }
  const [vendor = "", model = "", action = "generation", ...others] = name.split("/")
  const isAction = action === "generation" || action === "edit"
  if (vendor === "" || model === "" || !isAction || others.length > 0) {
    throw new TypeError(`"${name}" is not a built-in model; name others as vendor/model`)
  }
  return { vendor, model, action }
}

const isBuiltIn = (name: string): name is keyof ModelInputs => Object.hasOwn(builtInModels, name)

export const pathOf = ({ action, model, vendor }: Omit<TaskRef, "id">, id?: string): string => {
  const [first, second] = [vendor, model].map(encodeURIComponent)
  const path = `/vendors/${first}/v1/${second}/${action}`
  return id === undefined ? path : `${path}/${encodeURIComponent(id)}`
}

export const isEnded = ({ status }: Task): boolean => status === "completed" || status === "failed"

const isResult = (body: unknown): body is TaskResult =>
  typeof body === "object" && body !== null && "task_info" in body

/** The value of a header such as `X-Service-Cost`, whatever the service's name is. */
export const serviceHeader = (headers: Headers, name: string): string | undefined => {
  for (const [header, value] of headers) {
    if (header.startsWith("x-") && header.endsWith(`-${name}`)) return value
  }
  return undefined
}

/** The header that refuses a create or a call that costs more. */
export const maxCostHeaders = (
  serviceName: string,
  maxCost: string | undefined
): Record<string, string> =>
  maxCost === undefined ? {} : { [`x-${serviceName}-max-cost`]: maxCost }

export const notTheGateway = (status: number): ServerError =>
  new ServerError({ status, title: "The response is not the gateway's", detail: "" })

/** Parses a task; `body` is the JSON of a create, of GET, of a cancel or of an event in a stream. */
export const taskOf = (
  { action, model, vendor }: Omit<TaskRef, "id">,
  body: unknown,
  status: number,
  headers: Headers
): Task => {
  if (!isResult(body)) throw notTheGateway(status)
  const { metadata, task_info: info } = body
  const cost = serviceHeader(headers, "cost")
  return {
    id: info.id,
    vendor,
    model,
    action,
    // The response to a create may not contain a status
    status: info.status ?? "pending",
    created_at: info.created_at,
    updated_at: info.updated_at,
    ...(info.error === undefined ? {} : { error: info.error }),
    images: body.images ?? [],
    videos: body.videos ?? [],
    audios: body.audios ?? [],
    meshes: body.meshes ?? [],
    documents: body.documents ?? [],
    ...(metadata === undefined ? {} : { metadata }),
    ...(cost === undefined ? {} : { cost }),
    sandbox: serviceHeader(headers, "sandbox") === "true"
  }
}
