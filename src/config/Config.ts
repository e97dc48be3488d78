import {
  ByteSize,
  Config,
  ConfigProvider,
  Context,
  Duration,
  Effect,
  Layer,
  Option,
  Schema
} from "effect"
import type { LogLevel, Redacted } from "effect"
import { artifactHours } from "../domain/limits/Limits.ts"
import { parseEgressAllow } from "../domain/network/EgressAllow.ts"
import type { EgressAllow } from "../domain/network/EgressAllow.ts"
import { builtInProviders } from "../domain/Provider.ts"
import type { AccountSetting, ProviderEntry } from "../domain/Provider.ts"
import { artifactLocation } from "./ArtifactLocation.ts"
import type { ArtifactLocation } from "./ArtifactLocation.ts"
import { logSettings } from "./LogSettings.ts"
import { processSettings } from "./ProcessSettings.ts"
import { baseUrl, publicUrl } from "./PublicUrls.ts"
import { retentionSettings } from "./RetentionSettings.ts"
import type { RetentionSettings } from "./RetentionSettings.ts"
import { secretSettings } from "./SecretSettings.ts"
import { every, fault, read, readSecret } from "./Setting.ts"
import type { ConfigFault } from "./Setting.ts"
import { shutdownSettings } from "./ShutdownSettings.ts"
import { signInSettings } from "./SignInSettings.ts"
import type { SignInSettings } from "./SignInSettings.ts"
import { vendorAccounts } from "./VendorAccounts.ts"

export { ConfigFault } from "./Setting.ts"

/** The duration of simulated jobs: a random time between the two bounds. */
export interface DelayRange {
  readonly min: Duration.Duration
  readonly max: Duration.Duration
}

const withoutEmpty = (env: Readonly<Record<string, string | undefined>>) =>
  ConfigProvider.fromEnv({
    env: Object.fromEntries(
      Object.entries(env).flatMap(([name, value]) =>
        value === undefined || value === "" ? [] : [[name, value]]
      )
    )
  })

/** All settings, decoded. docs/reference/configuration.md#variables */
export class AppConfig extends Context.Service<
  AppConfig,
  {
    readonly port: number
    readonly host: string
    /** Without a trailing slash. */
    readonly baseUrl: string
    /** The base URL to which vendors send callbacks, without a trailing slash. ADR 0107. */
    readonly publicUrl: Option.Option<string>
    readonly database:
      | { readonly _tag: "Embedded"; readonly durable: boolean }
      | { readonly _tag: "Postgres"; readonly url: Redacted.Redacted; readonly pool: number }
    /** The number of identical processes of this command, including this one. They divide the limits of one process. */
    readonly processes: number
    readonly dataDir: string
    readonly adminToken: Option.Option<Redacted.Redacted>
    readonly masterKey: Option.Option<Redacted.Redacted>
    /** If it is absent, anyone may read `/metrics`, which then names neither users nor accounts. ADR 0223 */
    readonly metricsToken: Option.Option<Redacted.Redacted>
    readonly catalogFile: Option.Option<string>
    readonly artifactStore: ArtifactLocation
    readonly egressAllow: EgressAllow
    /** The simulator serves providers without an account. ADR 0070. */
    readonly accounts: ReadonlyArray<AccountSetting>
    /** These accounts and those of a catalog's providers, whose secret files are read again. */
    readonly accountsWith: (
      providers: ReadonlyArray<ProviderEntry>
    ) => Effect.Effect<ReadonlyArray<AccountSetting>, ConfigFault>
    /** Whether `safety_filter: false` is passed on to DashScope, which must have allowed it for the account. */
    readonly dashScopeInspectionOptOut: boolean
    /** The longest silence of an upstream, before its response and within it. */
    readonly upstreamTimeout: Duration.Duration
    /** How long an abandoned stream is still read for its usage figures. */
    readonly abandonedStreamTimeout: Duration.Duration
    /** How long a request of the OpenAI-compatible images API waits for its task. */
    readonly imagesWait: Duration.Duration
    readonly simulatorDelay: DelayRange
    /** The time from the stop signal until the process stops listening. */
    readonly shutdownDelay: Duration.Duration
    /** The time after that for running requests, submits and deliveries. */
    readonly shutdownGrace: Duration.Duration
    readonly taskDeadline: Duration.Duration
    readonly balanceAlertThrottle: Duration.Duration
    readonly retention: RetentionSettings
    readonly maxBodyBytes: number
    /** Inference requests of a key per minute; 0 means no limit. */
    readonly rateLimitPerMinute: number
    /** The same limit for all keys of a user together. */
    readonly userRateLimitPerMinute: number
    /** Management requests of a user per minute; 0 means no limit. */
    readonly manageRateLimitPerMinute: number
    /** Unfinished tasks of a key; 0 means no limit. */
    readonly concurrentTasksPerKey: number
    /** The same limit for all keys of a user together. */
    readonly concurrentTasksPerUser: number
    /** Bytes of stored inputs of a user; 0 means no limit. */
    readonly keptInputBytesPerUser: number
    /** Bytes of a user's files for batches. */
    readonly fileBytesPerUser: number
    /** The initial spend limit of a console key; 0 means none. */
    readonly consoleCreditsPerMonth: number
    readonly signIn: SignInSettings
    readonly serviceName: string
    /** Where users of the console buy credits: a URL or an e-mail address. */
    readonly topUpUrl: Option.Option<string>
    readonly logLevel: LogLevel.LogLevel
    readonly logFormat: "pretty" | "json"
    /** The OpenTelemetry collector (OTLP over HTTP) that receives traces, metrics and logs. */
    readonly otlpEndpoint: Option.Option<string>
  }
