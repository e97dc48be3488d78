import { api } from "../../api/client.ts"
import { ApiFailure } from "../../api/problem.ts"
import type { Schemas } from "../../api/schema.ts"
import type { Query } from "../../router/location.ts"

export interface Place {
  readonly path: string
  readonly query?: Query
}

const isTrace = /^[0-9a-f]{32}$/u

/** `undefined`: nothing was found. Other failures are passed on. */
const orNone = async <T>(found: Promise<T>): Promise<T | undefined> => {
  try {
    return await found
  } catch (cause) {
    if (cause instanceof ApiFailure && cause.problem.status === 404) return undefined
    throw cause
  }
}

const ofTask = async (id: string): Promise<Place | undefined> => {
  const path = { id }
  const [task, call] = await Promise.all([
    orNone(api.GET("/manage/v1/tasks/{id}", { path })),
    orNone(api.GET("/manage/v1/calls/{id}", { path }))
  ])
  if (task !== undefined) return { path: `/tasks/${id}` }
  return call === undefined ? undefined : { path: `/calls/${id}` }
}

/** A single match of this trace opens by itself; several are shown as a list. */
const ofTrace = async (trace_id: string): Promise<Place | undefined> => {
  const query = { trace_id, limit: 2 }
  const [tasks, calls] = await Promise.all([
    api.GET("/manage/v1/tasks", { query }),
    api.GET("/manage/v1/calls", { query })
  ])
  const [task] = tasks.data
  const [call] = calls.data
  if (task !== undefined && tasks.data.length === 1) return { path: `/tasks/${task.id}` }
  if (task !== undefined) return { path: "/tasks", query: { trace_id } }
  if (call !== undefined && calls.data.length === 1) return { path: `/calls/${call.id}` }
  return call === undefined ? undefined : { path: "/calls", query: { trace_id } }
}

/** The page of a match, which the operator opens as its user. */
export const placeOfThing = ({ id, type, user }: Schemas["FoundThing"]): Place => {
  const query = { user_id: user.id }
  switch (type) {
    case "task":
      return { path: `/tasks/${id}`, query }
    case "call":
      return { path: `/calls/${id}`, query }
    case "task_batch":
      return { path: "/tasks", query: { ...query, q: id } }
    case "api_key":
      return { path: "/usage", query: { ...query, api_key_id: id } }
    case "webhook_endpoint":
      return { path: "/webhooks/deliveries", query: { ...query, endpoint_id: id } }
    case "webhook_delivery":
      return { path: `/webhooks/deliveries/${id}`, query }
    case "user":
    case "session":
    case "event":
      return { path: `/users/${user.id}` }
  }
}

/** Everything that has the id or trace id, and users whose address contains the text, over all users. */
export const findOverAll = async (q: string): Promise<ReadonlyArray<Schemas["FoundThing"]>> =>
  (await api.GET("/manage/v1/operator/search", { query: { q } })).data

/** The page of one of the signed-in user's ids. */
export const placeOf = async (text: string): Promise<Place | undefined> => {
  const id = text.trim()
  if (id.startsWith("whd_")) return { path: `/webhooks/deliveries/${id}` }
  if (id.startsWith("whe_")) return { path: "/webhooks/deliveries", query: { endpoint_id: id } }
  if (id.startsWith("key_")) return { path: "/usage", query: { api_key_id: id } }
  if (id.startsWith("tb_")) return { path: "/tasks", query: { q: id } }
  return isTrace.test(id) ? ofTrace(id) : ofTask(id)
}
