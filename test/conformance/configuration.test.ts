import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Option, Redacted } from "effect"
import { availableParallelism } from "node:os"
import { AppConfig } from "../../src/config/Config.ts"
import { egressAllowNone } from "../../src/domain/network/EgressAllow.ts"

/** docs/reference/configuration.md#variables: each with its default, accepted values and refused values. */

type Settings = AppConfig["Service"]

const settingsOf = (env: Readonly<Record<string, string>>) =>
  Effect.provide(AppConfig, AppConfig.layerOf(env))

/** The error that stops the start. */
const faultOf = (env: Readonly<Record<string, string>>) =>
  Effect.map(Effect.flip(settingsOf(env)), ({ message }) => message)

const masterKey = Buffer.alloc(32, 1).toString("base64")
const otherKey = Buffer.alloc(32, 2).toString("base64")

const defaults: { readonly [name: string]: (it: Settings) => readonly [unknown, unknown] } = {
  PORT: (it) => [it.port, 8080],
  HOST: (it) => [it.host, "127.0.0.1"],
  BASE_URL: (it) => [it.baseUrl, "http://localhost:8080"],
  DATABASE_URL: (it) => [it.database, { _tag: "Embedded", durable: true }],
  DATA_DIR: (it) => [it.dataDir, "./data"],
  ADMIN_TOKEN: (it) => [it.adminToken, Option.none()],
  MASTER_KEY: (it) => [it.masterKey, Option.none()],
  OPENAI_API_KEY: (it) => [it.accounts, []],
  CATALOG_FILE: (it) => [it.catalogFile, Option.none()],
  EGRESS_ALLOW: (it) => [it.egressAllow, egressAllowNone],
  SIMULATOR_DELAY: (it) => [millisOf(it), [2000, 6000]],
  TASK_DEADLINE: (it) => [Duration.toMillis(it.taskDeadline), 3_600_000],
  BALANCE_ALERT_THROTTLE: (it) => [Duration.toMillis(it.balanceAlertThrottle), 3_600_000],
  TASK_RETENTION: (it) => [it.retention.tasks, Option.none()],
  BODY_RETENTION: (it) => [it.retention.bodies, Option.none()],
  LOG_RETENTION: (it) => [Duration.toDays(it.retention.log), 30],
  AUDIT_RETENTION: (it) => [Duration.toDays(it.retention.audit), 365],
  MAX_BODY_BYTES: (it) => [it.maxBodyBytes, 128 * 1024 * 1024],
  SERVICE_NAME: (it) => [it.serviceName, "Service"],
  TOP_UP_URL: (it) => [it.topUpUrl, Option.none()],
  RATE_LIMIT_PER_MINUTE: (it) => [it.rateLimitPerMinute, 0],
  CONCURRENT_TASKS_PER_KEY: (it) => [it.concurrentTasksPerKey, 0],
  USER_RATE_LIMIT_PER_MINUTE: (it) => [it.userRateLimitPerMinute, 0],
  CONCURRENT_TASKS_PER_USER: (it) => [it.concurrentTasksPerUser, 0],
  KEPT_INPUT_BYTES_PER_USER: (it) => [it.keptInputBytesPerUser, 10 * 1024 ** 3],
  FILE_BYTES_PER_USER: (it) => [it.fileBytesPerUser, 2 * 1024 ** 3],
  MANAGE_RATE_LIMIT_PER_MINUTE: (it) => [it.manageRateLimitPerMinute, 600],
  CONSOLE_CREDITS_PER_MONTH: (it) => [it.consoleCreditsPerMonth, 1000],
  LOG_LEVEL: (it) => [it.logLevel, "Info"],
  LOG_FORMAT: (it) => [it.logFormat, "pretty"],
  OTEL_EXPORTER_OTLP_ENDPOINT: (it) => [it.otlpEndpoint, Option.none()],
  DASHSCOPE_INSPECTION_OPT_OUT: (it) => [it.dashScopeInspectionOptOut, false],
  ABANDONED_STREAM_TIMEOUT: (it) => [Duration.toMillis(it.abandonedStreamTimeout), 120_000],
  IMAGES_WAIT: (it) => [Duration.toMillis(it.imagesWait), 60_000],
  UPSTREAM_TIMEOUT: (it) => [Duration.toMillis(it.upstreamTimeout), 600_000]
}

