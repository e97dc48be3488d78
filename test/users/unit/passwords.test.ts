import { assert, describe, it } from "@effect/vitest"
import argon2 from "@node-rs/argon2"
import { Effect, Option } from "effect"
import {
  passwordHashesAtOnceMax,
  passwordHashesWaitingMax
} from "../../../src/domain/limits/SignInLimits.ts"
import { Passwords } from "../../../src/users/Passwords.ts"

const millisOf = Effect.fnUntraced(function* <A, E, R>(effect: Effect.Effect<A, E, R>) {
  const start = performance.now()
  yield* effect
  return performance.now() - start
})

const right = { isRight: true, isOutdated: false }
const wrong = { isRight: false, isOutdated: false }

describe("passwords", () => {
  it.effect(
    "are hashed with Argon2id and unique salts, and match however the keyboard composes characters",
    () =>
      Effect.gen(function* () {
        const passwords = yield* Passwords
        const [one, two] = [yield* passwords.hash("pässword"), yield* passwords.hash("pässword")]
        assert.match(one, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$[\w+/]{22}\$[\w+/]{43}$/u)
        assert.notStrictEqual(one, two)
        const check = (password: string) => passwords.verify(Option.some(one), password)
        assert.deepStrictEqual(yield* check("pässword"), right)
        assert.deepStrictEqual(yield* check("pa\u0308ssword"), right)
        for (const other of ["", "Pässword", "pässword ", one]) {
          assert.deepStrictEqual(yield* check(other), wrong)
        }
      }).pipe(Effect.provide(Passwords.layer))
  )

  it.effect("are right but outdated if they were hashed with other parameters", () =>
    Effect.gen(function* () {
      const { verify } = yield* Passwords
      const weaker = { memoryCost: 8192, timeCost: 1, parallelism: 1 }
      const stored = Option.some(yield* Effect.promise(() => argon2.hash("old password", weaker)))
      const outdated = { isRight: true, isOutdated: true }
      assert.deepStrictEqual(yield* verify(stored, "old password"), outdated)
      assert.deepStrictEqual(yield* verify(stored, "new password"), wrong)
    }).pipe(Effect.provide(Passwords.layer))
  )

  it.effect("take as long to check for an account without one as for a wrong one", () =>
    Effect.gen(function* () {
      const { hash, verify } = yield* Passwords
      const stored = Option.some(yield* hash("password"))
      assert.deepStrictEqual(yield* verify(Option.none(), "password"), wrong)
      let [known, unknown] = [Infinity, Infinity]
      // Alternating, so that other load on the machine affects both
      for (let n = 0; n < 5; n += 1) {
        known = Math.min(known, yield* millisOf(verify(stored, "another")))
        unknown = Math.min(unknown, yield* millisOf(verify(Option.none(), "another")))
      }
      // Without a hash it would take a thousandth of the time
      assert.isAbove(unknown, known / 4)
    }).pipe(Effect.provide(Passwords.layer))
  )

  it.effect(
    "are refused at once beyond the number that may wait, and the places become free again",
    () =>
      Effect.gen(function* () {
        const { hash } = yield* Passwords
        const max = passwordHashesAtOnceMax + passwordHashesWaitingMax
        const many = Effect.forEach(
          Array.from({ length: max + 10 }),
          () => Effect.result(hash("password")),
          { concurrency: "unbounded" }
        )
        for (const _ of [1, 2]) {
          const refused = (yield* many).flatMap((it) => (it._tag === "Failure" ? [it.failure] : []))
          assert.lengthOf(refused, 10)
          for (const { code } of refused) assert.strictEqual(code, 1201)
        }
      }).pipe(Effect.provide(Passwords.layer))
  )
})
