import { Config, Effect, Option, Redacted, Result } from "effect"
import { createHash } from "node:crypto"
import { regions, variableOf } from "../domain/Provider.ts"
import type { AccountSetting, ProviderEntry } from "../domain/Provider.ts"
import { isBase, withoutSlash } from "./BaseUrl.ts"
import { fault, read, readSecret, together } from "./Setting.ts"
import type { ConfigFault } from "./Setting.ts"

/** A fault in a list of keys. Does not quote a key. */
interface KeysFault {
  readonly fault: string
}

const keysRemedy =
  "set one key, or several as key;weight=2;name=main,key;name=spare with an optional ;base=URL each"

const baseRemedy = "set an absolute http or https URL without a query"

/** Without a trailing slash; `undefined` if paths cannot be appended to the text as a URL. */
const parseBase = (text: string): string | undefined => {
  const url = URL.parse(text.trim())
  return url !== null && isBase(url) ? withoutSlash(url) : undefined
}

const weightMax = 1000
const concurrentMax = 100_000
const pollsMax = 100_000

/**
 * Reads `…_API_KEY`: keys separated by commas, each followed by settings
 * (`key;weight=3;name=eu;base=https://…;concurrent=5`). ADR 0070 and ADR 0108.
 */
const parseAccounts = (
  provider: ProviderEntry,
  text: string,
  base: string | undefined
): Result.Result<ReadonlyArray<AccountSetting>, KeysFault> => {
  const accounts: Array<AccountSetting> = []
  for (const part of text.split(",")) {
    const account = parseAccount(provider, part, base)
    if (Result.isFailure(account)) {
      return Result.fail({ fault: `key ${accounts.length + 1} ${account.failure}` })
    }
    if (accounts.some(({ id }) => id === account.success.id)) {
      return Result.fail({ fault: `key ${accounts.length + 1} is listed twice` })
    }
    accounts.push(account.success)
  }
  return Result.succeed(accounts)
}

const parseAccount = (
  provider: ProviderEntry,
  part: string,
  base: string | undefined
): Result.Result<AccountSetting, string> => {
  const [key = "", ...settings] = part.split(";").map((it) => it.trim())
  if (key === "") return Result.fail("is empty")
  if (!/^[\x21-\x7e]+$/u.test(key))
    return Result.fail("has characters that are not allowed in a header")
  const read: { -readonly [name in keyof Settings]: Settings[name] } = {}
  const given = new Set<string>()
  for (const setting of settings) {
    const at = Math.max(0, setting.indexOf("="))
    const kind = setting.slice(0, at).trim()
    const parse = readers.get(kind)
    if (parse === undefined) return Result.fail("is followed by an unknown setting")
    if (given.has(kind)) return Result.fail(`has two settings ${kind}`)
    given.add(kind)
    const parsed = parse(setting.slice(at + 1).trim())
    if (typeof parsed === "string") return Result.fail(parsed)
    Object.assign(read, parsed)
  }
  if (read.region !== undefined && provider.name !== "dashscope") {
    return Result.fail("has a region, which only DashScope has")
  }
  const { name = fingerprintOf(key), ...others } = read
  const own = others.baseUrl ?? base
  const baseUrl = own ?? provider.base
  if (baseUrl === undefined) {
    return Result.fail(`has no base: set ${variableOf(provider.name)}_BASE_URL`)
  }
  const isGuarded = own === undefined && provider.guarded === true
  return Result.succeed({
    ...accountOf(provider, name, key, baseUrl),
    ...others,
    ...(isGuarded ? { guarded: true } : {})
  })
}

const fingerprintOf = (text: string): string =>
  createHash("sha256").update(text).digest("hex").slice(0, 10)

const accountOf = (
  { auth, name: provider }: ProviderEntry,
  name: string,
  key: string,
  baseUrl: string
): AccountSetting => ({
  weight: 1,
  baseUrl,
  id: `${provider}:${name}`,
  provider,
  auth,
  key: Redacted.make(key, { label: `${provider} key` })
})

/** The settings that can follow a key. */
interface Settings extends Partial<
  Pick<AccountSetting, "weight" | "baseUrl" | "concurrent" | "polls" | "region" | "jwksUrl">
> {
  readonly name?: string
}

/** A whole number, 1 or more. */
const count = (text: string, max: number): number | undefined =>
  /^\d{1,6}$/u.test(text) && Number(text) >= 1 && Number(text) <= max ? Number(text) : undefined

/** Parsers by setting name. A parser returns the setting or its fault. */
const readers = new Map<string, (value: string) => Settings | string>([
  [
    "weight",
    (value) => {
      const weight = count(value, weightMax)
      return weight === undefined ? `needs a weight from 1 to ${weightMax}` : { weight }
    }
  ],
  [
    "concurrent",
    (value) => {
      const concurrent = count(value, concurrentMax)
      return concurrent === undefined
        ? `needs a concurrent from 1 to ${concurrentMax}`
        : { concurrent }
    }
  ],
  [
    "polls",
    (value) => {
      const polls = count(value, pollsMax)
      return polls === undefined ? `needs polls from 1 to ${pollsMax} per second` : { polls }
    }
  ],
  [
    "name",
    (name) => (/^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$/u.test(name) ? { name } : "has an invalid name")
  ],
  [
    "base",
    (value) => {
      const baseUrl = parseBase(value)
      return baseUrl === undefined ? "has an invalid base" : { baseUrl }
    }
  ],
  [
    "region",
    (value) => {
      const region = regions.find((it) => it === value)
      return region === undefined ? `needs a region of ${regions.join(", ")}` : { region }
    }
  ],
  [
    "jwks",
    (value) => {
      const jwksUrl = parseBase(value)
      return jwksUrl === undefined ? "has an invalid jwks" : { jwksUrl }
    }
  ]
])

const accountsOf = Effect.fnUntraced(function* (provider: ProviderEntry) {
  const variable = variableOf(provider.name)
  const keys = yield* readSecret(`${variable}_API_KEY`, keysRemedy)
  const text = yield* read(
    `${variable}_BASE_URL`,
    Config.option(Config.NonEmptyString(`${variable}_BASE_URL`)),
    baseRemedy
  )
  const base = Option.map(text, parseBase)
  if (Option.isSome(base) && base.value === undefined) {
    return yield* fault(`${variable}_BASE_URL`, "cannot be used as a base URL", baseRemedy)
  }
  if (Option.isNone(keys)) {
    // A server that needs no key is enabled by its base alone
    return provider.auth === "optional-bearer" && Option.isSome(base) && base.value !== undefined
      ? [accountOf(provider, fingerprintOf(base.value), "", base.value)]
      : []
  }
  const parsed = parseAccounts(provider, Redacted.value(keys.value), Option.getOrUndefined(base))
  return Result.isSuccess(parsed)
    ? parsed.success
    : yield* fault(`${variable}_API_KEY`, parsed.failure.fault, keysRemedy)
})

/** The accounts that the environment configures for these providers. docs/reference/configuration.md#vendor-accounts */
export const vendorAccounts = (
  providers: ReadonlyArray<ProviderEntry>
): Effect.Effect<ReadonlyArray<AccountSetting>, ConfigFault> =>
  Effect.mapBoth(Effect.validate(providers, accountsOf), {
    onFailure: together,
    onSuccess: (lists) => lists.flat()
  })