>()("gateway/Config/AppConfig") {
  /** Reads the process environment. A variable that is set but empty counts as unset. */
  static readonly layer = Layer.effect(
    AppConfig,
    Effect.suspend(() =>
      Effect.provideService(
        load,
        ConfigProvider.ConfigProvider,
        withoutEmpty(globalThis.process.env)
      )
    )
  )

  /** Reads the given variables instead of the environment, for tests. */
  static readonly layerOf = (env: Readonly<Record<string, string | undefined>>) =>
    Layer.effect(
      AppConfig,
      Effect.suspend(() => load).pipe(
        Effect.provideService(ConfigProvider.ConfigProvider, withoutEmpty(env))
      )
    )
}

const load = Effect.gen(function* () {
  const environment = yield* ConfigProvider.ConfigProvider
  const { addresses, limits, log, shutdown, store, ...rest } = yield* every({
    accounts: vendorAccounts(builtInProviders),
    addresses: addressSettings,
    store: storeSettings,
    limits: limitSettings,
    shutdown: shutdownSettings,
    retention: retentionSettings,
    signIn: signInSettings,
    log: logSettings
  })
  return AppConfig.of({
    ...rest,
    ...addresses,
    ...store,
    ...limits,
    ...shutdown,
    ...log,
    accountsWith: (providers) =>
      Effect.map(vendorAccounts(providers), (opened) => [...rest.accounts, ...opened]).pipe(
        Effect.provideService(ConfigProvider.ConfigProvider, environment)
      )
  })
})

const Link = Schema.String.check(
  Schema.isMaxLength(500),
  Schema.makeFilter<string>(
    (text) =>
      ["https:", "http:", "mailto:"].includes(URL.parse(text)?.protocol ?? "") || "is not a link"
  )
)

const egressRemedy = "set hosts and CIDRs, separated by commas"

const addressSettings = every({
  port: read(
    "PORT",
    Config.Port("PORT").pipe(Config.withDefault(8080)),
    "set a number from 1 to 65535, such as 8080"
  ),
  publicUrl,
  host: read(
    "HOST",
    Config.NonEmptyString("HOST").pipe(Config.withDefault("127.0.0.1")),
    "set an address to listen on"
  ),
  baseUrl,
  serviceName: read(
    "SERVICE_NAME",
    Config.schema(
      Schema.String.check(Schema.isPattern(/^[A-Za-z][A-Za-z0-9-]{0,31}$/u)),
      "SERVICE_NAME"
    ).pipe(Config.withDefault("Service")),
    "set 1 to 32 letters, digits or hyphens, starting with a letter"
  ),
  topUpUrl: read(
    "TOP_UP_URL",
    Config.option(Config.schema(Link, "TOP_UP_URL")),
    "set an https, http or mailto URL of at most 500 characters"
  ),
  egressAllow: read(
    "EGRESS_ALLOW",
    Config.String("EGRESS_ALLOW").pipe(Config.withDefault("")),
    egressRemedy
  ).pipe(
    Effect.flatMap((text) => Effect.fromResult(parseEgressAllow(text))),
    Effect.catchTag("EgressAllowInvalid", ({ message }) =>
      Effect.fail(fault("EGRESS_ALLOW", message, egressRemedy))
    )
  )
}).pipe(
  Effect.map((it) => ({
    ...it,
    baseUrl: Option.getOrElse(it.baseUrl, () => `http://localhost:${it.port}`)
  }))
)

const dataDir = read(
  "DATA_DIR",
  Config.NonEmptyString("DATA_DIR").pipe(Config.withDefault("./data")),
  "set a folder"
)

const storeSettings = Effect.gen(function* () {
  const url = yield* readSecret("DATABASE_URL", "set a postgres:// URL")
  const { durable, processes, secrets, ...rest } = yield* every({
    dataDir,
    durable: read(
      "EMBEDDED_DURABLE",
      Config.Boolean("EMBEDDED_DURABLE").pipe(Config.withDefault(true)),
      "set true or false"
    ),
    processes: processSettings(Option.isSome(url)),
    secrets: secretSettings(Option.isSome(url)),
    catalogFile: read(
      "CATALOG_FILE",
      Config.option(Config.NonEmptyString("CATALOG_FILE")),
      "set the path of a JSON file"
    ),
    artifactStore: Effect.flatMap(dataDir, artifactLocation)
  })
  return {
    ...rest,
    ...secrets,
    processes: processes.processes,
    database: Option.match(url, {
      onNone: () => ({ _tag: "Embedded" as const, durable }),
      onSome: (value) => ({ _tag: "Postgres" as const, url: value, pool: processes.pool })
    })
  }
})

