import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Redacted } from "effect"
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { AppConfig } from "../../../src/config/Config.ts"
import { builtInProviders, variableOf } from "../../../src/domain/Provider.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"

type Settings = AppConfig["Service"]

const settingsOf = (env: Readonly<Record<string, string>>) =>
  Effect.provide(AppConfig, AppConfig.layerOf(env))

const faultOf = (env: Readonly<Record<string, string>>) =>
  Effect.map(Effect.flip(settingsOf(env)), ({ message }) => message)

const folder = temporaryFolder("secret-files")
const fileOf = (name: string, text: string): string => {
  const file = join(folder, name)
  writeFileSync(file, text)
  return file
}

const masterKey = Buffer.alloc(32, 3).toString("base64")
const forBucket = {
  ARTIFACT_STORE: "s3://media",
  AWS_ACCESS_KEY_ID: "id",
  AWS_SECRET_ACCESS_KEY: "secret-of-the-bucket"
}
const forServer = { ADMIN_TOKEN: "op_a_token_for_this_test", MASTER_KEY: masterKey }
const forOidc = { OIDC_ISSUER: "https://issuer.example", OIDC_CLIENT_ID: "client" }

const revealed = (secret: Option.Option<Redacted.Redacted>) =>
  Option.getOrUndefined(Option.map(secret, Redacted.value))

/** A variable for a secret: a value, what else it needs, and where it is read. */
const secrets: Readonly<
  Record<
    string,
    readonly [
      value: string,
      beside: Readonly<Record<string, string>>,
      of: (it: Settings) => string | undefined
    ]
  >
> = {
  ADMIN_TOKEN: ["op_a_token_for_this_test", {}, (it) => revealed(it.adminToken)],
  MASTER_KEY: [masterKey, {}, (it) => revealed(it.masterKey)],
  METRICS_TOKEN: ["a-token-for-prometheus", {}, (it) => revealed(it.metricsToken)],
  DATABASE_URL: [
    "postgres://u:p@127.0.0.1:5432/x",
    forServer,
    ({ database }) => (database._tag === "Postgres" ? Redacted.value(database.url) : undefined)
  ],
  OIDC_CLIENT_SECRET: [
    "secret-of-the-client",
    forOidc,
    (it) =>
      Option.getOrUndefined(
        Option.flatMap(it.signIn.oidc, (oidc) =>
          Option.fromUndefinedOr(revealed(oidc.clientSecret))
        )
      )
  ],
  AWS_SECRET_ACCESS_KEY: [
    "secret-of-the-bucket",
    { ARTIFACT_STORE: "s3://media", AWS_ACCESS_KEY_ID: "id" },
    ({ artifactStore }) =>
      artifactStore._tag === "S3" ? Redacted.value(artifactStore.secretAccessKey) : undefined
  ],
  AWS_SESSION_TOKEN: [
    "token-of-the-session",
    forBucket,
    ({ artifactStore }) =>
      artifactStore._tag === "S3" ? revealed(artifactStore.sessionToken) : undefined
  ],
  ...Object.fromEntries(
    builtInProviders
      .map(({ name }) => variableOf(name))
      .map(
        (variable) =>
          [
            `${variable}_API_KEY`,
            [
              `key-of-${variable}`,
              {},
              ({ accounts: [account] }: Settings) => account && Redacted.value(account.key)
            ]
          ] as const
      )
  )
}

describe("NAME_FILE", () => {
  for (const [name, [value, beside, of]] of Object.entries(secrets)) {
    it.effect(`${name}_FILE contains ${name}, with or without a line end`, () =>
      Effect.gen(function* () {
        for (const end of ["", "\n", "\r\n"]) {
          const file = fileOf(name, value + end)
          const settings = yield* settingsOf({ ...beside, [`${name}_FILE`]: file })
          assert.strictEqual(of(settings), value)
          assert.notInclude(JSON.stringify(settings), value)
        }
      })
    )

    it.effect(`${name}_FILE together with ${name} stops the start`, () =>
      Effect.gen(function* () {
        const file = fileOf(name, value)
        const message = yield* faultOf({ ...beside, [name]: value, [`${name}_FILE`]: file })
        assert.strictEqual(message, `${name}_FILE: ${name} is also set; set one of the two`)
      })
    )
  }

  it.effect("may have a list of keys on several lines", () =>
    Effect.gen(function* () {
      const file = fileOf("list", "sk-one;name=one,\n  sk-two;name=two\n")
      const { accounts } = yield* settingsOf({ OPENAI_API_KEY_FILE: file })
      assert.deepStrictEqual(
        accounts.map(({ key }) => Redacted.value(key)),
        ["sk-one", "sk-two"]
      )
    })
  )

  it.effect("counts as unset if it is empty, like every variable", () =>
    Effect.map(settingsOf({ ADMIN_TOKEN_FILE: "" }), ({ adminToken }) =>
      assert.deepStrictEqual(adminToken, Option.none())
    )
  )

  it.effect("stops the start with one line that names the file's fault but not its content", () =>
    Effect.gen(function* () {
      const isADirectory = join(folder, "directory")
      mkdirSync(isADirectory)
      for (const [file, fault] of [
        [join(folder, "absent"), /^ADMIN_TOKEN_FILE: .*absent.*; set the path of a file/u],
        [isADirectory, /^ADMIN_TOKEN_FILE: .*directory.*; set the path of a file/u],
        [fileOf("empty", "\n"), /^ADMIN_TOKEN_FILE: .*empty.* is empty; set the path of a file/u],
        [
          fileOf("lines", "geheim-of-the-service\ngeheim-of-another\n"),
          /^ADMIN_TOKEN_FILE: .*lines has more than one line; set the path of a file/u
        ],
        [fileOf("short", "geheim-kurz"), /^ADMIN_TOKEN: is too short; /u]
      ] as const) {
        const message = yield* faultOf({ ADMIN_TOKEN_FILE: file })
        assert.match(message, fault)
        assert.notInclude(message, "\n")
        assert.notInclude(message, "geheim")
      }
      const keys = fileOf("keys", "sk-geheim;weight=none")
      assert.notInclude(yield* faultOf({ OPENAI_API_KEY_FILE: keys }), "geheim")
    })
  )

  it("exists and is documented for every secret that src/config reads", () => {
    const sources = readdirSync("src/config").map((name) =>
      readFileSync(`src/config/${name}`, "utf8")
    )
    const read = sources.flatMap((text) =>
      [...text.matchAll(/readSecret\(["`]([^"`]+)["`]/gu)].map(([, name = ""]) => name)
    )
    const names = read.flatMap((name) =>
      name.startsWith("$")
        ? builtInProviders.map(({ name }) => `${variableOf(name)}_API_KEY`)
        : [name]
    )
    assert.sameMembers(names, Object.keys(secrets))
    const page = readFileSync("docs/reference/configuration.md", "utf8")
    const section = page.split("\n## ").find((it) => it.startsWith("Secrets in files")) ?? ""
    assert.deepStrictEqual(
      names.filter((name) => !section.includes(`\`${name}_FILE\``)),
      []
    )
  })
})