const millisOf = ({ simulatorDelay: { max, min } }: Settings) =>
  [min, max].map((it) => Duration.toMillis(it))

const given: ReadonlyArray<
  readonly [Readonly<Record<string, string>>, (it: Settings) => unknown, unknown]
> = [
  [{ PORT: "9000" }, (it) => [it.port, it.baseUrl], [9000, "http://localhost:9000"]],
  [{ HOST: "0.0.0.0" }, (it) => it.host, "0.0.0.0"],
  [{ EMBEDDED_DURABLE: "false" }, (it) => it.database, { _tag: "Embedded", durable: false }],
  [
    {
      DATABASE_URL: "postgres://u:p@127.0.0.1:5432/x",
      ADMIN_TOKEN: "operator-token-of-the-tests",
      MASTER_KEY: masterKey,
      DB_POOL: "2"
    },
    (it) => it.database._tag === "Postgres" && it.database.pool,
    2
  ],
  [{ SIMULATOR_DELAY: "3 seconds" }, millisOf, [3000, 3000]],
  [{ SIMULATOR_DELAY: "100 millis to 1 minute" }, millisOf, [100, 60_000]],
  [{ TASK_DEADLINE: "90 minutes" }, (it) => Duration.toMinutes(it.taskDeadline), 90],
  [{ BALANCE_ALERT_THROTTLE: "5 minutes" }, (it) => Duration.toMinutes(it.balanceAlertThrottle), 5],
  [
    { TASK_RETENTION: "90 days", BODY_RETENTION: "1 hour", LOG_RETENTION: "1 day" },
    ({ retention: { bodies, log, tasks } }) =>
      [tasks, bodies, Option.some(log)].map((it) => Duration.toHours(Option.getOrThrow(it))),
    [90 * 24, 1, 24]
  ],
  [{ MAX_BODY_BYTES: "4096" }, (it) => it.maxBodyBytes, 4096],
  [{ MAX_BODY_BYTES: "1 MiB" }, (it) => it.maxBodyBytes, 1024 * 1024],
  [{ SERVICE_NAME: "Acme-2" }, (it) => it.serviceName, "Acme-2"],
  [
    { TOP_UP_URL: "https://shop.example.com/credits" },
    (it) => it.topUpUrl,
    Option.some("https://shop.example.com/credits")
  ],
  [
    { TOP_UP_URL: "mailto:billing@example.com" },
    (it) => it.topUpUrl,
    Option.some("mailto:billing@example.com")
  ],
  [{ RATE_LIMIT_PER_MINUTE: "60" }, (it) => it.rateLimitPerMinute, 60],
  [{ CONCURRENT_TASKS_PER_KEY: "3" }, (it) => it.concurrentTasksPerKey, 3],
  [{ USER_RATE_LIMIT_PER_MINUTE: "60" }, (it) => it.userRateLimitPerMinute, 60],
  [{ CONCURRENT_TASKS_PER_USER: "3" }, (it) => it.concurrentTasksPerUser, 3],
  [{ KEPT_INPUT_BYTES_PER_USER: "2 GiB" }, (it) => it.keptInputBytesPerUser, 2 * 1024 ** 3],
  [{ KEPT_INPUT_BYTES_PER_USER: "0" }, (it) => it.keptInputBytesPerUser, 0],
  [{ FILE_BYTES_PER_USER: "5 GiB" }, (it) => it.fileBytesPerUser, 5 * 1024 ** 3],
  [{ MANAGE_RATE_LIMIT_PER_MINUTE: "0" }, (it) => it.manageRateLimitPerMinute, 0],
  [{ CONSOLE_CREDITS_PER_MONTH: "0" }, (it) => it.consoleCreditsPerMonth, 0],
  [
    { LOG_LEVEL: "Debug", LOG_FORMAT: "json" },
    (it) => [it.logLevel, it.logFormat],
    ["Debug", "json"]
  ],
  [{ DASHSCOPE_INSPECTION_OPT_OUT: "true" }, (it) => it.dashScopeInspectionOptOut, true],
  [
    { MASTER_KEY: masterKey },
    (it) => Option.map(it.masterKey, Redacted.value),
    Option.some(masterKey)
  ],
  [
    { MASTER_KEY: `${masterKey},${otherKey}` },
    (it) => Option.map(it.masterKey, Redacted.value),
    Option.some(`${masterKey},${otherKey}`)
  ]
]

