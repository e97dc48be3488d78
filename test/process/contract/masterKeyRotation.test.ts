import { NodeServices } from "@effect/platform-node"
import { assert, it } from "@effect/vitest"
import { DateTime, Effect, Exit, Fiber, FileSystem, Layer, Logger } from "effect"
import type { Context } from "effect"
import { SqlClient } from "effect/sql"
import { randomBytes } from "node:crypto"
import { rotateStore } from "../../../src/cli/commands/rotateMasterKey.ts"
import { AppConfig } from "../../../src/config/Config.ts"
import type { Database } from "../../../src/db/Database.ts"
import { Process } from "../../../src/process/heartbeat/Process.ts"
import { makeProcessId } from "../../../src/process/heartbeat/ProcessId.ts"
import { ProcessStore } from "../../../src/process/heartbeat/ProcessStore.ts"
import { MasterKeyRotation } from "../../../src/process/secrets/MasterKeyRotation.ts"
import { sealedColumns, SealedValueStore } from "../../../src/process/secrets/SealedValueStore.ts"
import { Secrets } from "../../../src/process/secrets/Secrets.ts"
import { WebhookSenderLog } from "../../../src/webhooks/WebhookSender.ts"
import {
  adminToken,
  advance,
  callWith,
  eventually,
  layerGateway,
  makeUser
} from "../../support/gateway.ts"
import { startProcess } from "../../support/startProcess.ts"
import { describeStores } from "../../support/stores.ts"

/** docs/operating.md#rotating-master_key, ADR 0222 */

const newKey = () => randomBytes(32).toString("base64")
const [first, second] = [newKey(), newKey()]
const vendorKey = `sk-vendor-${randomBytes(8).toString("hex")}`
const callText = "what a call said"
const receiver = "https://receiver.example/hook"
const image = "/vendors/alibaba/v1/text-to-image-max/generation"
const endpoints = "/manage/v1/webhook-endpoints"

/** Data that do not depend on the master key: hashes, digests of requests, bodies of events, public keys. */
const otherBytes = [
  "api_keys.key_hash",
  "api_keys.previous_key_hash",
  "artifacts.sha256",
  "events.body",
  "idempotency_keys.request_hash",
  "manage_idempotency_keys.request_hash",
  "passkey_challenges.hash",
  "passkeys.credential_id",
  "passkeys.public_key",
  "sessions.token_hash",
  "sign_in_links.token_hash",
  "vendor_attempts.body_hash",
  "vendor_callbacks.digest"
]

/** Everything in the service that is encrypted or signed under the master key. */
const makeData = Effect.gen(function* () {
  const { call, key } = yield* makeUser()
  const made = yield* call("POST", endpoints, {
    url: receiver,
    events: ["task.succeeded"]
  })
  assert.strictEqual(made.status, 201, made.text)
  const rotated = yield* call("POST", endpoints, {
    url: "https://other.example/hook",
    events: ["balance.low"]
  })
  // Both secrets sign for a while
  yield* call("POST", `${endpoints}/${rotated.json.id}/rotate`)
  const replayed = { "idempotency-key": "of-the-test" }
  const keyBody = { name: "kept", scopes: ["inference"] }
  const kept = yield* call("POST", "/manage/v1/api-keys", keyBody, replayed)
  assert.strictEqual(kept.status, 201, kept.text)
  const sql = yield* SqlClient.SqlClient
  const sealed = Buffer.from((yield* Secrets).encrypt(callText))
  yield* sql`INSERT INTO call_contents VALUES (gen_random_uuid(), gen_random_uuid(), ${sealed}, now())`
  const created = yield* call("POST", image, { prompt: "A lighthouse" })
  const own = `${image}/${created.json.task_info.id}`
  const done = yield* eventually(
    Effect.andThen(advance("1 second"), call("GET", own)),
    ({ json }) => json.task_info.status === "completed"
  )
  const link: string = done.json.images[0]
  return { key, link, secret: String(made.json.secret), kept: kept.text, keyBody, replayed }
})

type Data = Effect.Success<typeof makeData>

const pathOf = (link: string) => link.slice(new URL(link).origin.length)

