import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, Layer, Redacted, Stream } from "effect"
import { FetchHttpClient } from "effect/http"
import { transform } from "esbuild"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { GatewayClient as EffectClient } from "../../../src/client/effect.ts"
import * as Client from "../../../src/client/index.ts"
import {
  AuthenticationError,
  ConflictError,
  GatewayClient,
  InsufficientCreditsError,
  NotFoundError,
  PermissionError,
  TaskFailedError,
  ValidationError
} from "../../../src/client/index.ts"
import { layerTest, MockVendor, TestGateway } from "../../../src/testing/index.ts"
import { clientOptions, gatewayFetch, settled, testClient } from "../../support/clientGateway.ts"
import { whileTimePasses } from "../../support/clientGateway.ts"
import { localServer } from "../../support/localServer.ts"
import { dataUri, png } from "../../support/media.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import { pause } from "../../support/until.ts"

const prompt = "A lighthouse at dawn"
const adminToken = "operator-token-of-the-tests"

const gateway = layerTest({
  // The first two tasks of the file fail, all others succeed
  vendor: [
    MockVendor.jobFails("CONTENT", "not this"),
    MockVendor.jobFails("CONTENT", "not this"),
    MockVendor.result("10 seconds")
  ],
  env: { ADMIN_TOKEN: adminToken, EGRESS_ALLOW: "127.0.0.1" }
})

const docs = readFileSync(new URL("../../../docs/client.md", import.meta.url), "utf8")

/** Runs the blocks of docs/client.md with this info string as one program, with their imports. */
const runSample = async (info: string, given: Readonly<Record<string, unknown>>, end: string) => {
  const blocks = docs.matchAll(new RegExp(`^\`\`\`${info}\\n(.*?)^\`\`\``, "gmsu"))
  const text = [...Array.from(blocks, ([, block = ""]) => block), end].join("\n")
  for (const [, names = ""] of text.matchAll(/^import \{ (.*) \} from ".*"$/gmu)) {
    for (const name of names.split(", ")) assert.isDefined(given[name], name)
  }
  const withoutImports = text.replaceAll(/^import .*$/gmu, "")
  const { code } = await transform(`async () => {${withoutImports}}`, { loader: "ts" })
  // oxlint-disable-next-line no-implied-eval, typescript/no-implied-eval, no-new-func -- the page's sample is run unchanged
  const run = new Function(...Object.keys(given), `return (${code.trim().replace(/;$/u, "")})()`)
  return run(...Object.values(given)) as Promise<unknown>
}

const all = async <A>(items: AsyncIterable<A>): Promise<ReadonlyArray<A>> => {
  const found: Array<A> = []
  for await (const item of items) found.push(item)
  return found
}

/** The error, as the result of an Effect. */
const failureOf = (work: () => Promise<unknown>) => Effect.flip(settled(work))

const effectClient = Layer.unwrap(
  Effect.gen(function* () {
    const { key } = yield* TestGateway
    const fetch = (yield* gatewayFetch) as typeof globalThis.fetch
    const options = { baseUrl: "http://gateway.test", apiKey: Redacted.make(key) }
    return EffectClient.layer(options).pipe(
      Layer.provide(Layer.succeed(FetchHttpClient.Fetch, fetch))
    )
  })
)

const withEffectClient = Layer.provideMerge(effectClient, gateway)

/** A port of this gateway that breaks the connection of some requests after they have succeeded. */
const cuttingServer = (cuts: () => "headers" | "body" | undefined) =>
  Effect.gen(function* () {
    const fetch = yield* gatewayFetch
    return yield* localServer(async (request, response) => {
      const chunks: Array<Buffer> = []
      for await (const chunk of request) chunks.push(chunk as Buffer)
      const { method = "GET" } = request
      const init = { method, headers: request.headers as Record<string, string> }
      const body = Buffer.concat(chunks)
      const got = await fetch(request.url!, body.length === 0 ? init : { ...init, body })
      const text = await got.text()
      const cut = method === "POST" ? cuts() : undefined
      if (cut === "headers") return void request.socket.destroy()
      response.writeHead(got.status, {
        ...Object.fromEntries(got.headers),
        "content-length": Buffer.byteLength(text)
      })
      if (cut === undefined) return void response.end(text)
      response.write(text.slice(0, 10), () => request.socket.destroy())
    })
  })

