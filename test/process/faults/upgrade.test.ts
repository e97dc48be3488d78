import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { randomUUID } from "node:crypto"
import { cpSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { bundle } from "../../../src/cli/service/buildService.ts"
import { shortLived } from "../../support/compiled.ts"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { projectFolder } from "../../support/spawnService.ts"
import { processDatabaseUrl } from "../../support/stores.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import { pause, until } from "../../support/until.ts"

const path = "/vendors/alibaba/v1/text-to-image-max/generation"

/** This program as its next release: with one more migration and a function that uses it. */
const nextRelease = async (): Promise<string> => {
  const folder = temporaryFolder("next-release")
  for (const name of ["src", "schema", "package.json"]) {
    cpSync(join(projectFolder, name), join(folder, name), { recursive: true })
  }
  symlinkSync(join(projectFolder, "node_modules"), join(folder, "node_modules"))
  writeFileSync(
    join(folder, "schema/migrations/0002_note.sql"),
    "alter table runs add column note text;"
  )
  const functions = join(folder, "schema/functions/tasks.sql")
  const text = readFileSync(functions, "utf8")
  const changed = text
    .replace("insert into runs (task_id,", "insert into runs (note, task_id,")
    .replace(
      "values (c.task, c.api_key, c.deadline,",
      "values ('new', c.task, c.api_key, c.deadline,"
    )
  assert.strictEqual(changed.length, text.length + "note, ".length + "'new', ".length)
  writeFileSync(functions, changed)
  await bundle("src/main.ts", join(folder, "bundle"), folder)
  return join(folder, "bundle/main.mjs")
}

const upgrade = async (databaseUrl: string) => {
  const main = await nextRelease()
  await using old = await GatewayProcess.start({ databaseUrl })
  const key = await old.key()
  const ids: Array<string> = []
  // Like a client, repeats a 503 from the moment of the change under the same Idempotency-Key
  const create = (gateway: GatewayProcess) => {
    const key = { "idempotency-key": randomUUID() }
    return until(async () => {
      const created = await gateway.call("POST", path, { prompt: key["idempotency-key"] }, key)
      if (created.status === 503) return undefined
      assert.strictEqual(created.status, 202, created.text)
      return ids.push(String(created.json.task_info.id))
    })
  }
  for (let n = 0; n < 5; n += 1) await create(old)
  const starting = GatewayProcess.start({
    databaseUrl,
    main,
    command: [process.execPath, ...shortLived]
  })
  const started = starting.then(() => true)
  // Creates continue while the migration and their transactions wait for each other's locks. A slow start must not
  // spend all credits
  const createSome = async () => {
    if (ids.length < 100) await create(old)
    await pause(30)
  }
  while (!(await Promise.race([started, createSome().then(() => false)])));
  await using next = await starting
  next.useKey(key)
  for (let n = 0; n < 5; n += 1) await Promise.all([create(old), create(next)])
  const isCompleted = async (id: string) =>
    (await old.call("GET", `${path}/${id}`)).json.task_info.status === "completed"
  for (const id of ids) await until(() => isCompleted(id), { what: "the end of all tasks" })
  const wallet = await next.call("GET", "/manage/v1/wallet")
  assert.strictEqual(wallet.json.held_balance, "0.00")
  assert.strictEqual(wallet.json.settled_balance, (1000 - 7.5 * ids.length).toFixed(2))
  await old.kill("SIGTERM")
  const refused = await old.start().then(
    () => "",
    (cause: unknown) => String(cause)
  )
  assert.include(refused, "Migration 0002_note: the database has it, this program does not")
}

describe("an upgrade with two live processes", () => {
  it.live("completes the tasks of both; the old program cannot start again", () =>
    Effect.flatMap(processDatabaseUrl, ({ href }) => Effect.promise(() => upgrade(href)))
  )
})
