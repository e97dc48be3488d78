import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { manageErrors as error } from "../ManageErrors.ts"
import { ofUser } from "../Paging.ts"

/** What happens to a user's tasks and deliveries. docs/reference/http.md#events-of-a-user */
export class EventsApi extends HttpApiGroup.make("events")
  .add(
    HttpApiEndpoint.get("streamEvents", "/events", {
      query: ofUser,
      success: Schema.String.pipe(HttpApiSchema.asText({ contentType: "text/event-stream" })),
      error
    })
  )
  .annotateMerge(OpenApi.annotations({ title: "Events" })) {}
