import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Console, Effect, Layer, Option } from "effect"
import * as FirstStart from "../../../src/cli/FirstStart.ts"
import { UserErasure } from "../../../src/tasks/privacy/UserErasure.ts"
import { ApiKeys } from "../../../src/users/ApiKeys.ts"
import { Sessions } from "../../../src/users/Sessions.ts"
import { Users } from "../../../src/users/Users.ts"
import { Wallet } from "../../../src/wallet/Wallet.ts"
import { layerGateway } from "../../support/gateway.ts"

const place = Layer.merge(layerGateway(), NodeServices.layer)

/** The output of a start; the crash is a defect. */
const start = Effect.gen(function* () {
  const lines: Array<string> = []
  yield* Effect.scoped(Layer.build(FirstStart.layer)).pipe(
    Effect.provideService(Console.Console, {
      ...globalThis.console,
      log: (line: string) => lines.push(line)
    })
  )
  return lines.join("\n")
})

const killed = Effect.die(new Error("kill -9"))

/** A start that crashes right after this step. */
const crashing = {
  "the user": Effect.flatMap(Users, (users) =>
    Effect.provideService(start, Users, {
      ...users,
      create: (fields) => Effect.andThen(users.create(fields), killed)
    })
  ),
  "the credits": Effect.flatMap(Wallet, (wallet) =>
    Effect.provideService(start, Wallet, {
      ...wallet,
      topUp: (topUp) => Effect.andThen(wallet.topUp(topUp), killed)
    })
  ),
  "the key": Effect.flatMap(ApiKeys, (keys) =>
    Effect.provideService(start, ApiKeys, {
      ...keys,
      create: (request) => Effect.andThen(keys.create(request), killed)
    })
  )
}

const printedKey = (text: string) => /sk-[0-9A-Za-z]{46}/u.exec(text)?.[0] ?? ""

const state = Effect.gen(function* () {
  const users = (yield* (yield* Users).list({ before: Option.none(), limit: 10 })).rows
  const [owner] = users
  const wallet = yield* (yield* Wallet).get(owner!.id)
  const keys = yield* (yield* ApiKeys).list(owner!.id, { before: Option.none(), limit: 10 })
  return {
    users: users.length,
    settled: wallet.settled,
    valid: keys.filter((key) => key.revokedAt === null).length
  }
})

const complete = { users: 1, settled: 1_000_000_000n, valid: 1 }

describe("the first start", () => {
  it.effect("prints a key that works, once", () =>
    Effect.gen(function* () {
      const key = printedKey(yield* start)
      yield* (yield* ApiKeys).authenticate(key)
      assert.deepStrictEqual(yield* state, complete)
      assert.notInclude(yield* start, "sk-")
      yield* (yield* ApiKeys).authenticate(key)
    }).pipe(Effect.provide(place))
  )

  it.effect("is not repeated after its user was deleted", () =>
    Effect.gen(function* () {
      yield* start
      const users = yield* Users
      const [owner] = (yield* users.list({ before: Option.none(), limit: 1 })).rows
      yield* (yield* UserErasure).delete(owner!.id)
      assert.notInclude(yield* start, "sk-")
      assert.deepStrictEqual((yield* users.list({ before: Option.none(), limit: 1 })).rows, [])
    }).pipe(Effect.provide(place))
  )

  it.effect("prints a link that signs its user in, once", () =>
    Effect.gen(function* () {
      const text = yield* start
      const link = /http:\/\/gateway\.test\/sign-in#token=(sil_[\w-]{43})\n/u.exec(text)
      const sessions = yield* Sessions
      const credential = { _tag: "Link", link: link![1]! } as const
      const { row } = yield* sessions.signIn(credential, Option.none())
      const [owner] = (yield* (yield* Users).list({ before: Option.none(), limit: 1 })).rows
      assert.strictEqual(row.userId, owner!.id)
      const again = yield* Effect.flip(sessions.signIn(credential, Option.none()))
      assert.strictEqual(again._tag === "Problem" && again.code, 1005)
      assert.notInclude(yield* start, "sign-in#")
    }).pipe(Effect.provide(place))
  )

  for (const [what, crash] of Object.entries(crashing)) {
    it.effect(`prints a key if the start before was killed after it created ${what}`, () =>
      Effect.gen(function* () {
        assert.strictEqual((yield* Effect.exit(crash))._tag, "Failure")
        const key = printedKey(yield* start)
        yield* (yield* ApiKeys).authenticate(key)
        assert.deepStrictEqual(yield* state, complete)
        assert.notInclude(yield* start, "sk-")
      }).pipe(Effect.provide(place))
    )
  }
})
