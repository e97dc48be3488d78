import { assert, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { execFile } from "node:child_process"
import { chmodSync } from "node:fs"
import { chown, rm, stat, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { promisify } from "node:util"
import { Client } from "pg"
import { afterAll } from "vitest"
import { layerPostgres } from "../../../src/db/Database.ts"
import * as Migrations from "../../../src/db/Migrations.ts"
import { WebhookSenderLog } from "../../../src/webhooks/WebhookSender.ts"
import {
  advance,
  callWith,
  eventually,
  layerGateway,
  makeUser,
  operator
} from "../../support/gateway.ts"
import { newServer, stopServer } from "../../support/postgresProcess.ts"
import type { NewServer } from "../../support/postgresProcess.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"

/** docs/operating.md#backup */

const exec = promisify(execFile)
const image = "/vendors/alibaba/v1/text-to-image-max/generation"
const [original, restored, archive, media] = ["original", "restored", "archive", "media"].map(
  (name) => temporaryFolder(`backup-${name}`)
) as [string, string, string, string]
afterAll(() => Promise.all([stopServer(original), stopServer(restored)]))

const gatewayOn = ({ url }: NewServer) => {
  const server = layerPostgres({ url: Redacted.make(url) })
  return layerGateway({
    database: Migrations.layer().pipe(Layer.provideMerge(server), Layer.orDie),
    env: { ARTIFACT_STORE: media }
  })
}

/** Does what `pg_basebackup` does: copies the folder of a running server between two calls, with its label. */
const baseBackup = async (from: NewServer, to: NewServer) => {
  const client = new Client(from.url)
  await client.connect()
  await client.query("SELECT pg_backup_start('gateway', true)")
  await exec("cp", ["-a", `${from.data}/.`, to.data])
  const { rows } = await client.query("SELECT labelfile FROM pg_backup_stop()")
  await client.end()
  await rm(join(to.data, "postmaster.pid"), { force: true })
  // All WAL comes from the archive
  await exec("find", [join(to.data, "pg_wal"), "-type", "f", "-delete"])
  await writeOwned(to, "backup_label", rows[0].labelfile)
}

/** The server does not run as root. */
const writeOwned = async ({ data }: NewServer, name: string, text: string) => {
  await writeFile(join(data, name), text)
  const { gid, uid } = await stat(data)
  await chown(join(data, name), uid, gid)
}

/** Recovers a base backup to this moment, using only the archive. */
const recover = async (copy: NewServer, moment: string) => {
  await writeOwned(copy, "recovery.signal", "")
  await writeOwned(copy, "postgresql.auto.conf", `recovery_target_time = '${moment}'\n`)
  await copy.start()
}

const query = async ({ url }: NewServer, statement: string) => {
  const client = new Client(url)
  await client.connect()
  const { rows } = await client.query(statement)
  await client.end()
  return rows
}

const finishedTask = (call: ReturnType<typeof callWith>) =>
  Effect.gen(function* () {
    const created = yield* call("POST", image, { prompt: "A lighthouse" })
    const own = `${image}/${created.json.task_info.id}`
    yield* eventually(
      Effect.andThen(advance("1 second"), call("GET", own)),
      ({ json }) => json.task_info.status === "completed"
    )
    return own
  })

it.effect(
  "a base backup with its WAL is restored to a moment, and the work of that moment continues",
  () =>
    Effect.gen(function* () {
      chmodSync(archive, 0o777)
      const server = yield* Effect.promise(() =>
        newServer(original, [
          "wal_level=replica",
          "full_page_writes=on",
          "archive_mode=on",
          `archive_command=cp %p ${archive}/%f`
        ])
      )
      yield* Effect.promise(server.start)
      const copy = yield* Effect.promise(() =>
        newServer(
          restored,
          [`restore_command=cp ${archive}/%f %p`, "recovery_target_action=promote"],
          server
        )
      )

      const { key, moment, own, secret } = yield* Effect.gen(function* () {
        const { call, key } = yield* makeUser()
        const hook = { url: "https://receiver.example/hook", events: ["task.succeeded"] }
        const endpoint = yield* call("POST", "/manage/v1/webhook-endpoints", hook)
        yield* Effect.promise(() => baseBackup(server, copy))
        const own = yield* finishedTask(call)
        const [row] = yield* Effect.promise(() => query(server, "SELECT now()::text AS moment"))
        // After that moment, someone deletes what must not be deleted
        yield* Effect.promise(() =>
          query(server, "UPDATE tasks SET result = NULL; SELECT pg_switch_wal()")
        )
        return { key, moment: row.moment as string, own, secret: endpoint.json.secret as string }
      }).pipe(Effect.provide(gatewayOn(server)))

      yield* Effect.promise(async () => {
        // The server is gone, and only the archive is left
        await query(server, "SELECT pg_switch_wal()")
        await stopServer(original, "SIGINT")
        await recover(copy, moment)
      })
      const recovery = Effect.promise(() => query(copy, "SELECT pg_is_in_recovery() AS running"))
      yield* eventually(recovery, ([row]) => row.running === false)

      yield* Effect.gen(function* () {
        const call = callWith(key)
        const task = yield* call("GET", own)
        assert.isNotEmpty(task.json.images)
        assert.strictEqual((yield* call("GET", "/manage/v1/wallet")).json.held_balance, "0.00")
        yield* finishedTask(call)
        const { sent } = yield* WebhookSenderLog
        const deliveries = yield* eventually(
          Effect.andThen(advance("1 second"), sent),
          (all) => all.length > 0
        )
        assert.strictEqual(deliveries.at(-1)?.request.secret, secret)
        yield* advance("40 seconds")
        const queues = yield* operator("GET", "/manage/v1/queues")
        assert.strictEqual(queues.json.wallets.drift, 0)
        assert.isNotNull(queues.json.wallets.audited_at)
      }).pipe(Effect.provide(gatewayOn(copy)))
    }),
  120_000
)
