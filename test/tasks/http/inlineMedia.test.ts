import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { layerPostgres } from "../../../src/db/Database.ts"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { base64, dataUri, pngOfBytes, wav } from "../../support/media.ts"
import { migratedDatabaseUrl } from "../../support/stores.ts"
import { until } from "../../support/until.ts"
import { startReceiver } from "../../support/webhookReceiver.ts"
import type { Received } from "../../support/webhookReceiver.ts"

/** docs/reference/models.md#stored-media */

const edit = "/vendors/alibaba/v1/image-edit/generation"
const spark = "/vendors/service/v1/text-to-video-spark/generation"
const pro = "/vendors/google/v1/image-edit-pro/edit"

const picture = pngOfBytes(40_000)
const sound = wav(4)

/** Pieces of the media as they would appear in a row, a body or a log line: Base64, hex, hex of Base64. */
const piecesOf = (bytes: Uint8Array): ReadonlyArray<string> => {
  const text = base64(bytes)
  const starts = [1000, 10_000, 20_000]
  const hex = (from: Uint8Array, start: number) =>
    Buffer.from(from.subarray(start, start + 24)).toString("hex")
  return starts.flatMap((start) => [
    text.slice(start, start + 32),
    hex(bytes, start),
    hex(Buffer.from(text), start)
  ])
}
const pieces = [...piecesOf(picture), ...piecesOf(sound)]

const assertClean = (what: string, text: string) => {
  for (const piece of pieces) assert.isFalse(text.includes(piece), what)
}

const bodies: ReadonlyArray<readonly [string, object]> = [
  [edit, { prompt: "a", n: 1, images: [base64(picture), dataUri("image/png", picture)] }],
  [edit, { prompt: "[[sim:refuse]]", n: 1, images: [base64(picture)] }],
  [edit, { prompt: "[[sim:fail]]", n: 1, images: [base64(picture)] }],
  [spark, { prompt: "a", audio_url: base64(sound) }],
  [pro, { prompt: "a", images: [dataUri("image/png", picture)] }]
]

/** Creates that are refused because of their medium or another field. */
const faulty: ReadonlyArray<readonly [string, object]> = [
  [edit, { prompt: "a", images: [`${base64(picture)}*`] }],
  [edit, { prompt: "a", images: base64(picture) }],
  [edit, { prompt: "a", images: [{ data: base64(picture) }], more: base64(picture) }],
  [edit, { prompt: base64(picture), images: [base64(sound)] }],
  [spark, { prompt: "a", audio_url: dataUri("audio/wav", picture) }]
]

const scenario = async (
  databaseUrl: string,
  rowsOf: () => Promise<ReadonlyArray<readonly [string, string]>>
) => {
  await using receiver = await startReceiver()
  const env = { ...receiver.env, LOG_LEVEL: "Trace" }
  await using gateway = await GatewayProcess.start({ databaseUrl, env })
  const events = ["task.created", "task.succeeded", "task.failed"]
  await gateway.call("POST", "/manage/v1/webhook-endpoints", { url: receiver.url, events })
  const read = async (method: string, path: string, body?: unknown) => {
    const answer = await gateway.call(method, path, body)
    assertClean(`${method} ${path}`, answer.text + JSON.stringify([...answer.headers]))
    return answer
  }

  for (const [path, body] of faulty) {
    assert.strictEqual((await read("POST", path, body)).status, 400)
  }
  const ids: Array<string> = []
  for (const [path, body] of bodies) {
    const created = await read("POST", path, body)
    assert.strictEqual(created.status, 202, created.text)
    const { id } = created.json.task_info
    ids.push(id)
    await until(async () => {
      const { json } = await read("GET", `${path}/${id}`)
      return /completed|failed/u.test(json.task_info.status) ? json : undefined
    })
    const timeline = await read("GET", `/manage/v1/tasks/${id}`)
    assert.match(JSON.stringify(timeline.json.body), /"artifact:art_[0-9a-f]{32}"/u)
  }
  const chat = await read("POST", "/v1/chat/completions", {
    model: "gpt-4o",
    messages: [
      {
        role: "user",
        content: [{ type: "image_url", image_url: { url: dataUri("image/png", picture) } }]
      }
    ]
  })
  assert.strictEqual(chat.status, 200, chat.text)

  for (const list of ["tasks", "calls", "wallet/entries", "webhook-deliveries"]) {
    // A call's receipt is written after its response
    await until(async () => {
      const { json } = await read("GET", `/manage/v1/${list}?limit=100`)
      return json.data.length > 0
    })
  }
  const received = await until<ReadonlyArray<Received>>(async () =>
    receiver.received.length >= 2 * ids.length ? receiver.received : undefined
  )
  for (const { body } of received) assertClean("a webhook", body.toString())
  const rows = await rowsOf()
  assert.isTrue(rows.some(([table, text]) => table === "tasks" && text.includes(ids[0]!)))
  for (const [table, text] of rows) assertClean(`the table ${table}`, text)
  await gateway.kill("SIGTERM")
  assert.include(gateway.output, '"level":"DEBUG"')
  assertClean("the log", gateway.output)
}

describe("media sent in a body", () => {
  it.live(
    "is in no row, response, event or log line; rows hold references",
    () =>
      Effect.gen(function* () {
        const database = yield* migratedDatabaseUrl
        const store = Layer.orDie(layerPostgres({ url: Redacted.make(database.href) }))
        const rows = Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const tables = yield* sql`
            SELECT table_name AS name FROM information_schema.tables
            WHERE table_schema = 'public' AND table_type = 'BASE TABLE'`
          return yield* Effect.forEach(tables, ({ name }) =>
            Effect.map(
              sql`SELECT coalesce(string_agg(t::text, E'\n'), '') AS text FROM ${sql(String(name))} t`,
              ([row]) => [String(name), String(row?.["text"])] as const
            )
          )
        }).pipe(Effect.orDie, Effect.provide(store))
        const run = Effect.runPromiseWith(yield* Effect.context())
        yield* Effect.promise(() => scenario(database.href, () => run(rows)))
      }),
    300_000
  )
})
