import { Context, Effect, Layer, Stream } from "effect"
import type { UserId } from "../../domain/Ids.ts"
import type { Problem, StoreUnavailable } from "../../domain/Problem.ts"
import { Secrets } from "../../process/secrets/Secrets.ts"
import type { ContentSide } from "../../users/contents/CallContent.ts"
import { openContent } from "../../users/contents/SealedContent.ts"
import { Users } from "../../users/Users.ts"
import { UserExportStore } from "./UserExportStore.ts"
import type { UserDataRow } from "./UserExportStore.ts"

export type { UserDataRow } from "./UserExportStore.ts"

/** Exports all stored data of a user, row by row. docs/reference/privacy.md#export */
export class UserExport extends Context.Service<
  UserExport,
  {
    /** Fails with 2005. */
    readonly rows: (
      id: UserId
    ) => Effect.Effect<Stream.Stream<UserDataRow, StoreUnavailable>, Problem | StoreUnavailable>
  }
>()("gateway/tasks/UserExport") {
  static readonly layer = Layer.effect(
    UserExport,
    Effect.gen(function* () {
      const store = yield* UserExportStore
      const users = yield* Users
      const secrets = yield* Secrets
      return UserExport.of({
        rows: (id) =>
          Effect.as(
            users.get(id),
            Stream.mapEffect(store.rows(id), (row) => opened(secrets, row))
          )
      })
    })
  )
}

/** Decrypts the texts of a call. A row whose master key is gone is exported without its texts. */
const opened = (secrets: Secrets["Service"], row: UserDataRow): Effect.Effect<UserDataRow> => {
  const { sealed, ...fields } = row.fields
  if (!(sealed instanceof Uint8Array)) return Effect.succeed(row)
  return Effect.match(openContent(secrets, sealed), {
    onFailure: () => ({ object: row.object, fields }),
    onSuccess: ({ path, request, response }) => ({
      object: row.object,
      fields: { ...fields, path, request: textOf(request), response: textOf(response) }
    })
  })
}

const textOf = (side: ContentSide | null): string | null => side && side.text
