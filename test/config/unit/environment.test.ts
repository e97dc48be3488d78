import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Redacted } from "effect"
import { AppConfig } from "../../../src/config/Config.ts"
import { builtInProviders, variableOf } from "../../../src/domain/Provider.ts"

const accountsOf = (env: Readonly<Record<string, string>>) =>
  Effect.map(AppConfig, ({ accounts }) => accounts).pipe(Effect.provide(AppConfig.layerOf(env)))

describe("the accounts in the environment", () => {
  for (const { base, name: provider } of builtInProviders) {
    const variable = variableOf(provider)
    it.effect(
      `${variable}_API_KEY enables ${provider}, at its own base or at ${variable}_BASE_URL`,
      () =>
        Effect.gen(function* () {
          const key = { [`${variable}_API_KEY`]: "key-1" }
          const [account, ...others] = yield* accountsOf(key)
          assert.deepEqual(others, [])
          assert.strictEqual(account?.provider, provider)
          assert.strictEqual(account?.baseUrl, base)
          assert.strictEqual(account && Redacted.value(account.key), "key-1")
          const elsewhere = { ...key, [`${variable}_BASE_URL`]: "https://proxy.example/v1/" }
          assert.deepEqual(
            (yield* accountsOf(elsewhere)).map(({ baseUrl }) => baseUrl),
            ["https://proxy.example/v1"]
          )
        })
    )
  }

  it.effect("accept a region after the key of DashScope", () =>
    Effect.gen(function* () {
      const [first, second] = yield* accountsOf({ DASHSCOPE_API_KEY: "a;region=us-east-1,b" })
      assert.strictEqual(first?.region, "us-east-1")
      assert.isUndefined(second?.region)
    })
  )

  it.effect("refuse a region that DashScope does not have", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(accountsOf({ DASHSCOPE_API_KEY: "a;region=cn-hangzhou" }))
      assert.match(error.message, /^DASHSCOPE_API_KEY: key 1 needs a region of cn-beijing/u)
    })
  )

  it.effect("accept weight, name, base, concurrent, polls and jwks after their key", () =>
    Effect.gen(function* () {
      const [first, second] = yield* accountsOf({
        FAL_API_KEY:
          "id:secret;concurrent=5;polls=7;name=eu;weight=3;base=https://eu.example/;jwks=https://keys.example/jwks.json,id2:secret2"
      })
      assert.strictEqual(first?.id, "fal:eu")
      assert.strictEqual(first?.weight, 3)
      assert.strictEqual(first?.concurrent, 5)
      assert.strictEqual(first?.polls, 7)
      assert.strictEqual(first?.baseUrl, "https://eu.example")
      assert.strictEqual(first?.jwksUrl, "https://keys.example/jwks.json")
      assert.strictEqual(second?.weight, 1)
      assert.isFalse(second !== undefined && ("concurrent" in second || "jwksUrl" in second))
    })
  )

  for (const [setting, fault] of [
    ["weight=0", "needs a weight"],
    ["weight=1001", "needs a weight"],
    ["concurrent=0", "needs a concurrent"],
    ["concurrent=1.5", "needs a concurrent"],
    ["concurrent=100001", "needs a concurrent"],
    ["concurrent=", "needs a concurrent"],
    ["polls=0", "needs polls"],
    ["polls=0.5", "needs polls"],
    ["polls=100001", "needs polls"],
    ["name=a b", "an invalid name"],
    ["base=ftp://x", "an invalid base"],
    ["region=us-east-1", "has a region, which only DashScope has"],
    ["weight=1;weight=2", "has two settings weight"],
    ["jwks=keys", "an invalid jwks"],
    ["slots=3", "unknown setting"]
  ] as const) {
    it.effect(`refuse ${setting}, and do not print the key`, () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(accountsOf({ FAL_API_KEY: `id:secret-1;${setting}` }))
        assert.include(error.message, "FAL_API_KEY")
        assert.include(error.message, fault)
        assert.notInclude(error.message, "secret-1")
      })
    )
  }
})

