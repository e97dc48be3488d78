import { Console, Effect, Layer, Option, Redacted } from "effect"
import * as Credits from "../domain/Credits.ts"
import { AppConfig } from "../Config.ts"
import { ApiKeys } from "../services/ApiKeys.ts"
import { Secrets } from "../services/Secrets.ts"
import { Users } from "../services/Users.ts"
import { Wallet } from "../services/Wallet.ts"
import { SecureRandom } from "effect/crypto"

const ownerEmail = "owner@localhost"

/** Contract 9: what the first user begins with. */
const welcomeCredits = Credits.make(1000n * Credits.microPerCredit)

/**
 * On the first start of an embedded store: a user with credits and one API key, shown this once,
 * with a `curl` to copy. On any start, for people: the address.
 */
export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const { baseUrl, database, logFormat } = yield* AppConfig
    const users = yield* Users
    const isFirst =
      database._tag === "Embedded" &&
      (yield* users.list({ before: Option.none(), limit: 1 })).length === 0
    // A reader of JSON has the line of the server itself
    if (isFirst || logFormat === "pretty") {
      yield* Console.log(`Generation Gateway listens on ${baseUrl}  (docs: ${baseUrl}/docs)`)
    }
    if (isFirst) yield* Console.log(yield* welcome(baseUrl))
  })
)

const welcome = Effect.fnUntraced(function* (baseUrl: string) {
  const users = yield* Users
  const keys = yield* ApiKeys
  const wallet = yield* Wallet
  const { generatedAdminToken } = yield* Secrets
  const owner = yield* users.create({
    email: ownerEmail,
    name: Option.some("Owner"),
    password: Option.none()
  })
  yield* wallet.topUp({
    userId: owner.id,
    amount: welcomeCredits,
    operationId: `top_up:${owner.id}:welcome`,
    note: Option.some("Welcome"),
    traceId: SecureRandom.uuidV4Unsafe().replaceAll("-", "")
  })
  const { key } = yield* keys.create({
    userId: owner.id,
    name: "First key",
    scopes: ["inference", "manage"],
    expiresAt: Option.none()
  })
  return [
    "",
    `Made the user ${ownerEmail} with ${Credits.format(welcomeCredits)} credits.`,
    `API key (shown this once):     ${key}`,
    ...Option.match(generatedAdminToken, {
      onNone: () => [],
      onSome: (token) => [`Operator token (ADMIN_TOKEN):  ${Redacted.value(token)}`]
    }),
    "",
    "Try it (sandbox: no vendor key is configured, a simulator renders the result):",
    "",
    `  curl -X POST ${baseUrl}/vendors/alibaba/v1/text-to-image-max/generation \\`,
    `    -H "Authorization: Bearer ${key}" -H "Content-Type: application/json" \\`,
    `    -d '{"prompt":"A lighthouse at dawn"}'`,
    ""
  ].join("\n")
})