/** One line: the variable, what is wrong with its value, and the remedy. */
const wrong: ReadonlyArray<readonly [name: string, value: string, line: RegExp]> = [
  ["PORT", "0", /^PORT: .+; set a number from 1 to 65535/u],
  ["PORT", "65536", /^PORT: .+; set a number from 1 to 65535/u],
  ["EMBEDDED_DURABLE", "perhaps", /^EMBEDDED_DURABLE: .+; set true or false$/u],
  ["DB_POOL", "1", /^DB_POOL: .+; set a whole number from 2 to 1000/u],
  ["DB_POOL", "many", /^DB_POOL: .+; set a whole number from 2 to 1000/u],
  ["ADMIN_TOKEN", "too-short", /^ADMIN_TOKEN: is too short; set a secret of at least 16/u],
  ["ADMIN_TOKEN", "a token with spaces", /^ADMIN_TOKEN: has characters.*; set a secret/u],
  ["ADMIN_TOKEN", "ends-with-a-space ", /^ADMIN_TOKEN: has characters.*; set a secret/u],
  ["METRICS_TOKEN", "sixteen-ümlautsü", /^METRICS_TOKEN: has characters.*; set a secret/u],
  ["MASTER_KEY", "AAAA", /^MASTER_KEY: is not 32 bytes of Base64; set 32 bytes as Base64/u],
  ["MASTER_KEY", `${masterKey},`, /^MASTER_KEY: is not 32 bytes of Base64; .* by commas$/u],
  ["EGRESS_ALLOW", "http://x", /^EGRESS_ALLOW: "http:\/\/x" is a URL.*; set hosts and CIDRs/u],
  ["SIMULATOR_DELAY", "soon", /^SIMULATOR_DELAY: .+; set one duration or two/u],
  [
    "SIMULATOR_DELAY",
    "1 second to 2 seconds to 3",
    /^SIMULATOR_DELAY: .+; set one duration or two/u
  ],
  ["SIMULATOR_DELAY", "6 seconds to 2 seconds", /^SIMULATOR_DELAY: .+; set one duration or two/u],
  ["SIMULATOR_DELAY", "-1 second", /^SIMULATOR_DELAY: .+; set one duration or two/u],
  ["SIMULATOR_DELAY", "Infinity", /^SIMULATOR_DELAY: .+; set one duration or two/u],
  ["TASK_RETENTION", "23 hours", /^TASK_RETENTION: .+; set a duration from 1 day to 36500 days/u],
  [
    "BODY_RETENTION",
    "59 minutes",
    /^BODY_RETENTION: .+; set a duration from 1 hour to 36500 days/u
  ],
  ["LOG_RETENTION", "0", /^LOG_RETENTION: .+; set a duration/u],
  ["AUDIT_RETENTION", "36501 days", /^AUDIT_RETENTION: 36501d is out of bounds; set a duration/u],
  ["AUDIT_RETENTION", "a year", /^AUDIT_RETENTION: .+; set a duration/u],
  ["MAX_BODY_BYTES", "0", /^MAX_BODY_BYTES: .+; set a size/u],
  ["MAX_BODY_BYTES", "many", /^MAX_BODY_BYTES: .+; set a size/u],
  ["SERVICE_NAME", "two words", /^SERVICE_NAME: .+; set 1 to 32 letters/u],
  ["SERVICE_NAME", "x".repeat(33), /^SERVICE_NAME: .+; set 1 to 32 letters/u],
  [
    "TOP_UP_URL",
    "javascript:alert(1)",
    /^TOP_UP_URL: is not a link; set an https, http or mailto URL/u
  ],
  ["TOP_UP_URL", "the shop", /^TOP_UP_URL: .+; set an https, http or mailto URL/u],
  ["RATE_LIMIT_PER_MINUTE", "-1", /^RATE_LIMIT_PER_MINUTE: .+; set a whole number up to/u],
  ["RATE_LIMIT_PER_MINUTE", "1.5", /^RATE_LIMIT_PER_MINUTE: .+; set a whole number up to/u],
  ["CONCURRENT_TASKS_PER_KEY", "all", /^CONCURRENT_TASKS_PER_KEY: .+; set a whole number up to/u],
  ["LOG_LEVEL", "loud", /^LOG_LEVEL: .+; set Trace, Debug/u],
  ["LOG_FORMAT", "xml", /^LOG_FORMAT: .+; set pretty or json$/u],
  [
    "DASHSCOPE_INSPECTION_OPT_OUT",
    "maybe",
    /^DASHSCOPE_INSPECTION_OPT_OUT: .+; set true or false$/u
  ]
]

