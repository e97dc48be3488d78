import { Context, Effect, Layer } from "effect"
import type { Stream } from "effect"
import type { UserId } from "../../domain/Ids.ts"
import type { Problem, StoreUnavailable } from "../../domain/Problem.ts"
import { Users } from "../../users/Users.ts"
import { UserExportStore } from "./UserExportStore.ts"
import type { UserDataRow } from "./UserExportStore.ts"

export type { UserDataRow } from "./UserExportStore.ts"

/** All stored data of a user, row by row. docs/reference/privacy.md#export */
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
      return UserExport.of({ rows: (id) => Effect.as(users.get(id), store.rows(id)) })
    })
  )
}