/** Everything can be read and used, except links signed with a removed key. */
const assertUsable = Effect.fnUntraced(function* (data: Data, isLinkValid: boolean) {
  const call = callWith(data.key)
  const replay = yield* call("POST", "/manage/v1/api-keys", data.keyBody, data.replayed)
  assert.strictEqual(replay.text, data.kept)
  const old = yield* call("GET", pathOf(data.link))
  assert.strictEqual(old.status, isLinkValid ? 200 : 403)
  const sql = yield* SqlClient.SqlClient
  const [account] = yield* sql<{ readonly sealed: Uint8Array }>`SELECT sealed FROM vendor_accounts`
  assert.include(yield* (yield* Secrets).decrypt(account!.sealed), vendorKey)
  const calls = yield* sql<{ readonly sealed: Uint8Array }>`SELECT sealed FROM call_contents`
  for (const { sealed } of calls) {
    assert.strictEqual(yield* (yield* Secrets).decrypt(sealed), callText)
  }
  const log = yield* WebhookSenderLog
  const sent = Effect.map(log.sent, (all) => all.filter(({ request }) => request.url === receiver))
  const before = (yield* sent).length
  yield* call("POST", image, { prompt: "Another lighthouse" })
  const after = yield* eventually(
    Effect.andThen(advance("1 second"), sent),
    (all) => all.length > before
  )
  assert.strictEqual(after.at(-1)?.request.secret, data.secret)
})

/** A starting process waits by the clock. A second in which it queries the store does not count as waiting. */
const untilEnded = <A, E>(fiber: Fiber.Fiber<A, E>) =>
  eventually(
    Effect.map(advance("1 second"), () => fiber.pollUnsafe()),
    (exit) => exit !== undefined
  )

/** Starts another process beside the running ones, and ends it. */
const start = (store: Context.Context<Database>, MASTER_KEY: string) =>
  Effect.scoped(startProcess(store, MASTER_KEY))

