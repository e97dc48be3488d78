import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { AppConfig } from "../../src/Config.ts"
import { providerBases, providerVariables } from "../../src/domain/Provider.ts"

const accountsOf = (env: Readonly<Record<string, string>>) =>
  Effect.map(AppConfig, ({ accounts }) => accounts).pipe(Effect.provide(AppConfig.layerOf(env)))

describe("the accounts that the environment names", () => {
  for (const [provider, variable] of Object.entries(providerVariables)) {
    it.effect(
      `${variable}_API_KEY opens ${provider}, at its own base or at ${variable}_BASE_URL`,
      () =>
        Effect.gen(function* () {
          const key = { [`${variable}_API_KEY`]: "key-1" }
          const [account, ...others] = yield* accountsOf(key)
          assert.deepEqual(others, [])
          assert.strictEqual(account?.provider, provider)
          assert.strictEqual(account?.baseUrl, new Map(Object.entries(providerBases)).get(provider))
          assert.strictEqual(account && Redacted.value(account.key), "key-1")
          const elsewhere = { ...key, [`${variable}_BASE_URL`]: "https://proxy.example/v1/" }
          assert.deepEqual(
            (yield* accountsOf(elsewhere)).map(({ baseUrl }) => baseUrl),
            ["https://proxy.example/v1"]
          )
        })
    )
  }
})

describe("a duration", () => {
  for (const name of ["TASK_DEADLINE", "BALANCE_ALERT_THROTTLE", "UPSTREAM_TIMEOUT"]) {
    it.effect(`${name} is above 0, and media that are kept for 24 hours outlive it`, () =>
      Effect.gen(function* () {
        const read = (value: string) =>
          AppConfig.pipe(
            Effect.as("taken"),
            Effect.provide(AppConfig.layerOf({ [name]: value })),
            Effect.catchTag("ConfigFault", ({ message }) => Effect.succeed(message))
          )
        for (const value of ["1 second", "24 hours"]) {
          assert.strictEqual(yield* read(value), "taken")
        }
        for (const value of ["0 seconds", "-1 hour", "25 hours"]) {
          assert.match(yield* read(value), new RegExp(`^${name}: .* is out of bounds; set a `, "u"))
        }
        assert.match(yield* read("soon"), new RegExp(`^${name}: .*; set a duration above 0`, "u"))
      })
    )
  }
})
