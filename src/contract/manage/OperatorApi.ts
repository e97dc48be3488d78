import { Schema, Struct } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { Text } from "../../catalog/bodies/Fields.ts"
import { TaskId, UserId } from "../../domain/Ids.ts"
import { ResultKind, TaskStatus, Timestamp } from "../../domain/task/Task.ts"
import {
  costQuery,
  ofUser,
  pageOf,
  pageQuery,
  SearchText,
  timeQuery,
  traceQuery
} from "../Lists.ts"
import { manageErrors as error } from "../ManageErrors.ts"
import { TaskListItem } from "../TasksApi.ts"
import { CallId, CallView } from "./CallsApi.ts"

/** The owner of a resource. Without an e-mail address if the user was deleted. */
const Owner = Schema.Struct({ id: UserId, email: Schema.NullOr(Schema.String) }).annotate({
  identifier: "Owner"
})

/** Anything with an id, and its owner. */
export const FoundThing = Schema.Struct({
  type: Schema.Literals([
    "user",
    "task",
    "call",
    "api_key",
    "session",
    "task_batch",
    "webhook_endpoint",
    "webhook_delivery",
    "event"
  ]),
  id: Schema.String,
  user: Owner,
  created_at: Timestamp
}).annotate({ identifier: "FoundThing" })

/** A user's task without content: no prompt, metadata, result or error detail. */
export const OperatorTask = TaskListItem.mapFields(
  Struct.omit(["prompt", "preview", "metadata", "error", "key_name"])
)
  .mapFields(
    Struct.assign({
      error: Schema.NullOr(Schema.Struct({ code: Schema.Int, title: Schema.String })),
      user: Owner
    })
  )
  .annotate({ identifier: "OperatorTask" })

export const OperatorCall = CallView.mapFields(Struct.assign({ user: Owner })).annotate({
  identifier: "OperatorCall"
})

const name = Schema.optionalKey(Text.check(Schema.isNonEmpty()))
const filters = { ...ofUser, ...timeQuery, ...traceQuery, ...costQuery, vendor: name, model: name }

/** The operator's view of all users together. docs/reference/keys-and-limits.md#over-all-users */
export class OperatorApi extends HttpApiGroup.make("operator").add(
  HttpApiEndpoint.get("search", "/operator/search", {
    query: {
      q: SearchText.annotate({
        description: "Any id or trace id, or a part of a user's address or name"
      })
    },
    success: Schema.Struct({ data: Schema.Array(FoundThing) }),
    error
  }),
  HttpApiEndpoint.get("listAllTasks", "/operator/tasks", {
    query: {
      ...pageQuery(TaskId),
      ...filters,
      status: Schema.optionalKey(TaskStatus),
      result_kind: Schema.optionalKey(ResultKind)
    },
    success: pageOf(OperatorTask),
    error
  }),
  HttpApiEndpoint.get("listAllCalls", "/operator/calls", {
    query: {
      ...pageQuery(CallId),
      ...filters,
      outcome: Schema.optionalKey(CallView.fields.outcome)
    },
    success: pageOf(OperatorCall),
    error
  })
) {}