describeStores("the rotation of the master key", (database) => {
  it.effect("knows every column with bytes", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const rows = yield* sql<{ readonly name: string }>`
        SELECT c.relname || '.' || a.attname AS name FROM pg_attribute a
        JOIN pg_class c ON c.oid = a.attrelid
        WHERE a.atttypid = 'bytea'::regtype AND c.relnamespace = 'public'::regnamespace
          AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND NOT a.attisdropped ORDER BY 1`
      assert.sameMembers(
        rows.map(({ name }) => name),
        [...sealedColumns.map(({ column, table }) => `${table}.${column}`), ...otherBytes]
      )
    }).pipe(Effect.provide(database))
  )

  it.effect("is reported by the first start that lacks the key of the process before it", () =>
    Effect.gen(function* () {
      const built = yield* Layer.build(database)
      const [lost, next] = [newKey(), newKey()]
      const errorsOf = Effect.fnUntraced(function* (masterKey: string) {
        const errors: Array<string> = []
        const logger = Logger.make(({ logLevel, message }) => {
          if (logLevel === "Error") errors.push(String(message))
        })
        yield* Effect.provide(start(built, masterKey), Logger.layer([logger]))
        yield* Effect.provide(advance("1 second"), built)
        return errors
      })
      assert.deepStrictEqual(yield* errorsOf(lost), [])
      assert.deepStrictEqual(yield* errorsOf(`${next},${lost}`), [])
      assert.deepStrictEqual(yield* errorsOf(next), [])
      const [error, ...others] = yield* errorsOf(lost)
      assert.match(error ?? "", /^MASTER_KEY: the process before this one encrypted under a key/u)
      assert.deepStrictEqual(others, [])
      assert.deepStrictEqual(yield* errorsOf(lost), [])
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )

  it.effect(
    "reads old and new values meanwhile, resumes after a crash, and leaves no old value behind",
    () =>
      Effect.gen(function* () {
        const built = yield* Layer.build(database)
        const media = yield* (yield* FileSystem.FileSystem).makeTempDirectoryScoped()
        /** Gateways on one store, one after the other: restarts. */
        const run = <A, E, R>(
          env: Readonly<Record<string, string>>,
          work: Effect.Effect<A, E, R>
        ) =>
          Effect.provide(
            work,
            layerGateway({
              database: Layer.succeedContext(built),
              env: { ARTIFACT_STORE: media, ...env }
            }),
            {
              local: true
            }
          )

        /** The command, beside the service or without it. */
        const rotateWith = <A, E>(
          MASTER_KEY: string,
          work: (rotation: MasterKeyRotation["Service"]) => Effect.Effect<A, E, MasterKeyRotation>
        ) =>
          Effect.flatMap(MasterKeyRotation, work).pipe(
            Effect.provide(
              MasterKeyRotation.layer.pipe(
                Layer.provide(Secrets.layer),
                Layer.provide(Layer.succeedContext(built)),
                Layer.provide(AppConfig.layerOf({ MASTER_KEY, ADMIN_TOKEN: adminToken }))
              ),
              { local: true }
            )
          )

        const data = yield* run(
          { MASTER_KEY: first, DASHSCOPE_API_KEY: `${vendorKey};name=one` },
          makeData
        )
        const keys = `${second},${first}`
        // Every process must read both before one writes under the new key
        yield* run(
          { MASTER_KEY: `${first},${second}` },
          Effect.gen(function* () {
            yield* assertUsable(data, true)
            const { id } = yield* Process
            const refused = yield* Effect.flip(rotateWith(keys, () => rotateStore))
            assert.include(
              refused.message,
              `these running processes do not encrypt under its first key`
            )
            assert.include(refused.message, id)
            yield* assertUsable(data, true)
            const starting = yield* Effect.forkChild(Effect.flip(start(built, newKey())))
            yield* advance("4 seconds")
            yield* untilEnded(starting)
            const started = yield* Fiber.join(starting)
            assert.match(
              started.message,
              /^MASTER_KEY: running processes encrypt under a key that is not/u
            )
            assert.include(started.message, id)
            for (const shared of [keys, first]) yield* start(built, shared)
            const untouched = yield* rotateWith(first, ({ rotate }) => rotate(() => Effect.void))
            assert.deepStrictEqual(untouched, { rewritten: 0, unreadable: [] })
          })
        )
        yield* run(
          { MASTER_KEY: keys },
          Effect.gen(function* () {
            yield* assertUsable(data, true)
            const crashed = yield* rotateWith(keys, ({ rotate }) =>
              Effect.exit(rotate(() => Effect.die("killed")))
            )
            assert.isTrue(Exit.isFailure(crashed))
            yield* assertUsable(data, true)
            const left = yield* rotateWith(keys, ({ rotate }) => rotate(() => Effect.void))
            // The secrets of both endpoints were rewritten before the crash
            assert.deepStrictEqual(left, { rewritten: 4, unreadable: [] })
            const again = yield* rotateWith(keys, ({ rotate }) => rotate(() => Effect.void))
            assert.strictEqual(again.rewritten, 0)
            yield* assertUsable(data, true)
            assert.deepStrictEqual(yield* rotateWith(keys, () => rotateStore), { rewritten: 0 })
          })
        )
        yield* rotateWith(second, () => rotateStore)
        yield* run({ MASTER_KEY: second }, assertUsable(data, false))
        const { message } = yield* Effect.flip(rotateWith(first, () => rotateStore))
        assert.match(
          message,
          /^MASTER_KEY: \d+ values cannot be read with any of its keys; add the key/u
        )
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )

  it.effect("a start waits for a killed process with another key, and is not refused", () =>
    Effect.gen(function* () {
      const built = yield* Layer.build(database)
      yield* Effect.gen(function* () {
        const killed = makeProcessId({ mac: () => "of another key" })
        yield* (yield* ProcessStore).heartbeat(killed, yield* DateTime.now)
        const starting = yield* Effect.forkChild(start(built, first))
        yield* advance("9 seconds")
        assert.isUndefined(starting.pollUnsafe())
        yield* untilEnded(starting)
        yield* Fiber.join(starting)
      }).pipe(Effect.provide(Layer.provideMerge(ProcessStore.layer, Layer.succeedContext(built))))
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )

  it.effect("overwrites no value that has changed since it was read", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql`INSERT INTO vendor_accounts (id, sealed, configured_at) VALUES ('a', 'new', now())`
      const store = yield* SealedValueStore
      const column = sealedColumns.find(({ table }) => table === "vendor_accounts")!
      const [value] = yield* store.page(column, { first: "", second: "" }, 10)
      const stale = { ...value!, sealed: Buffer.from("old") }
      assert.isFalse(yield* store.replace(column, stale, Buffer.from("newer")))
      assert.isTrue(yield* store.replace(column, value!, Buffer.from("newer")))
      const rows = yield* store.page(column, { first: "", second: "" }, 10)
      assert.deepStrictEqual(
        rows.map((it) => Buffer.from(it.sealed).toString()),
        ["newer"]
      )
      assert.deepStrictEqual(yield* store.page(column, { first: "a", second: "" }, 10), [])
    }).pipe(Effect.provide(SealedValueStore.layer.pipe(Layer.provideMerge(database))))
  )
})
