import { Effect, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "../../../contract/Api.ts"
import * as Credits from "../../../domain/Credits.ts"
import { UserErasure } from "../../../tasks/privacy/UserErasure.ts"
import { UserExport } from "../../../tasks/privacy/UserExport.ts"
import type { UserDataRow } from "../../../tasks/privacy/UserExport.ts"
import { requireOperator, requireOwnerOrOperator } from "../../server/access/Authentication.ts"

/** A user's data: exported by the user or the operator, deleted by the operator. */
export const layer = HttpApiBuilder.group(
  Api,
  "privacy",
  Effect.fnUntraced(function* (handlers) {
    const erasure = yield* UserErasure
    const data = yield* UserExport
    return handlers.handleAll({
      deleteUser: Effect.fnUntraced(function* ({ params }) {
        yield* requireOperator
        const user = yield* erasure.delete(params.id)
        return {
          id: user.id,
          deleted: true as const,
          deleted_at: user.deletedAt,
          erased_at: user.erasedAt
        }
      }),
      exportUser: Effect.fnUntraced(function* ({ params }) {
        yield* requireOwnerOrOperator(params.id)
        return exportOf(yield* data.rows(params.id))
      })
    })
  })
)

/** Streams one line of JSON per row while the rows are read. */
const exportOf = <E>(rows: Stream.Stream<UserDataRow, E>) =>
  HttpServerResponse.stream(
    rows.pipe(
      Stream.map((row) => `${JSON.stringify({ object: row.object, ...row.fields }, valueOf)}\n`),
      Stream.encodeText,
      // The status has already been sent, so the client notices a failure only as a broken connection
      Stream.tapCause((cause) => Effect.logWarning("The export of a user broke off", cause))
    ),
    {
      contentType: "application/x-ndjson",
      headers: {
        "content-disposition": 'attachment; filename="user.ndjson"',
        "cache-control": "no-store"
      }
    }
  )

/** Converts amounts, which are the only `bigint`s. A `Date` has its own `toJSON`. */
const valueOf = (_: string, value: unknown): unknown =>
  typeof value === "bigint" ? Credits.format(Credits.make(value)) : value