describe("configuration", () => {
  for (const [name, read] of Object.entries(defaults)) {
    for (const env of [{}, { [name]: "" }]) {
      it.effect(`uses the default of ${name}${name in env ? " if it is empty" : ""}`, () =>
        Effect.map(settingsOf(env), (it) => {
          const [actual, expected] = read(it)
          assert.deepStrictEqual(actual, expected)
        })
      )
    }
  }

  for (const [env, read, expected] of given) {
    it.effect(`accepts ${JSON.stringify(env)}`, () =>
      Effect.map(settingsOf(env), (it) => assert.deepStrictEqual(read(it), expected))
    )
  }

  for (const [name, value, line] of wrong) {
    it.effect(`refuses ${name}=${value} with one line that names the remedy`, () =>
      Effect.map(faultOf({ [name]: value }), (message) => {
        assert.match(message, line)
        assert.notInclude(message, "\n")
      })
    )
  }

  for (const name of [
    "SHUTDOWN_DELAY",
    "SHUTDOWN_GRACE",
    "TASK_DEADLINE",
    "TASK_RETENTION",
    "BODY_RETENTION"
  ]) {
    it.effect(`accepts the durations that the remedy of ${name} names`, () =>
      Effect.gen(function* () {
        const [, remedy = ""] = (yield* faultOf({ [name]: "never" })).split("; ")
        const named = remedy.match(/[1-9]\d* ?[a-z]+/gu) ?? []
        assert.isAtLeast(named.length, 2, remedy)
        for (const value of named) yield* settingsOf({ [name]: value })
      })
    )
  }

  const withPostgres = {
    DATABASE_URL: "postgres://u:p@127.0.0.1:5432/x",
    ADMIN_TOKEN: "op_a_token_for_this_test",
    MASTER_KEY: masterKey
  }

  it.effect("divides DB_POOL among PROCESSES, with at least 2 connections for each", () =>
    Effect.gen(function* () {
      const poolOf = (env: Record<string, string>) =>
        Effect.map(settingsOf({ ...withPostgres, ...env }), ({ database, processes }) => [
          processes,
          database._tag === "Postgres" && database.pool
        ])
      assert.deepStrictEqual(yield* poolOf({ PROCESSES: "2" }), [2, 5])
      assert.deepStrictEqual(yield* poolOf({ PROCESSES: "8" }), [8, 2])
      assert.deepStrictEqual(yield* poolOf({ PROCESSES: "3", DB_POOL: "11" }), [3, 3])
      const [count] = yield* poolOf({ PROCESSES: "auto" })
      assert.strictEqual(count, Math.min(64, availableParallelism()))
      assert.strictEqual(
        yield* faultOf({ ...withPostgres, PROCESSES: "3", DB_POOL: "5" }),
        "DB_POOL: 5 is too few for 3 processes; set at least 6"
      )
      const both = yield* faultOf({ ...withPostgres, PROCESSES: "65", DB_POOL: "1001" })
      assert.match(both, /^PROCESSES: .+\nDB_POOL: .+$/u)
    })
  )

  it.effect(
    "refuses PROCESSES with the embedded store, and values other than a number or auto",
    () =>
      Effect.gen(function* () {
        for (const PROCESSES of ["auto", "1", "4"]) {
          assert.strictEqual(
            yield* faultOf({ PROCESSES }),
            "PROCESSES: the embedded store serves one process; set DATABASE_URL, or remove it"
          )
        }
        for (const PROCESSES of ["0", "65", "-1", "1.5", "many"]) {
          assert.strictEqual(
            yield* faultOf({ ...withPostgres, PROCESSES }),
            `PROCESSES: "${PROCESSES}" is not a number of processes; set auto, or a whole number from 1 to 64`
          )
        }
      })
  )

  it.effect("names every fault in a separate line", () =>
    Effect.gen(function* () {
      const lines = yield* faultOf({
        DASHSCOPE_API_KEY: "a;weight=0",
        FAL_API_KEY: "a:b;weight=0",
        PORT: "abc",
        BASE_URL: "here",
        ADMIN_TOKEN: "short",
        METRICS_TOKEN: "short",
        MASTER_KEY: "short",
        PROCESSES: "2",
        ARTIFACT_STORE: "https://media.example",
        RATE_LIMIT_PER_MINUTE: "-1",
        SIMULATOR_DELAY: "never",
        MAX_BODY_BYTES: "big",
        SHUTDOWN_DELAY: "1 day",
        SHUTDOWN_GRACE: "1 day",
        LOG_RETENTION: "1 hour",
        AUDIT_RETENTION: "1 hour",
        OIDC_ISSUER: "http://issuer.example",
        TRUSTED_PROXIES: "10.1",
        LOG_LEVEL: "loud",
        OTEL_EXPORTER_OTLP_ENDPOINT: "ftp://collector"
      })
      assert.deepStrictEqual(
        lines.split("\n").map((line) => line.split(":")[0]),
        [
          "DASHSCOPE_API_KEY",
          "FAL_API_KEY",
          "PORT",
          "BASE_URL",
          "PROCESSES",
          "ADMIN_TOKEN",
          "MASTER_KEY",
          "METRICS_TOKEN",
          "ARTIFACT_STORE",
          "RATE_LIMIT_PER_MINUTE",
          "SIMULATOR_DELAY",
          "MAX_BODY_BYTES",
          "SHUTDOWN_DELAY",
          "SHUTDOWN_GRACE",
          "LOG_RETENTION",
          "AUDIT_RETENTION",
          "OIDC_ISSUER",
          "TRUSTED_PROXIES",
          "LOG_LEVEL",
          "OTEL_EXPORTER_OTLP_ENDPOINT"
        ]
      )
    })
  )

  it.effect("requires both secrets with DATABASE_URL", () =>
    Effect.gen(function* () {
      const server = { DATABASE_URL: "postgres://u:p@127.0.0.1:5432/x" }
      const token = { ADMIN_TOKEN: "op_a_token_for_this_test" }
      assert.match(
        yield* faultOf(server),
        /^ADMIN_TOKEN: is required with DATABASE_URL; set .*\nMASTER_KEY: is required with DATABASE_URL; set /u
      )
      const half = { ...server, ...token }
      assert.match(yield* faultOf(half), /^MASTER_KEY: is required with DATABASE_URL; set /u)
      const { database } = yield* settingsOf({ ...half, MASTER_KEY: masterKey })
      assert.strictEqual(database._tag, "Postgres")
      assert.notInclude(JSON.stringify(database), "u:p@")
    })
  )
})