layer(withEffectClient, { timeout: "1 minute" })("the client against the whole gateway", (it) => {
  it.effect("runs a task that fails, and rejects with the reason", () =>
    Effect.gen(function* () {
      const { tasks } = yield* testClient
      const error = yield* failureOf(() => tasks.run("text-to-image-max", { prompt }))
      assert.instanceOf(error, TaskFailedError)
      const { code, task } = error as TaskFailedError
      assert.strictEqual(code, 3001)
      assert.deepStrictEqual(task.images, [])
      assert.strictEqual((yield* settled(() => tasks.get(task))).cost, "0.00")
    })
  )

  it.effect("fails with a typed error for a failed task, as Effects", () =>
    Effect.gen(function* () {
      const { tasks } = yield* EffectClient
      const code = yield* whileTimePasses(
        tasks.run("text-to-image-max", { prompt }).pipe(
          Effect.map(() => 0),
          Effect.catchTag("TaskFailedError", (error) => Effect.succeed(error.code ?? 0))
        )
      )
      assert.strictEqual(code, 3001)
    })
  )

  it.effect("runs a task until it has images, with its stream and with polls", () =>
    Effect.gen(function* () {
      const { tasks, wallet } = yield* testClient
      const before = yield* settled(() => wallet.get())
      for (const poll of [false, true]) {
        const seen: Array<string> = []
        const onProgress = ({ status }: { status: string }) => void seen.push(status)
        const body = { prompt, metadata: { order: "17" } }
        const task = yield* settled(() =>
          tasks.run("text-to-image-max", body, { onProgress, poll, maxCost: "7.50" })
        )
        assert.deepStrictEqual(seen, ["pending", "processing", "completed"])
        assert.match(task.images[0] ?? "", /^http:\/\/gateway\.test\/artifacts\//u)
        assert.deepStrictEqual(task.metadata, { order: "17" })
        assert.include(task, { vendor: "alibaba", model: "text-to-image-max", status: "completed" })
      }
      const after = yield* settled(() => wallet.get())
      assert.strictEqual(Number(before.available_balance) - Number(after.available_balance), 15)
    })
  )

  it.effect("creates, shows, cancels and finds tasks", () =>
    Effect.gen(function* () {
      const { tasks } = yield* testClient
      const idempotencyKey = "order-18"
      const create = () => tasks.create("text-to-image-max", { prompt }, { idempotencyKey })
      const task = yield* settled(create)
      assert.include(task, { status: "pending", cost: "7.50", idempotencyKey, replayed: false })
      const again = yield* settled(create)
      assert.deepInclude(again, { id: task.id, replayed: true })
      const other = { prompt: "Another" }
      const reused = () => tasks.create("text-to-image-max", other, { idempotencyKey })
      assert.instanceOf(yield* failureOf(reused), ConflictError)

      // A program may store whatever identifies a task
      const kept = JSON.parse(JSON.stringify(task)) as typeof task
      const cancelled = yield* settled(() => tasks.cancel(kept))
      assert.include(cancelled, { status: "failed", cost: "0.00" })
      assert.strictEqual(cancelled.error?.code, 4004)
      const twice = yield* settled(() => tasks.cancel(kept))
      assert.strictEqual(twice.error?.code, 4004)

      const [listed] = (yield* settled(() => tasks.list({ status: "failed", limit: 1 }).page()))
        .data
      assert.strictEqual(listed?.id, task.id)
      assert.strictEqual((yield* settled(() => tasks.get(listed!))).status, "failed")
      const timeline = yield* settled(() => tasks.timeline(task.id))
      assert.strictEqual(timeline.moves.at(-1)?.status, "failed")
    })
  )

  it.effect("quotes a price without creating anything", () =>
    Effect.gen(function* () {
      const { tasks } = yield* testClient
      const before = yield* settled(() => all(tasks.list()))
      const quote = yield* settled(() => tasks.quote("text-to-image-preview", { prompt, n: 2 }))
      assert.deepStrictEqual(Object.keys(quote), ["amount", "currency"])
      assert.lengthOf(yield* settled(() => all(tasks.list())), before.length)
    })
  )

  it.effect("pages through a list, also filtered by metadata", () =>
    Effect.gen(function* () {
      const { tasks } = yield* testClient
      const ids = (yield* settled(() => all(tasks.list({ limit: 100 })))).map(({ id }) => id)
      assert.isAtLeast(ids.length, 4)
      const few = yield* settled(() => all(tasks.list({ limit: 1 })))
      assert.deepStrictEqual(
        few.map(({ id }) => id),
        ids
      )
      const pages = yield* settled(() => all(tasks.list({ limit: 3 }).pages()))
      assert.deepStrictEqual(
        pages.flatMap(({ data }) => data.map(({ id }) => id)),
        ids
      )
      const found = yield* settled(() => all(tasks.list({ metadata: { order: "17" } })))
      assert.lengthOf(found, 2)
    })
  )

  it.effect("sends files as their bytes", () =>
    Effect.gen(function* () {
      const { tasks } = yield* testClient
      const bytes = png({ width: 400, height: 400 })
      const copy = new Uint8Array(bytes)
      const images = [new Blob([copy]), copy, new Blob([copy]).stream()]
      const task = yield* settled(() => tasks.create("image-edit", { prompt, images, n: 1 }))
      const { inputs } = yield* settled(() => tasks.timeline(task.id))
      assert.deepStrictEqual(
        inputs.map(({ media_type, pointer, size }) => ({ media_type, pointer, size })),
        [0, 1, 2].map((at) => ({
          media_type: "image/png",
          pointer: `#/images/${at}`,
          size: bytes.length
        }))
      )
      const wrong = { prompt, images: [dataUri("image/png", copy.subarray(0, 50))] }
      const error = yield* failureOf(() => tasks.create("image-edit", wrong))
      assert.instanceOf(error, ValidationError)
      assert.strictEqual((error as ValidationError).faults[0]?.pointer, "#/images/0")
    })
  )

  it.effect("maps the gateway's refusals to error classes", () =>
    Effect.gen(function* () {
      const options = yield* clientOptions
      const { apiKeys, tasks } = new GatewayClient(options)
      const wrong = () => tasks.create("alibaba/text-to-image-max", { prompt: "", seed: -1 })
      const error = (yield* failureOf(wrong)) as ValidationError
      assert.instanceOf(error, ValidationError)
      assert.sameMembers(
        error.faults.map(({ pointer }) => pointer),
        ["#/prompt", "#/seed"]
      )
      assert.match(error.traceId ?? "", /^[0-9a-f]{32}$/u)
      const tooExpensive = () => tasks.create("text-to-image-max", { prompt }, { maxCost: "7.49" })
      assert.instanceOf(yield* failureOf(tooExpensive), InsufficientCreditsError)
      const unknown = () => tasks.create("alibaba/none", { prompt })
      assert.instanceOf(yield* failureOf(unknown), NotFoundError)
      const stranger = new GatewayClient({ ...options, apiKey: "sk-unknown" })
      assert.instanceOf(yield* failureOf(() => stranger.wallet.get()), AuthenticationError)
      const { id, key } = yield* settled(() => apiKeys.create({ name: "limited" }))
      const limited = new GatewayClient({ ...options, apiKey: key })
      assert.instanceOf(yield* failureOf(() => limited.wallet.get()), PermissionError)
      assert.strictEqual((yield* settled(() => apiKeys.get(id))).name, "limited")
    })
  )

  it.effect("has methods for keys, wallet, models, calls and usage", () =>
    Effect.gen(function* () {
      const { apiKeys, calls, models, usage, wallet } = yield* testClient
      const { id } = yield* settled(() => apiKeys.create({ name: "a", scopes: ["inference"] }))
      const limit = { spend_limit: "10.00", reset: "daily" } as const
      const changed = yield* settled(() => apiKeys.update(id, limit))
      assert.include(changed, limit)
      const rotated = yield* settled(() => apiKeys.rotate(id, { grace_seconds: 60 }))
      assert.match(rotated.key, /^sk-/u)
      assert.isNotNull(rotated.old_key_expires_at)
      assert.isNull((yield* settled(() => apiKeys.rotate(id))).old_key_expires_at)
      yield* settled(() => apiKeys.revoke(id))
      const left = yield* settled(() => all(apiKeys.list()))
      assert.isFalse(left.some((one) => one.id === id))

      const alerted = yield* settled(() => wallet.update({ trigger_threshold: "5.00" }))
      assert.strictEqual(alerted.trigger_threshold, "5.00")
      const kinds = (yield* settled(() => all(wallet.entries({ limit: 2 })))).map(
        ({ kind }) => kind
      )
      for (const kind of ["top_up", "hold", "capture", "release"]) assert.include(kinds, kind)

      const media = (yield* settled(() => all(models.list()))).filter(
        ({ type }) => type === "media"
      )
      assert.lengthOf(media, 9)
      assert.deepStrictEqual(yield* settled(() => all(calls.list())), [])
      assert.instanceOf(yield* failureOf(() => calls.get("call_1")), NotFoundError)
      const sums = yield* settled(() => all(usage.list({ group_by: "model" })))
      assert.isAtLeast(sums.length, 1)
    })
  )

  it.effect("manages webhook endpoints and resends deliveries", () =>
    Effect.gen(function* () {
      const { webhookDeliveries, webhookEndpoints } = yield* testClient
      const url = "https://127.0.0.1/hooks"
      const created = yield* settled(() =>
        webhookEndpoints.create({ url, events: ["task.created"] })
      )
      const { id } = created
      assert.match(created.secret, /^whsec_/u)
      const rotated = yield* settled(() => webhookEndpoints.rotate(id))
      assert.notStrictEqual(rotated.secret, created.secret)
      yield* settled(() => webhookEndpoints.update(id, { description: "mine" }))
      assert.strictEqual((yield* settled(() => webhookEndpoints.get(id))).description, "mine")
      const { delivery_id } = yield* settled(() => webhookEndpoints.test(id))
      const list = () => all(webhookDeliveries.list({ endpoint_id: id }))
      assert.deepStrictEqual(
        (yield* settled(list)).map((one) => one.id),
        [delivery_id]
      )
      const again = yield* settled(() => webhookDeliveries.redeliver(delivery_id))
      assert.strictEqual(again.id, delivery_id)
      assert.strictEqual((yield* settled(() => webhookDeliveries.get(delivery_id))).id, delivery_id)
      const since = "1969-01-01T00:00:00Z"
      const { hours } = yield* settled(() => webhookEndpoints.activity(id))
      assert.strictEqual(hours.length, 24)
      const recovered = yield* settled(() => webhookEndpoints.recover(id, { since }))
      assert.strictEqual(recovered.has_more, false)
      const all_ = yield* settled(() =>
        webhookDeliveries.redeliverAll({ filter: { endpoint_id: id } })
      )
      assert.isNull(all_.next_cursor)
      assert.lengthOf(yield* settled(() => all(webhookEndpoints.list())), 1)
      yield* settled(() => webhookEndpoints.delete(id))
      assert.lengthOf(yield* settled(() => all(webhookEndpoints.list())), 0)
    })
  )

  it.effect("calls any other route by its name", () =>
    Effect.gen(function* () {
      const operator = new GatewayClient({ ...(yield* clientOptions), apiKey: adminToken })
      const email = "other@example.com"
      const user = yield* settled(() =>
        operator.request("POST /manage/v1/users", { body: { email } })
      )
      const topUp = () =>
        operator.request("POST /manage/v1/users/{id}/top-ups", {
          path: { id: user.id },
          body: { amount: "5" },
          idempotencyKey: "first"
        })
      for (let time = 0; time < 2; time += 1) {
        assert.strictEqual((yield* settled(topUp)).settled_balance, "5.00")
      }
      const users = yield* settled(() => all(operator.list("GET /manage/v1/users", { limit: 1 })))
      assert.lengthOf(users, 2)
      const path = { path: { id: user.id } }
      const entries = operator.list("GET /manage/v1/users/{id}/wallet/entries", {}, path)
      assert.lengthOf(yield* settled(() => all(entries)), 1)
      const shaped = operator.with({ maxRetries: 0 })
      const status = yield* failureOf(() => shaped.request("GET /vendors/none/v1/models"))
      assert.instanceOf(status, NotFoundError)
    })
  )

  it.effect(
    "buys one task and returns it, however often the connection breaks after the create",
    () =>
      Effect.gen(function* () {
        let left: Array<"headers" | "body"> = []
        const baseUrl = yield* cuttingServer(() => left.shift())
        const { key: apiKey } = yield* TestGateway
        // The global fetch, without delays
        const client = new GatewayClient({ baseUrl, apiKey, random: () => 0 })
        const run = <A>(work: () => Promise<A>) => Effect.promise(work)
        const count = async () => (await all(client.tasks.list())).length
        const held = async () => Number((await client.wallet.get()).held_balance)

        for (const cuts of [
          ["headers"],
          ["body"],
          ["body", "headers", "headers", "body"]
        ] as const) {
          const [tasks, hold] = [yield* run(count), yield* run(held)]
          left = [...cuts]
          const task = yield* run(() => client.tasks.create("text-to-image-max", { prompt }))
          assert.isTrue(task.replayed)
          assert.lengthOf(left, 0)
          assert.strictEqual(yield* run(count), tasks + 1)
          assert.strictEqual(yield* run(held), hold + 7.5)
        }

        // After a create was abandoned, its task is found by its key
        left = ["headers", "headers"]
        const once = client.with({ maxRetries: 1 }).tasks
        const error = yield* Effect.flip(
          Effect.tryPromise({
            try: () => once.create("text-to-image-max", { prompt }),
            catch: (cause) => cause as { _tag: string; idempotencyKey: string }
          })
        )
        assert.strictEqual(error._tag, "ConnectionError")
        const tasks = yield* run(count)
        const { idempotencyKey } = error
        const found = yield* run(() =>
          once.create("text-to-image-max", { prompt }, { idempotencyKey })
        )
        assert.isTrue(found.replayed)
        assert.strictEqual(yield* run(count), tasks)

        // A key is created once, and a repeat returns its text
        left = ["body"]
        const made = yield* run(() => client.apiKeys.create({ name: "cut" }))
        const keys = (yield* run(() => all(client.apiKeys.list()))).filter(
          (it) => it.name === "cut"
        )
        assert.deepStrictEqual(
          keys.map(({ id }) => id),
          [made.id]
        )
        assert.strictEqual(made.key.slice(-4), keys[0]!.preview.slice(-4))
      })
  )

  it.effect("streams the moves of a task on Effect's clock, as Effects", () =>
    Effect.gen(function* () {
      const { tasks } = yield* EffectClient
      for (const poll of [false, true]) {
        const created = yield* tasks.create("text-to-image-max", { prompt })
        const moves = yield* whileTimePasses(Stream.runCollect(tasks.watch(created, { poll })))
        const statuses = Array.from(moves, ({ status }) => status)
        const moved = ["pending", "processing", "completed"]
        // It may have changed state since its create
        assert.deepStrictEqual(statuses, moved.slice(-statuses.length))
        assert.isAtLeast(statuses.length, 2)
        assert.strictEqual((yield* tasks.wait(created)).id, created.id)
      }
    })
  )

  it.effect("ends an interrupted wait at once while the task continues, as Effects", () =>
    Effect.gen(function* () {
      const { tasks } = yield* EffectClient
      const created = yield* tasks.create("text-to-image-max", { prompt })
      const first = yield* Stream.runHead(tasks.watch(created))
      assert.isTrue(first._tag === "Some")
      for (const work of [tasks.wait(created), Stream.runDrain(tasks.watch(created))]) {
        const fiber = yield* Effect.forkChild(work)
        yield* Effect.promise(() => pause(20))
        yield* Fiber.interrupt(fiber)
      }
      assert.notStrictEqual((yield* tasks.get(created)).status, "failed")
      assert.strictEqual((yield* tasks.cancel(created)).status, "failed")
    })
  )

  it.effect(
    "streams lists over all pages, fails with refusals and dies of wrong calls, as Effects",
    () =>
      Effect.gen(function* () {
        const client = yield* EffectClient
        const promises = yield* testClient
        const ids = yield* Stream.runCollect(client.tasks.list({ limit: 3 }))
        const expected = yield* settled(() => all(promises.tasks.list({ limit: 100 })))
        assert.deepStrictEqual(
          Array.from(ids, ({ id }) => id),
          expected.map(({ id }) => id)
        )
        const two = yield* client
          .list("GET /manage/v1/wallet/entries", { limit: 1 })
          .pipe(Stream.take(2), Stream.runCollect)
        assert.lengthOf(Array.from(two), 2)
        const refused = yield* Effect.flip(client.tasks.create("alibaba/none", {}))
        assert.strictEqual(refused._tag, "NotFoundError")
        const exit = yield* Effect.exit(client.tasks.create("none" as "a/b", {}))
        assert.isTrue(exit._tag === "Failure" && exit.cause.reasons[0]?._tag === "Die")
      })
  )

  it.effect("has every resource of the Promise API under the same name, as Effects", () =>
    Effect.gen(function* () {
      const effects: object = yield* EffectClient
      const promises: object = yield* testClient
      const shape = (client: object) =>
        Object.entries(client)
          .filter(([name, it]) => typeof it === "object" && it !== null && name !== "tasks")
          .map(([name, it]) => [name, Object.keys(it as object).sort()])
      assert.deepStrictEqual(
        Object.fromEntries(shape(effects)),
        Object.fromEntries(shape(promises))
      )
      const methods = Object.getOwnPropertyNames(Object.getPrototypeOf((yield* testClient).tasks))
      const { tasks } = effects as { tasks: object }
      assert.sameMembers(
        Object.keys(tasks),
        methods.filter((it) => it !== "constructor")
      )
    })
  )

  it.effect("calls the Promise method of the same name, as Effects", () =>
    Effect.gen(function* () {
      const { request, use, wallet, webhookEndpoints } = yield* EffectClient
      const { available_balance } = yield* wallet.get()
      const by = yield* use((client) => client.wallet.get())
      assert.strictEqual(by.available_balance, available_balance)
      assert.deepStrictEqual(yield* request("GET /manage/v1/wallet"), by)
      const url = "https://127.0.0.1/hooks"
      const { id } = yield* webhookEndpoints.create({ url, events: ["task.failed"] })
      yield* webhookEndpoints.rotate(id)
      const endpoints = yield* Stream.runCollect(webhookEndpoints.list())
      assert.lengthOf(Array.from(endpoints), 1)
    })
  )

  it.effect("runs the samples of docs/client.md from top to bottom", () =>
    Effect.gen(function* () {
      const options = yield* clientOptions
      const folder = temporaryFolder("client")
      const picture = join(folder, "lighthouse.png")
      writeFileSync(picture, png({ width: 400, height: 400 }))
      const logged: Array<string> = []
      const given = {
        ...Client,
        GatewayClient: class extends GatewayClient {
          constructor({ apiKey, baseUrl }: Client.ClientOptions) {
            super({ ...options, apiKey, baseUrl })
          }
        },
        fileFrom: () => Client.fileFrom(picture),
        process: { env: { GATEWAY_API_KEY: options.apiKey } },
        console: { log: (...values: ReadonlyArray<unknown>) => logged.push(values.join()) }
      }
      yield* settled(() => runSample("ts", given, ""))
      assert.match(logged[0] ?? "", /^http:\/\/gateway\.test\/artifacts\//u)
      // A task may have started before its first read
      const statuses = logged.filter((text) => /^(?:pending|processing|completed)$/u.test(text))
      assert.match(statuses.join(), /^(?:pending,)?processing,completed/u)
      assert.match(logged.at(-1) ?? "", /^\d+\.\d\d,whsec_.*,Service$/u)

      const runnable = yield* Effect.promise(() =>
        runSample(
          "ts effect",
          { Effect, Redacted, Stream, process: given.process, GatewayClient: EffectClient },
          "return runnable"
        )
      )
      const made = yield* whileTimePasses(
        (runnable as Effect.Effect<{ images: ReadonlyArray<string>; entries: number }>).pipe(
          Effect.provideService(FetchHttpClient.Fetch, options.fetch as typeof fetch)
        )
      )
      assert.lengthOf(made.images, 1)
      assert.strictEqual(made.entries, 2)
    })
  )
})