const limitSettings = Effect.suspend(() => {
  const delay = read(
    "SIMULATOR_DELAY",
    Config.NonEmptyString("SIMULATOR_DELAY").pipe(Config.withDefault("2 seconds to 6 seconds")),
    delayRemedy
  )
  // Media and the holds of calls expire after 24 hours, so nothing may wait longer
  const duration = (name: string, preset = Duration.hours(1)) =>
    read(name, Config.Duration(name).pipe(Config.withDefault(preset)), durationRemedy).pipe(
      Effect.filterOrFail(
        (it) => Duration.isPositive(it) && Duration.isLessThanOrEqualTo(it, durationMax),
        (it) => fault(name, `${Duration.format(it)} is out of bounds`, durationRemedy)
      )
    )
  const count = (name: string, preset = 0) =>
    read(
      name,
      Config.schema(countFromString, name).pipe(Config.withDefault(preset)),
      `set a whole number up to ${countMax}, or 0 for no limit`
    )
  return every({
    rateLimitPerMinute: count("RATE_LIMIT_PER_MINUTE"),
    userRateLimitPerMinute: count("USER_RATE_LIMIT_PER_MINUTE"),
    manageRateLimitPerMinute: count("MANAGE_RATE_LIMIT_PER_MINUTE", 600),
    concurrentTasksPerKey: count("CONCURRENT_TASKS_PER_KEY"),
    concurrentTasksPerUser: count("CONCURRENT_TASKS_PER_USER"),
    keptInputBytesPerUser: byteCount("KEPT_INPUT_BYTES_PER_USER", "10 GiB", 0),
    fileBytesPerUser: byteCount("FILE_BYTES_PER_USER", "2 GiB", 0),
    consoleCreditsPerMonth: count("CONSOLE_CREDITS_PER_MONTH", 1000),
    simulatorDelay: Effect.flatMap(delay, delayRange),
    maxBodyBytes: byteCount("MAX_BODY_BYTES", "128 MiB", 1),
    taskDeadline: duration("TASK_DEADLINE"),
    balanceAlertThrottle: duration("BALANCE_ALERT_THROTTLE"),
    dashScopeInspectionOptOut: read(
      "DASHSCOPE_INSPECTION_OPT_OUT",
      Config.Boolean("DASHSCOPE_INSPECTION_OPT_OUT").pipe(Config.withDefault(false)),
      "set true or false"
    ),
    upstreamTimeout: duration("UPSTREAM_TIMEOUT", Duration.minutes(10)),
    abandonedStreamTimeout: duration("ABANDONED_STREAM_TIMEOUT", Duration.minutes(2)),
    imagesWait: duration("IMAGES_WAIT", Duration.minutes(1))
  })
})

const countMax = 1_000_000
const countFromString = Schema.NumberFromString.check(
  Schema.isInt(),
  Schema.isBetween({ minimum: 0, maximum: countMax })
)

const durationMax = Duration.hours(artifactHours)
const durationRemedy = `set a duration above 0 and up to ${artifactHours} hours, such as 1 hour`

const delayRemedy = "set one duration or two, the shorter first, such as 2 seconds to 6 seconds"
const decodeDuration = Schema.decodeUnknownOption(Schema.DurationFromString)

const delayRange = (text: string): Effect.Effect<DelayRange, ConfigFault> => {
  const [first, second, ...rest] = text.split(" to ")
  return Option.all({ min: decodeDuration(first), max: decodeDuration(second ?? first) }).pipe(
    Option.filter(
      ({ max, min }) =>
        rest.length === 0 &&
        !Duration.isNegative(min) &&
        Duration.isLessThanOrEqualTo(min, max) &&
        Duration.isFinite(max)
    ),
    Effect.fromOption,
    Effect.mapError(() =>
      fault("SIMULATOR_DELAY", `"${text}" is not a duration or a range`, delayRemedy)
    )
  )
}

const sizeRemedy = "set a size, such as 128 MiB, or a number of bytes"

/** Bytes, at least `least`. */
const byteCount = Effect.fnUntraced(function* (name: string, preset: string, least: number) {
  const given = Config.NonEmptyString(name).pipe(Config.withDefault(preset))
  const text = yield* read(name, given, sizeRemedy)
  return yield* ByteSize.fromString(/^\d+$/u.test(text) ? `${text} B` : text).pipe(
    Option.flatMap(ByteSize.toNumber),
    Option.filter((bytes) => bytes >= least),
    Effect.fromOption,
    Effect.mapError(() => fault(name, `"${text}" is not a size`, sizeRemedy))
  )
})
