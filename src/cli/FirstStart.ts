import { Console, Effect, FileSystem, Layer, Option, Path, Redacted } from "effect"
import { SecureRandom } from "effect/crypto"
import { AppConfig, ConfigFault } from "../config/Config.ts"
import * as Credits from "../domain/Credits.ts"
import type { UserId } from "../domain/Ids.ts"
import { signInLinkMinutes } from "../domain/limits/SignInLimits.ts"
import { signInUrl } from "../http/server/service/SignInPage.ts"
import { makeVendorModes } from "../http/server/VendorModes.ts"
import type { VendorModes } from "../http/server/VendorModes.ts"
import { ProcessGroup } from "../process/ProcessGroup.ts"
import { Secrets } from "../process/secrets/Secrets.ts"
import { ApiKeys } from "../users/ApiKeys.ts"
import { Sessions } from "../users/Sessions.ts"
import { Users } from "../users/Users.ts"
import { Wallet } from "../wallet/Wallet.ts"

const ownerEmail = "owner@localhost"
const firstKeyName = "First key"

/**
 * This file exists in `DATA_DIR` from before the first user is created until the user's key has been printed.
 * docs/reference/configuration.md#first-start.
 */
const markerName = "first-start"

/** The vendor of the example call that the first start prints. */
const firstVendor = "alibaba"

const welcomeCredits = Credits.make(1000n * Credits.microPerCredit)

/**
 * On the first start of an embedded store, creates a user with credits and an API key, and prints the key once with a
 * `curl` command and a sign-in link. If that start was killed, the next one repeats this. Every start prints the
 * address and the live vendors, unless the log is JSON, which contains them.
 * docs/reference/configuration.md#first-start
 */
export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const { baseUrl, database, logFormat } = yield* AppConfig
    const { announces } = yield* ProcessGroup
    if (!announces) return
    const users = yield* Users
    const marker = yield* makeMarker
    const vendors = (yield* makeVendorModes)()
    const isEmpty = database._tag === "Embedded" && !(yield* users.known)
    if (isEmpty) yield* marker.set
    const isFirst = isEmpty || (database._tag === "Embedded" && (yield* marker.isSet))
    // With a JSON log, the server logs its address itself
    if (isFirst || logFormat === "pretty") {
      yield* Console.log(`Generation Gateway listens on ${baseUrl}  (docs: ${baseUrl}/docs)`)
      yield* Console.log(vendorLines(vendors).join("\n"))
    } else {
      yield* Effect.logInfo(vendorLines(vendors).join("; "))
    }
    if (isFirst) {
      const text = yield* welcome(baseUrl, vendors.live.has(firstVendor))
      yield* Effect.uninterruptible(Effect.andThen(Console.log(text), marker.clear))
    }
  })
)

const vendorLines = ({ live, simulated }: VendorModes): ReadonlyArray<string> => [
  `Live vendors: ${namesOf(live)}`,
  `Sandbox: ${namesOf(simulated)}`
]

const namesOf = (vendors: ReadonlySet<string>): string =>
  vendors.size === 0 ? "none" : [...vendors].sort().join(", ")

const makeMarker = Effect.gen(function* () {
  const { dataDir } = yield* AppConfig
  const fs = yield* FileSystem.FileSystem
  const file = (yield* Path.Path).join(dataDir, markerName)
  const usable = Effect.mapError(
    (error: { readonly message: string }) =>
      new ConfigFault({
        message: `DATA_DIR: ${file}: ${error.message}; set a writable folder`
      })
  )
  return {
    isSet: usable(fs.exists(file)),
    set: usable(fs.writeFileString(file, "The key of the first user was not printed yet\n")),
    clear: usable(fs.remove(file, { force: true }))
  }
})

/** The first user, with the welcome credits. An earlier start may already have created either. */
const makeOwner = Effect.gen(function* () {
  const users = yield* Users
  const wallet = yield* Wallet
  const known = (yield* users.list({ before: Option.none(), limit: 100 })).rows.find(
    ({ email }) => email === ownerEmail
  )
  const owner =
    known ??
    (yield* users.create({
      email: ownerEmail,
      name: Option.some("Owner"),
      password: Option.none()
    }))
  yield* wallet.topUp({
    userId: owner.id,
    amount: welcomeCredits,
    operationId: `top_up:${owner.id}:welcome`,
    note: Option.some("Welcome"),
    traceId: SecureRandom.uuidV4Unsafe().replaceAll("-", "")
  })
  return owner
})

/** Revokes a key that an earlier start created but did not print. */
const revokeUnprinted = Effect.fnUntraced(function* (userId: UserId) {
  const keys = yield* ApiKeys
  for (const key of yield* keys.list(userId, { before: Option.none(), limit: 100 })) {
    const isUnprinted = key.name === firstKeyName && key.lastUsedAt === null
    if (isUnprinted && key.revokedAt === null) yield* keys.revoke(userId, key.id)
  }
})

const welcome = Effect.fnUntraced(function* (baseUrl: string, isLive: boolean) {
  const keys = yield* ApiKeys
  const sessions = yield* Sessions
  const { generatedAdminToken } = yield* Secrets
  const owner = yield* makeOwner
  yield* revokeUnprinted(owner.id)
  const { key } = yield* keys.create({
    userId: owner.id,
    name: firstKeyName,
    scopes: ["inference", "manage"],
    expiresAt: Option.none()
  })
  const { token } = yield* sessions.createLink(owner.id)
  return [
    "",
    `Created the user ${ownerEmail} with ${Credits.format(welcomeCredits)} credits.`,
    `API key (shown this once):     ${key}`,
    ...Option.match(generatedAdminToken, {
      onNone: () => [],
      onSome: (admin) => [`Operator token (ADMIN_TOKEN):  ${Redacted.value(admin)}`]
    }),
    "",
    `Sign in with a browser (once, within ${signInLinkMinutes} minutes):`,
    "",
    `  ${signInUrl(baseUrl, token)}`,
    "",
    isLive
      ? `Try it (${firstVendor} is live, so the call costs money):`
      : `Try it (${firstVendor} is in the sandbox, so a simulator renders the result):`,
    "",
    `  curl -X POST ${baseUrl}/vendors/${firstVendor}/v1/text-to-image-max/generation \\`,
    `    -H "Authorization: Bearer ${key}" -H "Content-Type: application/json" \\`,
    `    -d '{"prompt":"A lighthouse at dawn"}'`,
    ""
  ].join("\n")
})
