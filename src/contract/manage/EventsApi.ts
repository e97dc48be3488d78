import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { StreamedEventType } from "../../domain/Event.ts"
import { EventId, TaskId } from "../../domain/Ids.ts"
import { Timestamp } from "../../domain/task/Task.ts"
import { ofUser } from "../Lists.ts"
import { manageErrors as error } from "../ManageErrors.ts"

/** Event names, separated by commas. */
const names = StreamedEventType.literals.map((name) => name.replace(".", "\\.")).join("|")
const EventTypes = Schema.String.check(
  Schema.isPattern(new RegExp(`^(?:${names})(?:,(?:${names}))*$`, "u"), {
    expected: `some of ${StreamedEventType.literals.join(", ")}, separated by commas`
  })
)

/** An event as webhooks deliver it. */
export const StreamedEvent = Schema.Struct({
  id: EventId,
  type: StreamedEventType,
  created_at: Timestamp,
  task_id: Schema.NullOr(TaskId),
  /** The bytes of a delivery as UTF-8 text. */
  body: Schema.String
})

/** Events of a user's tasks and deliveries. docs/reference/http.md#events-of-a-user */
export class EventsApi extends HttpApiGroup.make("events")
  .add(
    HttpApiEndpoint.get("streamEvents", "/events", {
      query: {
        ...ofUser,
        events: Schema.optionalKey(
          EventTypes.annotate({ description: "stream these events, as webhooks deliver them" })
        ),
        since: Schema.optionalKey(
          Timestamp.annotate({ description: "with `events`: created at this time or later" })
        )
      },
      success: Schema.String.pipe(HttpApiSchema.asText({ contentType: "text/event-stream" })),
      error
    })
  )
  .annotateMerge(OpenApi.annotations({ title: "Events" })) {}
