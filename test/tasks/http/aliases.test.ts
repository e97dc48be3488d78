import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { aliasCatalog, aliasPath, catalogFile } from "../../support/aliases.ts"
import {
  advance,
  callWith,
  eventually,
  layerGateway,
  makeUser,
  operator
} from "../../support/gateway.ts"

const spark = "service/text-to-video-spark"
const perSecond = { per: "second", amount: "1.00" }
const env = {
  CATALOG_FILE: catalogFile({
    ...aliasCatalog,
    add: [
      ...aliasCatalog.add,
      { label: "text-to-video-spark", model: "spark-2", price: perSecond }
    ],
    aliases: [
      ...aliasCatalog.aliases,
      { alias: "film", to: [{ model: spark }, { model: "service/spark-2" }] }
    ]
  })
}
const falPath = "/vendors/fal/v1/fal-image/generation"

const names = (candidates: ReadonlyArray<{ vendor: string; model: string }>) =>
  candidates.map(({ model, vendor }) => `${vendor}/${model}`)

layer(layerGateway({ env }), { timeout: "60 seconds" })("an alias", (it) => {
  it.effect(
    "is quoted at its most expensive model, skips models that do not accept the body, and names the faults of all",
    () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const quote = (path: string, body: object) =>
          Effect.map(user.call("POST", `${path}?dry_run=true`, body), ({ json }) => json.quote)
        assert.deepStrictEqual(yield* quote(aliasPath, { prompt: "x" }), {
          amount: "12.00",
          currency: "credits",
          candidates: [
            { vendor: "alibaba", model: "text-to-image-max", amount: "7.50", skipped: null },
            { vendor: "fal", model: "flux", amount: "3.00", skipped: null },
            { vendor: "fal", model: "pro", amount: "12.00", skipped: null }
          ]
        })
        // The most expensive model has no field `size`
        const sized = yield* quote(aliasPath, { prompt: "x", size: "1328*1328" })
        assert.strictEqual(sized.amount, "7.50")
        assert.deepStrictEqual(sized.candidates[2], {
          vendor: "fal",
          model: "pro",
          amount: null,
          skipped: "body"
        })
        const refused = yield* user.call("POST", falPath, {
          prompt: "x",
          size: "1328*1328",
          seed: 1
        })
        assert.strictEqual(refused.status, 400, refused.text)
        assert.deepStrictEqual(
          refused.json.errors.map(
            ({ detail, pointer }: { detail: string; pointer: string }) => `${pointer} ${detail}`
          ),
          ["#/seed flux does not support this field", "#/size pro does not support this field"]
        )
        // The task skips this model, whose price is not held
        const created = yield* user.call("POST", aliasPath, { prompt: "x", size: "1328*1328" })
        assert.strictEqual(created.headers.get("x-service-cost"), "7.50")
        const { id } = created.json.task_info
        const task = (yield* user.call("GET", `/manage/v1/tasks/${id}`)).json
        assert.deepStrictEqual(names(task.candidates), [
          "alibaba/text-to-image-max",
          "fal/flux",
          "fal/pro"
        ])
        assert.strictEqual(task.candidates[2].skipped.reason, "body")
        const most = yield* user.call(
          "POST",
          aliasPath,
          { prompt: "x" },
          { "x-service-max-cost": "11.99" }
        )
        assert.deepStrictEqual([most.status, most.json.code], [402, 1103])
      })
  )

  it.effect("is open to a restricted key only if the key allows every model", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const made = yield* user.call("POST", "/manage/v1/api-keys", {
        name: "some",
        scopes: ["inference"]
      })
      const limited = callWith(made.json.key)
      const allow = (models: ReadonlyArray<string>) =>
        user.call("PATCH", `/manage/v1/api-keys/${made.json.id}`, { allowed_models: models })
      const create = limited("POST", aliasPath, { prompt: "x" })
      yield* allow(["fast-image", "text-to-image-max", "flux"])
      const refused = yield* create
      assert.deepStrictEqual([refused.status, refused.json.code], [403, 1004])
      assert.include(refused.json.detail, "pro")
      const shaped = yield* limited("POST", "/v1/images/generations", {
        model: "fast-image",
        prompt: "x"
      })
      assert.strictEqual(shaped.json.code, 1004)
      yield* allow(["text-to-image-max", "flux", "pro"])
      const accepted = yield* create
      assert.strictEqual(accepted.status, 202, accepted.text)
    })
  )

  it.effect(
    "falls back in the sandbox as a directive says, and makes images in OpenAI's shape",
    () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const created = yield* user.call(
          "POST",
          "/v1/images/generations",
          { model: "fast-image", prompt: "[[sim:503=1]] a lighthouse" },
          { prefer: "respond-async" }
        )
        assert.strictEqual(created.status, 202, created.text)
        const { id } = created.json.task_info
        yield* advance("8 seconds")
        // The picture is rendered in real time
        const get = yield* eventually(
          user.call("GET", `${aliasPath}/${id}`),
          ({ json }) => json.task_info.status === "completed"
        )
        assert.strictEqual(get.headers.get("x-service-model"), "fal/flux")
        assert.strictEqual(
          get.headers.get("x-service-skipped"),
          '"alibaba/text-to-image-max";reason=unavailable'
        )
        const refused = yield* user.call("POST", aliasPath, { prompt: "[[sim:refuse]] x" })
        yield* advance("5 seconds")
        const task = (yield* user.call("GET", `/manage/v1/tasks/${refused.json.task_info.id}`)).json
        assert.deepStrictEqual([task.error.code, task.attempts.length], [3001, 1])
      })
  )

  it.effect(
    "makes videos in OpenAI's shape that name it and cost the price of the model that made them",
    () =>
      Effect.gen(function* () {
        const [user, other] = [yield* makeUser(), yield* makeUser()]
        const asked = { model: "film", prompt: "[[sim:429=1]] a ship", seconds: "5" }
        const key = { "idempotency-key": "one" }
        const created = yield* user.call("POST", "/v1/videos", asked, key)
        assert.deepInclude(created.json, { model: "film", status: "queued", seconds: "5" })
        const held = created.headers.get("x-service-cost")
        const at = `/v1/videos/${created.json.id}`
        yield* advance("30 seconds")
        const done = yield* eventually(
          Effect.andThen(advance("5 seconds"), user.call("GET", at)),
          ({ json }) => json.status === "completed"
        )
        assert.strictEqual(done.json.model, "film")
        assert.strictEqual(done.headers.get("x-service-model"), "service/spark-2")
        assert.strictEqual(done.headers.get("x-service-skipped"), `"${spark}";reason=rate_limited`)
        assert.deepStrictEqual([held, done.headers.get("x-service-cost")], ["50.00", "5.00"])
        const content = yield* user.call("GET", `${at}/content`)
        assert.deepStrictEqual(
          [content.status, content.headers.get("content-type")],
          [200, "video/mp4"]
        )
        assert.strictEqual((yield* other.call("GET", at)).status, 404)
        const again = yield* user.call("POST", "/v1/videos", asked, key)
        assert.deepStrictEqual(
          [again.text, again.headers.get("x-service-cost")],
          [created.text, held]
        )
        const list = (yield* user.call("GET", "/v1/videos")).json.data
        assert.deepStrictEqual(
          list.map(({ id, model }: { id: string; model: string }) => [id, model]),
          [[created.json.id, "film"]]
        )
        assert.strictEqual((yield* user.call("DELETE", at)).json.deleted, true)
        const wallet = (yield* user.call("GET", "/manage/v1/wallet")).json
        assert.deepInclude(wallet, { settled_balance: "995.00", held_balance: "0.00" })
      })
  )

  it.effect(
    "is listed with its models, is in the OpenAPI document, and is no difference of an unchanged catalog",
    () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const models = (yield* user.call("GET", "/manage/v1/models?limit=100")).json.data
        const alias = models.find(({ model }: { model: string }) => model === "fast-image")
        assert.deepStrictEqual(names(alias.candidates), [
          "alibaba/text-to-image-max",
          "fal/flux",
          "fal/pro"
        ])
        assert.deepStrictEqual([alias.path, alias.price.amount], [aliasPath, "12.00"])
        assert.containsAllKeys(alias.body_schema.properties, ["prompt", "seed", "size"])
        const { paths } = (yield* user.call("GET", "/openapi.json")).json
        assert.containsAllKeys(paths, [aliasPath, `${aliasPath}/{task_id}`])
        const unknown = yield* user.call(
          "GET",
          `/vendors/fal/v1/fast-image/generation/${"0".repeat(8)}-0000-7000-8000-000000000000`
        )
        assert.deepStrictEqual([unknown.status, unknown.json.code], [404, 2006])
        const same = yield* operator("POST", "/manage/v1/catalog/reload?dry_run=true")
        assert.deepStrictEqual(same.json.difference, { added: [], removed: [], changed: [] })
      })
  )
})
