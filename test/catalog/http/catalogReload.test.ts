import { assert, describe, layer } from "@effect/vitest"
import { Effect } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import {
  advance,
  callWith,
  eventually,
  layerGateway,
  makeUser,
  operator
} from "../../support/gateway.ts"
import { failTool, useTool } from "../../support/mcp.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"

/** docs/catalog.md#reload */

const path = "/vendors/alibaba/v1/text-to-image-max/generation"
const chat = "/vendors/openai/v1/chat/completions"
const price = (amount: string) => ({ per: "image", amount })
const hash = /^[0-9a-f]{64}$/u
const nothing = { added: [], removed: [], changed: [] }

/** A model whose tokens cost one credit each. */
const teller = (more: object) => ({
  vendor: "openai",
  model: "teller",
  price: { per: "million_tokens", input: "1000000", output: "1000000" },
  outputTokensMax: 10,
  inputTokensMax: 1000,
  ...more
})
const question = { model: "teller", max_tokens: 5, messages: [{ role: "user", content: "Hi" }] }

describe("the catalog of a running gateway", () => {
  const file = join(temporaryFolder("catalog"), "catalog.json")
  const write = (content: unknown) =>
    writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content))
  const adopt = (content: unknown) =>
    Effect.gen(function* () {
      write(content)
      const reloaded = yield* operator("POST", "/manage/v1/catalog/reload")
      assert.strictEqual(reloaded.status, 200, reloaded.text)
      return reloaded.json
    })
  write({})

  layer(layerGateway({ env: { CATALOG_FILE: file } }), { timeout: "60 seconds" })((it) => {
    it.effect(
      "POST /catalog/reload?dry_run=true shows what would change, and changes nothing",
      () =>
        Effect.gen(function* () {
          const before = yield* operator("GET", "/manage/v1/catalog")
          assert.strictEqual(before.status, 200, before.text)
          assert.match(before.json.hash, hash)
          write({ change: { "text-to-image-max": { price: price("9.00") } } })
          const preview = yield* operator("POST", "/manage/v1/catalog/reload?dry_run=true")
          assert.strictEqual(preview.status, 200, preview.text)
          assert.match(preview.json.hash, hash)
          assert.notStrictEqual(preview.json.hash, before.json.hash)
          assert.deepInclude(preview.json, {
            previous_hash: before.json.hash,
            adopted: false,
            difference: {
              ...nothing,
              changed: [
                {
                  type: "media",
                  id: "alibaba/v1/text-to-image-max/generation",
                  changes: [{ pointer: "#/price/amount", before: "7.50", after: "9.00" }]
                }
              ]
            }
          })
          assert.deepStrictEqual((yield* operator("GET", "/manage/v1/catalog")).json, before.json)
          const { call } = yield* makeUser()
          const quote = yield* call("POST", `${path}?dry_run=true`, { prompt: "a" })
          assert.strictEqual(quote.json.quote.amount, "7.50")
        })
    )

    it.effect(
      "a dry run is a different request from a reload for idempotency, and is not in the audit log",
      () =>
        Effect.gen(function* () {
          write({ change: { "text-to-image-max": { price: price("9.50") } } })
          const reload = (query: string) =>
            operator("POST", `/manage/v1/catalog/reload${query}`, undefined, {
              "idempotency-key": "reload"
            })
          assert.strictEqual((yield* reload("?dry_run=true")).status, 200)
          const other = yield* reload("")
          assert.deepStrictEqual([other.status, other.json.code], [422, 2008], other.text)
          const again = yield* reload("?dry_run=true")
          assert.strictEqual(again.headers.get("idempotency-replayed"), "true")
          const log = yield* operator("GET", "/manage/v1/audit-log?type=reloadCatalog&limit=100")
          assert.isEmpty(
            log.json.data.filter(({ changes }: { changes: object }) => "dry_run" in changes)
          )
          write({})
        })
    )

    it.effect(
      "a repeat in OpenAI's shape returns the first tasks after their model was removed, and buys nothing",
      () =>
        Effect.gen(function* () {
          const user = yield* makeUser()
          const image = { model: "text-to-image-max", prompt: "x", n: 2 }
          const video = { model: "text-to-video-spark", prompt: "x", seconds: "5" }
          const create = (at: string, key: string, body: object) =>
            user.call("POST", at, body, { "idempotency-key": key, prefer: "respond-async" })
          const images = yield* create("/v1/images/generations", "images", image)
          const videos = yield* create("/v1/videos", "videos", video)
          assert.deepStrictEqual([images.status, videos.status], [202, 200], videos.text)
          const listed = {
            tasks: [{ vendor: "alibaba", model: image.model, body: { prompt: "x" } }]
          }
          const batch = yield* create("/manage/v1/task-batches", "batch", listed)
          assert.strictEqual(batch.status, 202, batch.text)
          const entries = yield* user.call("GET", "/manage/v1/wallet/entries?kind=hold")
          yield* adopt({ remove: ["text-to-image-max", "text-to-video-spark"] })
          const again = yield* create("/v1/images/generations", "images", image)
          assert.deepStrictEqual([again.status, again.text], [202, images.text])
          const seen = yield* create("/v1/videos", "videos", video)
          assert.deepStrictEqual([seen.status, seen.json?.id], [200, videos.json.id])
          for (const { headers } of [again, seen]) {
            assert.strictEqual(headers.get("idempotency-replayed"), "true")
          }
          const other = yield* create("/v1/images/generations", "images", { ...image, n: 1 })
          assert.deepStrictEqual([other.status, other.json.code], [422, 2008])
          const unused = yield* create("/v1/images/generations", "unused", image)
          assert.deepStrictEqual([unused.status, unused.json.code], [404, 2006])
          const stranger = yield* makeUser()
          const foreign = yield* stranger.call("POST", "/v1/images/generations", image, {
            "idempotency-key": "images"
          })
          assert.deepStrictEqual([foreign.status, foreign.json.code], [404, 2006])
          const later = yield* user.call("GET", "/manage/v1/wallet/entries?kind=hold")
          assert.deepStrictEqual(later.json, entries.json)
        }).pipe(Effect.ensuring(Effect.orDie(adopt({}))))
    )

    it.effect(
      "a repeated create_task returns the first task after its model was removed, and buys nothing",
      () =>
        Effect.gen(function* () {
          const user = yield* makeUser()
          const input = { prompt: "a" }
          const model = "alibaba/text-to-image-max"
          const asked = [
            { model, input },
            { model, input, action: "generation", metadata: { order: "17" } },
            { model, input, idempotency_key: "kept" },
            {
              model: "google/image-edit-pro",
              input: { ...input, images: ["https://example.com/photo.jpg"] }
            }
          ]
          const create = (args: object) =>
            Effect.map(useTool(user, "create_task", args), (it) => it.structuredContent)
          const first = yield* Effect.forEach(asked, create)
          const entries = yield* user.call("GET", "/manage/v1/wallet/entries?kind=hold")
          yield* adopt({ remove: ["text-to-image-max", "image-edit-pro"] })
          const again = yield* Effect.forEach(asked, create)
          for (const [at, it] of again.entries()) {
            const { action, task_id } = first[at]
            assert.deepInclude(it, { task_id, action, replayed: true, sandbox: true })
          }
          const stranger = yield* makeUser()
          for (const [caller, args, code] of [
            [user, { model, input: { prompt: "b" } }, 2006],
            [user, { model, input: { prompt: "b" }, idempotency_key: "kept" }, 2008],
            [user, { model, input, action: "edit", idempotency_key: "kept" }, 2008],
            [user, { model, input, idempotency_key: "unused" }, 2006],
            [stranger, { model, input, idempotency_key: "kept" }, 2006]
          ] as const) {
            const refused = yield* failTool(caller, "create_task", args)
            assert.strictEqual(refused.code, code, JSON.stringify(args))
          }
          const later = yield* user.call("GET", "/manage/v1/wallet/entries?kind=hold")
          assert.deepStrictEqual(later.json, entries.json)
        }).pipe(Effect.ensuring(Effect.orDie(adopt({}))))
    )

    it.effect(
      "a repeated background response is the first one after its model or price was removed, and buys nothing",
      () =>
        Effect.gen(function* () {
          const user = yield* makeUser()
          const asked = { model: "teller", input: "Hi", max_output_tokens: 5, background: true }
          const create = (key: string | undefined, body: object, caller = user) =>
            caller.call(
              "POST",
              "/v1/responses",
              body,
              key === undefined ? {} : { "idempotency-key": key }
            )
          yield* adopt({ tokenModels: [teller({})] })
          const first = yield* create("kept", asked)
          assert.strictEqual(first.status, 200, first.text)
          const entries = yield* user.call("GET", "/manage/v1/wallet/entries?kind=hold")
          const stranger = yield* makeUser()
          for (const content of [{}, { tokenModels: [teller({ validFrom: "2999-01-01" })] }]) {
            yield* adopt(content)
            const again = yield* create("kept", asked)
            assert.deepStrictEqual([again.status, again.json], [200, first.json])
            for (const name of ["idempotency-replayed", "x-service-sandbox"]) {
              assert.strictEqual(again.headers.get(name), "true")
            }
            for (const [answer, status, code] of [
              [yield* create("kept", { ...asked, input: "Ho" }), 422, 2008],
              [yield* create("unused", asked), 404, 2006],
              [yield* create(undefined, asked), 404, 2006],
              [yield* create("kept", asked, stranger), 404, 2006]
            ] as const) {
              assert.deepStrictEqual([answer.status, answer.json.code], [status, code])
            }
            const later = yield* user.call("GET", "/manage/v1/wallet/entries?kind=hold")
            assert.deepStrictEqual(later.json, entries.json)
          }
        }).pipe(Effect.ensuring(Effect.orDie(adopt({}))))
    )

    it.effect("a repeated create is replayed after its model was removed", () =>
      Effect.gen(function* () {
        const { call } = yield* makeUser()
        const create = (key: string, prompt = "a") =>
          call("POST", path, { prompt }, { "idempotency-key": key })
        const first = yield* create("kept")
        assert.strictEqual(first.status, 202, first.text)
        yield* adopt({ remove: ["text-to-image-max"] })
        const again = yield* create("kept")
        assert.deepStrictEqual([again.status, again.text], [202, first.text])
        for (const name of ["idempotency-replayed", "x-service-sandbox"]) {
          assert.strictEqual(again.headers.get(name), "true")
        }
        const other = yield* create("kept", "b")
        assert.deepStrictEqual([other.status, other.json.code], [422, 2008])
        const fresh = yield* create("new")
        assert.deepStrictEqual([fresh.status, fresh.json.code], [404, 2006])
        yield* adopt({})
      })
    )

    it.effect(
      "a file with any fault is refused as a whole, with the place of every fault, and the old one is kept",
      () =>
        Effect.gen(function* () {
          const before = yield* operator("GET", "/manage/v1/catalog")
          for (const [content, pointers] of [
            ["{", ["#"]],
            [
              {
                change: {
                  "text-to-image-max": { price: price("9.00") },
                  "image-edit": { price: price("free"), validFrom: "2026-02-30" }
                }
              },
              ["#/change/image-edit/price/amount", "#/change/image-edit/validFrom"]
            ],
            [
              { tokenModels: [teller({ validFrom: "2027-01-02", validUntil: "2027-01-01" })] },
              ["#/tokenModels/0/validUntil"]
            ],
            [{ tokenModels: [teller({}), teller({})] }, ["#/tokenModels"]],
            [{ add: [{ label: "image-edit", model: "image-edit" }] }, ["#"]]
          ] as const) {
            write(content)
            for (const query of ["", "?dry_run=true"]) {
              const refused = yield* operator("POST", `/manage/v1/catalog/reload${query}`)
              assert.deepInclude(refused.json, { status: 400, code: 2001 })
              assert.deepStrictEqual(
                refused.json.errors.map((it: { pointer: string }) => it.pointer),
                pointers
              )
            }
            assert.deepStrictEqual((yield* operator("GET", "/manage/v1/catalog")).json, before.json)
          }
        })
    )

    it.effect("is open to the operator only", () =>
      Effect.gen(function* () {
        const { call } = yield* makeUser()
        for (const [method, route] of [
          ["GET", "/catalog"],
          ["POST", "/catalog/reload"]
        ] as const) {
          const refused = yield* call(method, `/manage/v1${route}`)
          assert.deepStrictEqual([refused.status, refused.json.code], [403, 1004], route)
        }
      })
    )

    it.effect(
      "new tasks have the new price; each names its catalog, and old tasks keep the price of their day",
      () =>
        Effect.gen(function* () {
          const user = yield* makeUser()
          const timeline = (id: string) => user.call("GET", `/manage/v1/tasks/${id}`)
          yield* adopt({})
          const earlier = yield* user.call("POST", path, { prompt: "a" })
          yield* advance("1 minute", "5 seconds")
          const reloaded = yield* adopt({
            change: {
              "text-to-image-max": { price: price("9.125"), source: "the contract of 2026" }
            }
          })
          assert.isTrue(reloaded.adopted)
          const { adopted_at } = (yield* operator("GET", "/manage/v1/catalog")).json
          const justBefore = new Date(Date.parse(adopted_at) - 1).toISOString()
          const later = yield* user.call("POST", path, { prompt: "b" })
          const ids = [earlier, later].map(({ json }) => String(json.task_info.id))
          yield* advance("20 seconds", "1 second")
          const [old, now] = yield* Effect.forEach(ids, (id) =>
            eventually(timeline(id), ({ json }) => json.status === "completed")
          )
          assert.strictEqual(old?.json.receipt.captured, "7.50")
          assert.strictEqual(old?.json.catalog, reloaded.previous_hash)
          assert.strictEqual(now?.json.receipt.captured, "9.12")
          assert.strictEqual(now?.json.catalog, reloaded.hash)
          const listed = yield* user.call("GET", "/manage/v1/tasks")
          assert.deepStrictEqual(
            listed.json.data.map((it: { catalog: string }) => it.catalog),
            [reloaded.hash, reloaded.previous_hash]
          )
          const priceIn = (query: string) =>
            Effect.map(operator("GET", `/manage/v1/catalog${query}`), ({ json }) => {
              const row = json.data.find((it: { id: string }) =>
                it.id.includes("text-to-image-max")
              )
              return [json.hash, row.price.amount, row.source]
            })
          const built = (yield* priceIn(`?hash=${old?.json.catalog}`))[2]
          assert.match(built, /2026-11-22/u)
          for (const query of [`?hash=${now?.json.catalog}`, "", `?at=${adopted_at}`]) {
            const row = [reloaded.hash, "9.125", "the contract of 2026"]
            assert.deepStrictEqual(yield* priceIn(query), row, query)
          }
          for (const query of [`?hash=${old?.json.catalog}`, `?at=${justBefore}`]) {
            const row = [reloaded.previous_hash, "7.50", built]
            assert.deepStrictEqual(yield* priceIn(query), row, query)
          }
          const before = yield* operator("GET", "/manage/v1/catalog?at=1960-01-01T00:00:00Z")
          assert.deepStrictEqual([before.status, before.json.code], [404, 2005])
          const both = yield* operator(
            "GET",
            `/manage/v1/catalog?at=${adopted_at}&hash=${reloaded.hash}`
          )
          assert.deepStrictEqual([both.status, both.json.code], [400, 2001])
        })
    )

    it.effect(
      "calls are settled by the catalog with which they began, and their receipts name it",
      () =>
        Effect.gen(function* () {
          const user = yield* makeUser({ credits: 1_000_000 })
          const ask = Effect.gen(function* () {
            const answer = yield* user.call("POST", chat, question)
            assert.strictEqual(answer.status, 200, answer.text)
            const id = answer.headers.get("x-service-call-id")
            const receipt = yield* eventually(
              user.call("GET", `/manage/v1/calls/${id}`),
              ({ status }) => status === 200
            )
            const { usage } = receipt.json
            return { ...receipt.json, tokens: usage.inputTokens + usage.outputTokens }
          })
          const one = yield* adopt({ tokenModels: [teller({})] })
          const first = yield* ask
          const half = { per: "million_tokens", input: "500000", output: "500000" }
          const two = yield* adopt({ tokenModels: [teller({ price: half })] })
          const second = yield* ask
          assert.deepStrictEqual([first.catalog, second.catalog], [one.hash, two.hash])
          assert.strictEqual(Number(first.cost), first.tokens)
          assert.strictEqual(Number(second.cost), second.tokens / 2)
          assert.notProperty(second.usage, "catalog")
        })
    )

    it.effect("the end of a model is announced by Deprecation and Sunset, on tasks and calls", () =>
      Effect.gen(function* () {
        const user = yield* makeUser({ credits: 1_000_000 })
        const ends = {
          deprecation: "2026-11-22",
          sunset: "2026-12-11",
          replacement: "image-edit-max"
        }
        yield* adopt({ change: { "text-to-image-max": ends }, tokenModels: [teller(ends)] })
        const made = yield* user.call("POST", path, { prompt: "a" })
        const task = `${path}/${made.json.task_info.id}`
        for (const [method, route, body] of [
          ["POST", path, { prompt: "a" }],
          ["POST", `${path}?dry_run=true`, { prompt: "a" }],
          ["GET", task, undefined],
          ["DELETE", task, undefined],
          ["POST", chat, question],
          ["POST", chat, { ...question, stream: true }]
        ] as const) {
          const { headers, status, text } = yield* user.call(method, route, body)
          assert.isBelow(status, 300, text)
          assert.deepStrictEqual(
            [headers.get("deprecation"), headers.get("sunset")],
            ["@1795305600", "Fri, 11 Dec 2026 00:00:00 GMT"],
            `${method} ${route}`
          )
        }
        const other = "/vendors/alibaba/v1/text-to-image-preview/generation"
        const { headers } = yield* user.call("POST", other, { prompt: "a" })
        assert.isFalse(headers.has("deprecation") || headers.has("sunset"))
        const first = yield* user.call("GET", "/manage/v1/models?limit=100")
        const next = `/manage/v1/models?limit=100&cursor=${first.json.next_cursor}`
        const second = yield* user.call("GET", next)
        const rows = [...first.json.data, ...second.json.data].filter(
          (it: { sunset: unknown }) => it.sunset === ends.sunset
        )
        const ours = rows.filter(
          (it: { replacement: unknown }) => it.replacement === "image-edit-max"
        )
        assert.deepStrictEqual(
          ours.map((it: { type: string; model: string }) => [it.type, it.model]),
          [
            ["media", "text-to-image-max"],
            ["token", "teller"]
          ]
        )
        assert.isTrue(ours.every((it: { deprecation: string }) => it.deprecation === "2026-11-22"))
      })
    )

    it.effect(
      "a model without a price is not sold: before its first day, after its last day, and after its removal",
      () =>
        Effect.gen(function* () {
          const user = yield* makeUser({ credits: 1_000_000 })
          yield* adopt({ tokenModels: [teller({})] })
          const made = yield* user.call("POST", path, { prompt: "a" })
          const held = (yield* user.call("GET", "/manage/v1/wallet")).json.held_balance
          const sell = (days: object) =>
            adopt({ change: { "text-to-image-max": days }, tokenModels: [teller(days)] })
          const codes = Effect.gen(function* () {
            const answers = yield* Effect.all([
              user.call("POST", path, { prompt: "a" }),
              user.call("POST", `${path}?dry_run=true`, { prompt: "a" }),
              user.call("POST", chat, question)
            ])
            return answers.map(({ json, status }) => (status < 300 ? status : json.code))
          })
          // The test's clock is in the first hour of 1970
          yield* sell({ validFrom: "1970-01-02", validUntil: "1970-01-03" })
          assert.deepStrictEqual(yield* codes, [2006, 2006, 2006])
          assert.strictEqual((yield* user.call("GET", "/manage/v1/wallet")).json.held_balance, held)
          yield* sell({ validFrom: "1970-01-01", validUntil: "1970-01-02" })
          assert.deepStrictEqual(yield* codes, [202, 200, 200])
          yield* sell({ validUntil: "1970-01-01" })
          assert.deepStrictEqual(yield* codes, [2006, 2006, 2006])
          // A route without a model, and a model without a row
          yield* adopt({ remove: ["text-to-image-max"] })
          assert.deepStrictEqual(yield* codes, [2006, 2006, 2006])
          const got = yield* user.call("GET", `${path}/${made.json.task_info.id}`)
          assert.strictEqual(got.status, 200, "its tasks stay")
        })
    )

    it.effect("the lists and the OpenAPI document show the adopted catalog", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const meter = { per: "call", amount: "1.50" }
        const route = {
          vendor: "openai",
          provider: "openai",
          method: "POST",
          path: "/v1/completions"
        }
        const { difference } = yield* adopt({
          add: [{ label: "image-edit", model: "wan3-edit" }],
          routes: [{ ...route, meter }]
        })
        assert.deepInclude(difference.added, { type: "route", id: "POST openai/v1/completions" })
        const added = "/vendors/alibaba/v1/wan3-edit/generation"
        const { paths } = (yield* callWith(undefined)("GET", "/openapi.json")).json
        assert.containsAllKeys(paths, [added, "/vendors/openai/v1/completions"])
        const models = (yield* user.call("GET", "/manage/v1/models")).json.data
        assert.isTrue(models.some((it: { path: string }) => it.path === added))
        const { data } = (yield* operator("GET", "/manage/v1/catalog")).json
        const row = data.find((it: { type: string }) => it.type === "route")
        assert.deepInclude(row, { id: "POST openai/v1/completions", price: meter })
        const again = yield* operator("POST", "/manage/v1/catalog/reload")
        assert.deepInclude(again.json, { adopted: false, difference: nothing })
        const page = (yield* user.call("GET", "/manage/v1/models?limit=3")).json
        yield* adopt({})
        const rest = yield* user.call(
          "GET",
          `/manage/v1/models?limit=100&cursor=${page.next_cursor}`
        )
        const whole = yield* user.call("GET", "/manage/v1/models?limit=100")
        const keyOf = (it: Record<string, unknown>) =>
          [it.type, it.vendor, it.model, it.path, it.valid_from].join(" ")
        const last = keyOf(page.data[2])
        const after = whole.json.data.map(keyOf).filter((key: string) => key > last)
        assert.deepStrictEqual(
          rest.json.data.map(keyOf).slice(0, after.length),
          after.slice(0, rest.json.data.length),
          "a cursor stays valid through a reload"
        )
      })
    )
  })
})
