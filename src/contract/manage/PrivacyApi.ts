import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { UserId } from "../../domain/Ids.ts"
import { Timestamp } from "../../domain/task/Task.ts"
import { manageErrors as error } from "../ManageErrors.ts"

export const DeletedUser = Schema.Struct({
  id: UserId,
  deleted: Schema.Boolean.annotate({ description: "Always true" }),
  deleted_at: Timestamp,
  /** When the personal data were erased everywhere; `null` while the erasure continues. */
  erased_at: Schema.NullOr(Timestamp)
}).annotate({ identifier: "DeletedUser" })

/** Export and deletion of a user's data. docs/reference/privacy.md */
export class PrivacyApi extends HttpApiGroup.make("privacy").add(
  HttpApiEndpoint.delete("deleteUser", "/users/:id", {
    params: { id: UserId },
    success: DeletedUser.pipe(HttpApiSchema.status(202)),
    error
  }),
  HttpApiEndpoint.get("exportUser", "/users/:id/export", {
    params: { id: UserId },
    success: Schema.String.pipe(HttpApiSchema.asText({ contentType: "application/x-ndjson" })),
    error
  })
) {}
