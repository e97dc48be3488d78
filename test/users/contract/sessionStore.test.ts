import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { DateTime, Effect, Layer, Option } from "effect"
import { TestClock } from "effect/testing"
import { makeSessionId } from "../../../src/domain/Ids.ts"
import type { UserId } from "../../../src/domain/Ids.ts"
import { SessionStore } from "../../../src/users/SessionStore.ts"
import { UserStore } from "../../../src/users/UserStore.ts"
import { stores } from "../../support/stores.ts"
import { newCaller, walletStores } from "../../support/wallets.ts"

const layers = Layer.merge(SessionStore.layer, walletStores).pipe(
  Layer.provideMerge(stores.postgres)
)

const hashOf = (text: string) => Buffer.from(text)

/** A user with this password hash. */
const newUser = Effect.fnUntraced(function* (passwordHash: string | null) {
  const users = yield* UserStore
  const id = yield* newCaller(0)
  const email = `${id}@example.com`
  yield* users.update(id, { passwordHash, email }, yield* DateTime.now)
  return { id, email }
})

/** A session of the user, one millisecond after the previous one. */
const newSession = Effect.fnUntraced(function* (userId: UserId, token: string, max = 100) {
  const store = yield* SessionStore
  yield* TestClock.adjust("1 millis")
  const now = yield* DateTime.now
  const user = Option.getOrThrow(yield* store.userById(userId))
  const owner = { _tag: "User", userId, epoch: user.epoch } as const
  const id = makeSessionId(DateTime.toEpochMillis(now))
  const expiresAt = DateTime.add(now, { days: 1 })
  const tokenHash = hashOf(token)
  const session = { id, tokenHash, owner, method: "password", key: null, address: null } as const
  yield* store.create({ ...session, now, expiresAt }, max)
  return Option.getOrThrow(yield* sessionOf(token))
})

const sessionOf = Effect.fnUntraced(function* (token: string) {
  const now = yield* DateTime.now
  const { find } = yield* SessionStore
  return yield* find(hashOf(token), {
    now,
    idleSince: DateTime.subtract(now, { hours: 1 }),
    operatorMac: ""
  })
})

const isOpen = (token: string) => Effect.map(sessionOf(token), Option.isSome)

const disable = Effect.fnUntraced(function* (id: UserId) {
  yield* (yield* UserStore).update(id, { disabled: true }, yield* DateTime.now)
})

layer(layers)("a password", (it) => {
  it.effect("replaces only the one that its user has confirmed", () =>
    Effect.gen(function* () {
      const store = yield* SessionStore
      const { email, id } = yield* newUser("one")
      const session = yield* newSession(id, "p")
      const change = (from: string | null, to: string) =>
        store.changePassword(session, { from, to, tokenHash: hashOf(`p-${to}`) })
      assert.isFalse(yield* change("former", "two"))
      assert.isFalse(yield* change(null, "two"))
      yield* store.rehash(id, "former", "two")
      assert.isTrue(yield* isOpen("p"))
      const stored = Effect.map(
        store.userByEmail(email),
        Option.map((it) => it.passwordHash)
      )
      assert.deepStrictEqual(yield* stored, Option.some("one"))
      yield* store.rehash(id, "one", "new parameters")
      assert.isTrue(yield* change("new parameters", "two"))
      assert.deepStrictEqual([yield* isOpen("p"), yield* isOpen("p-two")], [false, true])
      yield* disable(id)
      assert.isFalse(yield* change("two", "three"))
    })
  )
})

layer(layers)("sessions of an owner", (it) => {
  it.effect("are removed by it alone, and make room only for its own", () =>
    Effect.gen(function* () {
      const store = yield* SessionStore
      const [one, other] = [yield* newUser(null), yield* newUser(null)]
      yield* newSession(other.id, "other", 2)
      const removed = yield* newSession(one.id, "a", 2)
      yield* newSession(one.id, "b", 2)
      yield* newSession(one.id, "c", 2)
      const open = Effect.forEach(["other", "a", "b", "c"], isOpen)
      assert.deepStrictEqual(yield* open, [true, false, true, true])
      const kept = Option.getOrThrow(yield* sessionOf("b"))
      for (const owner of [other.id, null]) assert.isFalse(yield* store.remove(kept.id, owner))
      assert.isFalse(yield* store.remove(removed.id, one.id))
      assert.isTrue(yield* store.remove(kept.id, one.id))
      assert.deepStrictEqual(yield* open, [true, false, false, true])
    })
  )
})

layer(layers)("the identity of a provider", (it) => {
  it.effect(
    "belongs to the first enabled user with its address, whatever the address later is",
    () =>
      Effect.gen(function* () {
        const store = yield* SessionStore
        const sql = yield* PgClient.PgClient
        const [one, disabled, other] = [
          yield* newUser(null),
          yield* newUser(null),
          yield* newUser(null)
        ]
        yield* disable(disabled.id)
        const found = (subject: string, email: string) =>
          Effect.map(store.userBySubject(subject, email), (user) =>
            Option.getOrUndefined(Option.map(user, ({ id }) => id))
          )
        assert.isUndefined(yield* found("s", disabled.email))
        assert.strictEqual(yield* found("s", one.email), one.id)
        assert.strictEqual(yield* found("s", other.email), one.id)
        assert.isUndefined(yield* found("t", one.email))
        assert.deepStrictEqual(yield* sql`SELECT id FROM users WHERE oidc_subject IS NOT NULL`, [
          { id: one.id }
        ])
        yield* disable(one.id)
        assert.isUndefined(yield* found("s", other.email))
      })
  )
})

layer(layers)("a sign-in link", (it) => {
  it.effect(
    "ends with the password, with the user, and with its time; a disabled user gets none",
    () =>
      Effect.gen(function* () {
        const store = yield* SessionStore
        const { id } = yield* newUser("one")
        const now = yield* DateTime.now
        const expiresAt = DateTime.add(now, { minutes: 10 })
        const make = Effect.fnUntraced(function* (token: string) {
          const { epoch } = Option.getOrThrow(yield* store.userById(id))
          yield* store.createLink(hashOf(token), { _tag: "User", userId: id, epoch }, expiresAt)
        })
        const take = (token: string, at = now) =>
          Effect.map(store.takeLink(hashOf(token), at), Option.isSome)
        yield* make("late")
        assert.isFalse(yield* take("late", expiresAt))
        yield* make("used")
        assert.deepStrictEqual([yield* take("used"), yield* take("used")], [true, false])
        yield* make("before the password")
        yield* (yield* UserStore).update(id, { passwordHash: "two" }, now)
        assert.isFalse(yield* take("before the password"))
        yield* make("before the end")
        yield* disable(id)
        assert.isFalse(yield* take("before the end"))
        assert.isTrue(Option.isNone(yield* store.userById(id)))
      })
  )
})
