import { assert } from "@effect/vitest"
import { Effect } from "effect"
import OpenAI, { APIError, toFile } from "openai"
import { readResult } from "../../support/gateway.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { png } from "../../support/media.ts"
import { call, json, Running, runningGateway } from "../../support/running.ts"

const hang = "[[sim:hang]]"
const ownFields = { seed: 7, metadata: { order: "17" } }
const picture = png({ width: 400, height: 400 })
const file = () => toFile(picture, "a.png", { type: "image/png" })

/** As users have it: with its default retries. */
const client = Effect.map(
  Running,
  ({ key, url }) => new OpenAI({ apiKey: key, baseURL: `${url}/v1` })
)

const refusal = (request: Promise<unknown>) =>
  Effect.promise(async () => {
    const error: unknown = await request.then(
      () => undefined,
      (error: unknown) => error
    )
    if (!(error instanceof APIError)) throw new Error(`no error of the API: ${String(error)}`)
    return error
  })

const bodyOf = (answer: Response) =>
  Effect.map(
    Effect.promise(() => readResult(answer)),
    ({ json }) => json
  )

const read = (path: string) => Effect.flatMap(call(path), bodyOf)

const tasksOf = (query = "") =>
  Effect.map(read(`/manage/v1/tasks?limit=100&${query}`), ({ data }) => data)

