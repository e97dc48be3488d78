import { Context, DateTime, Effect, Layer, Option } from "effect"
import type { ScannedPage } from "../db/ListScan.ts"
import { makeUserId } from "../domain/Ids.ts"
import type { UserId } from "../domain/Ids.ts"
import { reservationMillis } from "../domain/limits/Limits.ts"
import type { PageRequest } from "../domain/PageRequest.ts"
import { problem } from "../domain/Problem.ts"
import type { Problem, StoreUnavailable } from "../domain/Problem.ts"
import { Passwords } from "./Passwords.ts"
import type { ListedUser, UserFilter } from "./UserListStore.ts"
import { UserStore } from "./UserStore.ts"
import type { UserChange, UserRow } from "./UserStore.ts"

export interface UserFields {
  readonly email: string
  readonly name: Option.Option<string>
  readonly password: Option.Option<string>
}

export type { ListedUser } from "./UserListStore.ts"
export type { UserRow } from "./UserStore.ts"

/** The gateway's users. docs/reference/keys-and-limits.md#users */
export class Users extends Context.Service<
  Users,
  {
    /** Creates a user with an empty wallet. Fails with 2010 if the e-mail address is taken. */
    readonly create: (fields: UserFields) => Effect.Effect<UserRow, Problem | StoreUnavailable>
    readonly get: (id: UserId) => Effect.Effect<UserRow, Problem | StoreUnavailable>
    /** Lists users with their balances, newest first or sorted by balance or spending. */
    readonly list: (
      page: PageRequest & UserFilter
    ) => Effect.Effect<ScannedPage<ListedUser>, StoreUnavailable>
    /** Addresses by user id; null if the user was deleted. */
    readonly owners: UserStore["Service"]["owners"]
    /** Whether any user exists or has ever existed. */
    readonly known: Effect.Effect<boolean, StoreUnavailable>
    /**
     * Fails with 2005, or with 2010 if the e-mail address is taken. Once it has returned, every process applies the
     * change.
     */
    readonly update: (
      id: UserId,
      change: Omit<UserChange, "passwordHash"> & {
        /** Null removes the password. */
        readonly password?: string | null | undefined
      }
    ) => Effect.Effect<UserRow, Problem | StoreUnavailable>
  }
>()("gateway/users/Users") {
  static readonly layer = Layer.effect(
    Users,
    Effect.gen(function* () {
      const store = yield* UserStore
      const passwords = yield* Passwords
      return Users.of({
        create: Effect.fn("Users.create")(function* (fields) {
          const now = yield* DateTime.now
          const passwordHash = Option.isSome(fields.password)
            ? yield* passwords.hash(fields.password.value)
            : null
          const user = yield* store.create({
            id: makeUserId(DateTime.toEpochMillis(now)),
            email: fields.email,
            name: Option.getOrNull(fields.name),
            passwordHash,
            now
          })
          if (Option.isNone(user)) {
            return yield* taken(fields.email)
          }
          return user.value
        }),
        get: Effect.fn("Users.get")(function* (id) {
          return yield* Effect.mapError(Effect.fromOption(yield* store.find(id)), () => unknown(id))
        }),
        list: Effect.fn("Users.list")(function* (page) {
          const month = `${DateTime.formatIso(yield* DateTime.now).slice(0, 8)}01`
          return yield* store.list({ ...page, month })
        }),
        owners: store.owners,
        known: store.known,
        update: Effect.fn("Users.update")(function* (id, { password, ...change }) {
          const passwordHash =
            typeof password === "string" ? yield* passwords.hash(password) : password
          const updated = yield* store.update(id, { ...change, passwordHash }, yield* DateTime.now)
          switch (updated._tag) {
            case "Updated":
              // A process with a reservation may admit calls until the reservation settles
              if (updated.wait) yield* Effect.sleep(reservationMillis)
              return updated.user
            case "EmailTaken":
              return yield* taken(change.email)
            case "Unknown":
              return yield* unknown(id)
          }
        })
      })
    })
  )
}

const unknown = (id: UserId) => problem(2005, `There is no user ${id}`)

const taken = (email: string | undefined) =>
  problem(2010, `The e-mail address ${email ?? ""} is taken`)