interface AddressVariable {
  readonly name: string
  readonly of: (settings: AppConfig["Service"]) => string | undefined
  readonly accepted: ReadonlyArray<readonly [text: string, address: string | undefined]>
  readonly refused: ReadonlyArray<string>
  readonly fault: RegExp
}

/** URLs to which no path can be appended. */
const noBase = [
  "ftp://gateway.example.com",
  "https://gateway.example.com/?x=1",
  "https://gateway.example.com/#x",
  "https://gateway.example.com/?",
  "https://gateway.example.com/#",
  "https://user:secret-1@gateway.example.com"
]

const addresses: ReadonlyArray<AddressVariable> = [
  {
    name: "PUBLIC_URL",
    of: ({ publicUrl }) => Option.getOrUndefined(publicUrl),
    accepted: [
      ["", undefined],
      ["https://gateway.example.com", "https://gateway.example.com"],
      ["https://gateway.example.com/edge/", "https://gateway.example.com/edge"],
      ["http://127.0.0.1:8080", "http://127.0.0.1:8080"]
    ],
    refused: ["http://gateway.example.com", "gateway.example.com", ...noBase],
    fault: /PUBLIC_URL.*https/u
  },
  {
    // Links to artifacts begin with it
    name: "BASE_URL",
    of: ({ baseUrl }) => baseUrl,
    accepted: [
      ["", "http://localhost:8080"],
      ["https://gateway.example.com/edge/", "https://gateway.example.com/edge"],
      ["http://gateway.example.com:8080", "http://gateway.example.com:8080"]
    ],
    refused: ["localhost:8080", "gateway.example.com", ...noBase],
    fault: /^BASE_URL: .*; set an absolute http or https URL/u
  },
  {
    name: "OTEL_EXPORTER_OTLP_ENDPOINT",
    of: ({ otlpEndpoint }) => Option.getOrUndefined(otlpEndpoint),
    accepted: [
      ["", undefined],
      ["http://localhost:4318", "http://localhost:4318"],
      ["https://collector.example.com/otlp/", "https://collector.example.com/otlp"]
    ],
    refused: ["localhost:4318", "collector", "grpc://localhost:4317"],
    fault: /OTEL_EXPORTER_OTLP_ENDPOINT/u
  }
]

for (const { accepted, fault, name, of, refused } of addresses) {
  describe(name, () => {
    const settingsWith = (text: string) =>
      Effect.provide(AppConfig, AppConfig.layerOf({ [name]: text }))

    for (const [text, address] of accepted) {
      it.effect(`is ${address} for "${text}"`, () =>
        Effect.map(settingsWith(text), (it) => assert.strictEqual(of(it), address))
      )
    }

    for (const text of refused) {
      it.effect(`refuses "${text}"`, () =>
        Effect.map(Effect.flip(settingsWith(text)), ({ message }) => {
          assert.match(message, fault)
          assert.notInclude(message, "secret-1")
        })
      )
    }
  })
}

describe("a duration", () => {
  for (const name of [
    "TASK_DEADLINE",
    "BALANCE_ALERT_THROTTLE",
    "UPSTREAM_TIMEOUT",
    "ABANDONED_STREAM_TIMEOUT",
    "IMAGES_WAIT"
  ]) {
    it.effect(`must be above 0 and at most the 24 hours for which media are kept: ${name}`, () =>
      Effect.gen(function* () {
        const read = (value: string) =>
          AppConfig.pipe(
            Effect.as("accepted"),
            Effect.provide(AppConfig.layerOf({ [name]: value })),
            Effect.catchTag("ConfigFault", ({ message }) => Effect.succeed(message))
          )
        for (const value of ["1 second", "24 hours"]) {
          assert.strictEqual(yield* read(value), "accepted")
        }
        for (const value of ["0 seconds", "-1 hour", "25 hours"]) {
          assert.match(yield* read(value), new RegExp(`^${name}: .* is out of bounds; set a `, "u"))
        }
        assert.match(yield* read("soon"), new RegExp(`^${name}: .*; set a duration above 0`, "u"))
      })
    )
  }
})