/** docs/reference/shapes.md#images */
liveLayer(runningGateway({ IMAGES_WAIT: "10 seconds" }))(
  "the openai package makes images",
  (it) => {
    it.effect("from text, by URL, as Base64 or both, in the requested size and number", () =>
      Effect.gen(function* () {
        const { images } = yield* client
        const { data: both, output_format } = yield* Effect.promise(() =>
          images.generate({ model: "text-to-image-max", prompt: "a", size: "1328x1328" })
        )
        assert.strictEqual(output_format, "png")
        assert.strictEqual(both?.length, 1)
        const bytes = Buffer.from(both?.[0]?.b64_json ?? "", "base64")
        assert.strictEqual(bytes.readUInt32BE(16), 1328)
        const linked = yield* call(both?.[0]?.url ?? "")
        assert.deepStrictEqual(
          Buffer.from(yield* Effect.promise(() => linked.arrayBuffer())),
          bytes
        )
        const { data, response } = yield* Effect.promise(() =>
          images
            .generate({
              model: "alibaba/text-to-image-preview",
              prompt: "a",
              n: 2,
              response_format: "url",
              quality: "auto",
              user: "someone",
              ...ownFields
            })
            .withResponse()
        )
        assert.deepStrictEqual(data.data?.map(Object.keys), [["url"], ["url"]])
        assert.strictEqual(response.headers.get("x-service-cost"), "6.00")
        const tasks = yield* tasksOf("metadata[order]=17")
        assert.sameMembers(
          tasks.map(({ id }: { id: string }) => id),
          response.headers.get("x-service-task-id")?.split(", ") ?? []
        )
        for (const { id, receipt } of tasks) {
          assert.strictEqual(receipt.captured, "3.00")
          const { body } = yield* read(`/manage/v1/tasks/${id}`)
          assert.deepInclude(body, { n: 1, seed: 7 })
        }
        const one = yield* Effect.promise(() =>
          images.generate({
            model: "text-to-image-preview",
            prompt: "a",
            response_format: "b64_json"
          })
        )
        assert.deepStrictEqual(one.data?.map(Object.keys), [["b64_json"]])
      })
    )

    it.effect("from pictures, with every model that edits", () =>
      Effect.gen(function* () {
        const { images } = yield* client
        for (const [model, count, more] of [
          ["image-edit", 1, { size: "1024x1024" }],
          ["image-edit-max", 2, {}],
          ["google/image-edit-pro", 1, { size: "1024x1024" }]
        ] as const) {
          const files = yield* Effect.forEach([file, file], Effect.promise)
          const image = count === 1 ? files[0]! : files
          const { data, response } = yield* Effect.promise(() =>
            images.edit({ model, prompt: "b", image, n: 1, ...more }).withResponse()
          )
          assert.isString(data.data?.[0]?.b64_json, model)
          const id = response.headers.get("x-service-task-id")
          const { body } = yield* read(`/manage/v1/tasks/${id}`)
          assert.lengthOf(body.images, count)
          assert.match(body.images[0], /^artifact:art_/u)
          if (model.endsWith("pro")) assert.strictEqual(body.resolution, "1K")
        }
        const asJson = {
          model: "image-edit",
          prompt: "b",
          mask: null,
          images: [
            { image_url: `data:image/png;base64,${Buffer.from(picture).toString("base64")}` }
          ]
        }
        const answer = yield* call("/v1/images/edits", json(asJson))
        assert.strictEqual(answer.status, 200)
      })
    )

    it.effect("once if a create outlasts the wait, and the response names its task", () =>
      Effect.gen(function* () {
        const { images } = yield* client
        const before = (yield* tasksOf()).length
        const prefer = { headers: { prefer: "wait=1" } }
        const model = "text-to-image-max"
        for (const error of [
          yield* refusal(images.generate({ model, prompt: hang }, prefer)),
          yield* refusal(
            images.edit(
              { model: "image-edit", prompt: hang, image: yield* Effect.promise(file) },
              prefer
            )
          )
        ]) {
          assert.strictEqual(error.status, 424)
          assert.strictEqual(error.code, "2017")
          assert.strictEqual(error.headers?.get("x-should-retry"), "false")
          assert.isNull(error.headers?.get("retry-after"))
          const url = error.headers?.get("location") ?? ""
          assert.include(error.message, url)
          assert.strictEqual(
            (yield* read(url)).task_info.id,
            error.headers?.get("x-service-task-id")
          )
          yield* call(url, { method: "DELETE" })
        }
        assert.strictEqual((yield* tasksOf()).length, before + 2)
      })
    )

    it.effect("without a charge or a retry if the task fails", () =>
      Effect.gen(function* () {
        const { images } = yield* client
        const before = (yield* tasksOf()).length
        for (const [script, status, code] of [
          ["refuse", 400, "2018"],
          ["fail", 424, "2019"],
          ["timeout", 424, "2019"],
          ["operator", 424, "2019"]
        ] as const) {
          const prompt = `[[sim:${script}]]`
          const error = yield* refusal(images.generate({ model: "text-to-image-max", prompt }))
          assert.deepStrictEqual([error.status, error.code], [status, code], script)
          assert.strictEqual(error.headers?.get("x-service-cost"), "0.00")
        }
        assert.strictEqual((yield* tasksOf()).length, before + 4)
      })
    )

    it.effect("once for the same Idempotency-Key, whatever the boundary of the form", () =>
      Effect.gen(function* () {
        const { images } = yield* client
        const before = (yield* tasksOf()).length
        const key = { headers: { "idempotency-key": "order-1" } }
        const edit = async (prompt: string) =>
          images
            .edit({ model: "image-edit", prompt, image: await file(), response_format: "url" }, key)
            .withResponse()
        const [first, again] = [
          yield* Effect.promise(() => edit("b")),
          yield* Effect.promise(() => edit("b"))
        ]
        assert.strictEqual(again.response.headers.get("idempotency-replayed"), "true")
        assert.deepStrictEqual(again.data.data, first.data.data)
        assert.strictEqual((yield* refusal(edit("c"))).code, "2008")
        assert.strictEqual((yield* tasksOf()).length, before + 1)
      })
    )

    it.effect("in the model's nearest size, and the response names fields without effect", () =>
      Effect.gen(function* () {
        const { images } = yield* client
        const chosen = (model: string, more: object) =>
          Effect.promise(async () => {
            const asked = { model, prompt: "a", response_format: "url", ...more } as const
            const { response } = await images.generate(asked).withResponse()
            return ["size", "ignored"].map((name) => response.headers.get(`x-service-${name}`))
          })
        assert.deepStrictEqual(
          yield* chosen("text-to-image-max", {
            size: "1792x1024",
            quality: "hd",
            style: "natural",
            background: "opaque",
            moderation: "low",
            user: "someone"
          }),
          ["1664x928", "quality, style, moderation, user"]
        )
        assert.deepStrictEqual(yield* chosen("text-to-image-max", { size: "auto" }), [
          "1664x928",
          null
        ])
        assert.deepStrictEqual(yield* chosen("text-to-image-preview", { size: "512x512" }), [
          "768x768",
          null
        ])
        const wide = yield* call(
          "/v1/images/edits",
          json({
            model: "image-edit-pro",
            prompt: "b",
            images: [Buffer.from(picture).toString("base64")],
            size: "1792x1024"
          })
        )
        assert.strictEqual(wide.headers.get("x-service-size"), "16:9 1K")
        const { body } = yield* read(`/manage/v1/tasks/${wide.headers.get("x-service-task-id")}`)
        assert.deepInclude(body, { aspect_ratio: "16:9", resolution: "1K" })
      })
    )

    it.effect("under OpenAI's own model names, from text and from pictures", () =>
      Effect.gen(function* () {
        const { images } = yield* client
        for (const model of ["gpt-image-1", "gpt-image-2", "dall-e-3"]) {
          const { response } = yield* Effect.promise(() =>
            images.generate({ model, prompt: "a", size: "1024x1536" }).withResponse()
          )
          assert.strictEqual(
            response.headers.get("x-service-model"),
            "alibaba/text-to-image-preview"
          )
          assert.strictEqual(response.headers.get("x-service-size"), "1024x1536")
        }
        const image = yield* Effect.promise(file)
        const { response } = yield* Effect.promise(() =>
          images.edit({ model: "gpt-image-1", prompt: "b", image }).withResponse()
        )
        assert.strictEqual(response.headers.get("x-service-model"), "google/image-edit-pro")
        const error = yield* refusal(images.edit({ model: "dall-e-3", prompt: "b", image }))
        assert.deepStrictEqual([error.status, error.code], [404, "2006"])
      })
    )

    it.effect("as one task each if several are requested, and a repeat finds them again", () =>
      Effect.gen(function* () {
        const { images } = yield* client
        const before = (yield* tasksOf()).length
        const headers = { "idempotency-key": "order-2", "x-service-max-cost": "9.00" }
        const generate = () =>
          images
            .generate({ model: "dall-e-3", prompt: "a", n: 3, response_format: "url" }, { headers })
            .withResponse()
        const first = yield* Effect.promise(generate)
        assert.lengthOf(first.data.data ?? [], 3)
        assert.strictEqual(first.response.headers.get("x-service-cost"), "9.00")
        const again = yield* Effect.promise(generate)
        assert.strictEqual(again.response.headers.get("idempotency-replayed"), "true")
        assert.deepStrictEqual(again.data.data, first.data.data)
        assert.strictEqual((yield* tasksOf()).length, before + 3)
        const tooExpensive = yield* refusal(
          images.generate(
            { model: "dall-e-3", prompt: "a", n: 4 },
            { headers: { "x-service-max-cost": "11.99" } }
          )
        )
        assert.strictEqual(tooExpensive.code, "1103")
        assert.include(tooExpensive.message, "These 4 tasks cost")
        const broke = yield* refusal(
          images.generate({ model: "text-to-image-max", prompt: "[[sim:fail]]", n: 2 })
        )
        assert.deepStrictEqual([broke.status, broke.code], [424, "2019"])
        assert.strictEqual((yield* tasksOf()).length, before + 5)
        const edited = yield* Effect.promise(async () =>
          images.edit({ model: "image-edit", prompt: "b", image: await file(), n: 2 })
        )
        assert.lengthOf(edited.data ?? [], 2)
      })
    )

    it.effect("several tasks of which one fails return the images of the others", () =>
      Effect.gen(function* () {
        const { images } = yield* client
        const order = { "idempotency-key": "order-3" }
        const generate = (prefer?: string) =>
          Effect.promise(() =>
            images
              .generate(
                { model: "text-to-image-max", prompt: "[[sim:slow=3s]]", n: 2 },
                { headers: prefer === undefined ? order : { ...order, prefer } }
              )
              .withResponse()
          )
        const { data, response } = yield* generate("respond-async")
        assert.strictEqual(response.status, 202)
        const url = response.headers.get("location") ?? ""
        const ids = response.headers.get("x-service-task-id")?.split(", ") ?? []
        assert.deepStrictEqual(
          Object(data).tasks.map((it: { task_info: { id: string } }) => it.task_info.id),
          ids
        )
        assert.isTrue(url.endsWith(`/${ids[0]}`))
        assert.strictEqual(response.headers.get("x-service-cost"), "15.00")
        assert.strictEqual((yield* call(url, { method: "DELETE" })).status, 200)
        const ended = yield* generate()
        assert.lengthOf(ended.data.data ?? [], 1)
        assert.strictEqual(ended.response.headers.get("x-service-cost"), "7.50")
      })
    )

    it.effect("Prefer: respond-async returns the 202 at once", () =>
      Effect.gen(function* () {
        const body = json({ model: "text-to-image-max", prompt: hang })
        const headers = { ...body.headers, prefer: "respond-async" }
        const answer = yield* call("/v1/images/generations", { ...body, headers })
        assert.strictEqual(answer.status, 202)
        assert.strictEqual(answer.headers.get("preference-applied"), "respond-async")
        const { task_info } = yield* bodyOf(answer)
        const url = answer.headers.get("location") ?? ""
        assert.strictEqual((yield* read(url)).task_info.id, task_info.id)
        yield* call(url, { method: "DELETE" })
      })
    )

    it.effect("a refused request lists all faults, drops no field and creates no task", () =>
      Effect.gen(function* () {
        const before = (yield* tasksOf()).length
        const faults = (body: object, path = "/v1/images/generations") =>
          Effect.gen(function* () {
            const answer = yield* call(path, json(body))
            const problem = yield* bodyOf(answer)
            assert.strictEqual(answer.status, problem.code === 2006 ? 404 : 400)
            assert.strictEqual(problem.error.code, String(problem.code))
            return problem.errors?.map((it: { pointer: string }) => it.pointer) ?? problem.code
          })
        const max = { model: "text-to-image-max", prompt: "a" }
        const { model } = max
        assert.deepStrictEqual(yield* faults({ prompt: "a" }), ["#/model"])
        assert.deepStrictEqual(yield* faults({ ...max, model: "gpt-image-9" }), 2006)
        assert.deepStrictEqual(yield* faults({ ...max, model: "image-to-video-spark" }), 2006)
        assert.deepStrictEqual(yield* faults({ ...max, model: "image-edit" }), [
          "#/model",
          "#/images"
        ])
        assert.deepStrictEqual(yield* faults(max, "/v1/images/edits"), ["#/model", "#/images"])
        assert.deepStrictEqual(
          yield* faults({
            model,
            n: 11,
            background: "transparent",
            stream: true,
            response_format: "svg",
            output_format: "webp",
            size: "10*",
            other: 1
          }),
          [
            "#/background",
            "#/output_format",
            "#/stream",
            "#/size",
            "#/n",
            "#/response_format",
            "#/other",
            "#/prompt"
          ]
        )
        const wrong = yield* bodyOf(
          yield* call("/v1/images/generations", json({ ...max, n: "2x", size: "10 x 10" }))
        )
        assert.deepStrictEqual(
          wrong.errors.map(({ detail }: { detail: string }) => detail.split(", got ")[1]),
          ['"10 x 10"', '"2x"']
        )
        const edit = { model: "image-edit-pro", prompt: "a", images: ["QQ=="] }
        assert.include(yield* faults({ ...edit, mask: "x" }, "/v1/images/edits"), "#/mask")
        const { url } = yield* Running
        const open = yield* Effect.promise(() => fetch(`${url}/v1/images/edits`, json(max)))
        assert.strictEqual(open.status, 401)
        const form = {
          method: "POST",
          headers: { "content-type": "multipart/form-data; boundary=a" }
        }
        const broken = yield* call("/v1/images/edits", { ...form, body: "nonsense" })
        assert.strictEqual((yield* bodyOf(broken)).code, 2002)
        assert.strictEqual((yield* tasksOf()).length, before)
      })
    )
  }
)
