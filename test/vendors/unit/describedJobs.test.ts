import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Redacted, Schema, Stream, Struct } from "effect"
import { TestClock } from "effect/testing"
import { createHmac } from "node:crypto"
import { Vendor } from "../../../src/catalog/Vendors.ts"
import { describedProtocol } from "../../../src/testing/vendors/DescribedProtocol.ts"
import { describedAdapter } from "../../../src/vendors/described/DescribedJobs.ts"
import type { SubmitRequest } from "../../../src/vendors/VendorClient.ts"
import type { VendorHttp, VendorRequest } from "../../../src/vendors/VendorHttp.ts"
import { accountAt, picture, request } from "../../support/upstreams/accounts.ts"
import { studio } from "../../support/upstreams/describedStudio.ts"
import { pixel, Upstream } from "../../support/upstreams/Upstream.ts"

/** docs/vendors-as-files.md#job-vendors: what a description says, and what is sent and read. */

type Jobs = NonNullable<(typeof Vendor.Encoded)["jobs"]>

const jobs: Jobs = {
  submit: {
    path: "/jobs",
    json: { prompt: { $: "$.body.prompt" }, image: { $: "$.body.image" } },
    idempotencyHeader: "X-Once",
    handle: { id: "$.id" }
  },
  poll: { path: "/jobs/{id}", seconds: 10 },
  state: { at: "$.state", running: ["run"], done: ["ok"], failed: ["bad"] },
  results: { urls: ["$.files[*]"], base64: ["$.data[*]"], mime: "video/mp4" },
  error: { code: ["$.code"], message: ["$.message"] },
  failures: [{ status: 409, when: "response.kind == 'busy'", class: "RETRYABLE" }],
  models: [
    {
      model: "m",
      result: "images",
      body: {
        type: "object",
        properties: { prompt: { type: "string" }, image: { type: "string" } },
        additionalProperties: false
      },
      price: { per: "call", amount: "1.00" }
    }
  ]
}

interface Sent {
  readonly account: ReturnType<ReturnType<typeof describedAdapter>["make"]>
  readonly sent: Array<VendorRequest>
  /** The requests to a host that a response named. */
  readonly elsewhere: Array<VendorRequest>
}

/** The account of a description whose vendor gives these responses. */
const accountOf = (
  change: Partial<Jobs>,
  responses: ReadonlyArray<{
    readonly status?: number
    readonly json: unknown
    readonly headers?: Readonly<Record<string, string>>
  }>,
  key = "access:secret"
): Sent => {
  const sent: Array<VendorRequest> = []
  const elsewhere: Array<VendorRequest> = []
  const http: VendorHttp = (call) =>
    Effect.sync(() => {
      const { headers = {}, json, status = 200 } = responses[sent.length] ?? { json: {} }
      sent.push(call)
      return { status, headers, body: Buffer.from(JSON.stringify(json)) }
    })
  const vendor = Schema.decodeSync(Vendor)({ name: "acme", jobs: { ...jobs, ...change } })
  const adapter = describedAdapter("acme", Struct.omit(vendor.jobs!, ["models"]))
  const account = adapter.make({
    account: {
      id: "acme:a",
      provider: "acme",
      key: Redacted.make(key),
      baseUrl: "https://acme.example/v2",
      weight: 1
    },
    accountId: "jobs/acme@acme:a",
    auth: {},
    http,
    toNamed: (call) => {
      elsewhere.push(call)
      return http(call)
    },
    mayDisableInspection: false,
    observeResponse: () => Effect.void
  })
  return { account, sent, elsewhere }
}

const order = (body: object, more: Partial<SubmitRequest> = {}) =>
  request("acme/m", "m", body, { described: { body: jobs.models[0].body }, ...more })

const bodyOf = (sent: Sent) => JSON.parse(String(sent.sent[0]?.body))

const { jobs: studioJobs } = Schema.decodeSync(Vendor)(studio)

const { json: _json, ...withoutJson } = jobs.submit

/** A vendor of videos with several forms, chosen by the picture, and with the bytes at a path. */
const { jobs: film } = Schema.decodeSync(Vendor)({
  name: "film",
  jobs: {
    ...jobs,
    submit: {
      ...withoutJson,
      form: {
        size: { $cel: "has(pictures.image) ? pictures.image.width : 0" },
        file: { $file: "$.body.image" }
      }
    },
    results: { content: "/jobs/{id}/bytes", mime: "image/png" },
    list: {
      path: "/jobs",
      jobs: "$.items[*]",
      id: "$.id",
      createdAt: "$.at",
      shows: [{ listed: "$.length", sent: { $cel: 'body.prompt == "p" ? 5 : 9' } }]
    }
  }
})

describe("a described account", () => {
  it.effect("sends its key by its scheme, and the id of the task where the description says", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(1_800_000_000_000)
      const submitted = { json: { id: "j" } }
      const sentWith = Effect.fnUntraced(function* (auth?: Jobs["auth"]) {
        const made = accountOf(auth === undefined ? {} : { auth }, [submitted])
        yield* made.account.submit(order({ prompt: "p" }))
        return made.sent[0]!
      })
      const bearer = yield* sentWith()
      assert.strictEqual(bearer.headers["authorization"], "Bearer access:secret")
      assert.strictEqual(bearer.headers["X-Once"], order({}).taskId)
      const header = yield* sentWith({ scheme: "header", name: "X-Key", prefix: "Key " })
      assert.strictEqual(header.headers["x-key"], "Key access:secret")
      assert.isUndefined(header.headers["authorization"])
      const query = yield* sentWith({ scheme: "query", name: "key" })
      assert.strictEqual(query.url, "https://acme.example/v2/jobs?key=access%3Asecret")
      const jwt = yield* sentWith({ scheme: "jwt" })
      const [head = "", claims = "", signature] = String(jwt.headers["authorization"])
        .slice("Bearer ".length)
        .split(".")
      assert.deepStrictEqual(JSON.parse(Buffer.from(claims, "base64url").toString()), {
        iss: "access",
        exp: 1_800_001_800,
        nbf: 1_799_999_995
      })
      const expected = createHmac("sha256", "secret")
        .update(`${head}.${claims}`)
        .digest("base64url")
      assert.strictEqual(signature, expected)
    })
  )

  it.effect(
    "polls a URL of another origin without the key, and charges by figures of the submit's response",
    () =>
      Effect.gen(function* () {
        const auths: ReadonlyArray<Jobs["auth"]> = [
          { scheme: "bearer" },
          { scheme: "header", name: "x-key" },
          { scheme: "query", name: "key" }
        ]
        for (const auth of auths) {
          const told = { id: "j", polling_url: "https://eu.acme.example/jobs/j", cost: 4.5 }
          const { account, elsewhere, sent } = accountOf(
            {
              auth: auth!,
              headers: { "X-Tenant": "t1" },
              submit: {
                ...jobs.submit,
                handle: { id: "$.id", pollingUrl: "$.polling_url", cost: "$.cost" }
              },
              poll: { path: "{pollingUrl}" }
            },
            [{ json: told }, { json: { state: "ok", files: ["https://cdn.example/a.png"] } }]
          )
          const submitted = yield* account.submit(order({ prompt: "p" }))
          if (submitted._tag === "Done") return assert.fail("it is a job")
          const progress = yield* account.poll(submitted.handle)
          if (progress._tag !== "Done") return assert.fail("the job has ended")
          assert.deepStrictEqual(progress.result.usage, { cost: "4.5" })
          assert.strictEqual(sent.length, 2)
          const [poll] = elsewhere
          assert.strictEqual(elsewhere.length, 1)
          assert.strictEqual(poll?.url, told.polling_url)
          assert.deepStrictEqual(poll?.headers, {})
        }
      })
  )

  it.effect("sends media as a URL, a data URI, Base64 or a file of a form", () =>
    Effect.gen(function* () {
      const body = { prompt: "p", image: "artifact:1" }
      const sentAs = (sentAs: "auto" | "data-uri" | "base64" | "url", url?: string) =>
        Effect.gen(function* () {
          const made = accountOf({}, [{ json: { id: "j" } }])
          const described = {
            body: jobs.models[0].body,
            media: { image: { kind: "image", sentAs } as const }
          }
          yield* made.account.submit(order(body, { described, media: [picture("#/image", url)] }))
          return bodyOf(made).image
        })
      const encoded = pixel.toString("base64")
      const url = "https://client.example/a.png"
      assert.strictEqual(yield* sentAs("auto"), `data:image/png;base64,${encoded}`)
      assert.strictEqual(yield* sentAs("auto", url), url)
      assert.strictEqual(yield* sentAs("data-uri", url), `data:image/png;base64,${encoded}`)
      assert.strictEqual(yield* sentAs("base64", url), encoded)
      assert.match(yield* sentAs("url"), /^http:\/\/gateway.test\/artifacts\//u)
      const { json: _, ...submit } = jobs.submit
      const form = accountOf(
        {
          submit: {
            ...submit,
            form: {
              text: { $: "$.body.prompt" },
              none: { $: "$.body.x" },
              file: { $file: "$.body.image" }
            }
          }
        },
        [{ json: { id: "j" } }]
      )
      yield* form.account.submit(order(body, { media: [picture("#/image")] }))
      const text = Buffer.from(form.sent[0]?.body as Uint8Array).toString("latin1")
      assert.match(form.sent[0]?.headers["content-type"] ?? "", /^multipart\/form-data/u)
      assert.include(text, 'name="text"\r\n\r\np\r\n')
      assert.include(text, 'name="file"; filename="file.png"')
      assert.notInclude(text, 'name="none"')
    })
  )

  it.effect("reads URLs or Base64, and the figures for its price", () =>
    Effect.gen(function* () {
      const handle = { id: "j", model: "m", submittedAtMillis: 0 }
      const poll = (json: unknown, change: Partial<Jobs> = {}) =>
        accountOf(change, [{ json }]).account.poll(handle)
      const usage = { seconds: "$.billed.seconds", plan: "$.billed.plan", none: "$.none" }
      const urls = yield* poll(
        { state: "ok", files: ["https://a.example/1"], billed: { seconds: 2.5, plan: "x" } },
        { usage }
      )
      assert(urls._tag === "Done")
      const [item] = urls.result.items
      assert.deepInclude(item, { _tag: "Url", url: "https://a.example/1", mime: "video/mp4" })
      assert.deepStrictEqual(urls.result.usage, { seconds: 2.5, plan: "x" })
      const inline = yield* poll({ state: "ok", data: [pixel.toString("base64")] })
      assert(inline._tag === "Done")
      assert.deepInclude(inline.result.items[0], { _tag: "Bytes", mime: "image/png" })
      const words = yield* Effect.flip(poll({ state: "ok", files: ["file:///etc/passwd"] }))
      assert.strictEqual(words.class, "FAILED")
      const unknown = yield* poll({ state: "a new state" })
      assert.strictEqual(unknown._tag, "Running")
    })
  )

  it.effect("keeps URLs of its own origin, and builds those that the vendor does not name", () =>
    Effect.gen(function* () {
      const submit = {
        ...jobs.submit,
        handle: { id: "$.id", url: { url: "$.url", or: "/{model:2}/jobs/{id}" } }
      } as const
      const poll = { path: "{url}" }
      const order = request("acme/m", "a/b/c", {}, { described: { body: jobs.models[0].body } })
      const base = "https://acme.example"
      for (const [url, expected] of [
        [`${base}/v9/j`, `${base}/v9/j`],
        [null, `${base}/v2/a/b/jobs/j`],
        ["https://evil.example/j", `${base}/v2/a/b/jobs/j`]
      ] as const) {
        const made = accountOf({ submit, poll }, [{ json: { id: "j", url } }])
        const submitted = yield* made.account.submit(order)
        assert(submitted._tag === "Accepted")
        assert.strictEqual(submitted.handle["url"], expected)
        yield* Effect.flip(made.account.poll(submitted.handle))
        assert.strictEqual(made.sent[1]?.url, expected)
        const moved = { ...submitted.handle, url: "https://evil.example/j" }
        const error = yield* Effect.flip(made.account.poll(moved))
        assert.strictEqual(error.class, "LOST")
        assert.lengthOf(made.sent, 2)
      }
    })
  )

  it.effect(
    "leaves out flagged results, and reports a job with only flagged results as refused",
    () =>
      Effect.gen(function* () {
        const results = { urls: "usual", flagged: "$.unsafe" } as const
        const urls = ["https://a.example/1.png", "https://a.example/2.png"]
        const handle = { id: "j", model: "m", submittedAtMillis: 0, result: "images" }
        const poll = (unsafe: unknown, images: ReadonlyArray<string> = urls) =>
          accountOf({ results }, [
            { json: { state: "ok", images, video: "https://a.example/1.mp4", unsafe } }
          ]).account.poll(handle)
        for (const [unsafe, expected] of [
          [undefined, urls],
          [false, urls],
          [[true, false], [urls[1]]]
        ] as const) {
          const done = yield* poll(unsafe)
          assert(done._tag === "Done")
          assert.deepStrictEqual(
            done.result.items.map((it) => (it._tag === "Url" ? it.url : it._tag)),
            expected
          )
        }
        for (const unsafe of [true, [true, true]]) {
          assert.strictEqual((yield* Effect.flip(poll(unsafe))).class, "CONTENT")
        }
        assert.strictEqual((yield* Effect.flip(poll(false, []))).class, "FAILED")
      })
  )

  it.effect(
    "can be played by a server, which accepts its uploads and checks the form of the model's id",
    () =>
      Effect.gen(function* () {
        const adapter = describedAdapter("studio", Struct.omit(studioJobs!, ["models"]))
        const server = yield* Effect.acquireRelease(
          Effect.promise(() =>
            Upstream.start(describedProtocol({ name: "studio", jobs: studioJobs! }))
          ),
          (it) => Effect.promise(() => it.close())
        )
        server.runningPolls = 1
        const account = yield* accountAt(adapter, server.url, server.key)
        const given = request(
          "studio/paint",
          "acme/paint",
          { prompt: "p", image: "artifact:1" },
          { media: [picture("#/image")], described: { body: studioJobs!.models[0].body } }
        )
        const submitted = yield* account.submit(given)
        assert(submitted._tag === "Accepted")
        assert.deepStrictEqual(
          server.seen.map(({ path }) => path),
          ["/v1/uploads", "/v1/acme/jobs"]
        )
        assert.deepStrictEqual(server.lastSubmit.json, {
          name: "paint",
          input: { prompt: "p", image: `${server.url}/uploaded` }
        })
        const running = yield* account.poll(submitted.handle)
        assert.strictEqual(running._tag, "Running")
        const done = yield* account.poll(submitted.handle)
        assert(done._tag === "Done")
        assert.lengthOf(done.result.items, 1)
      }).pipe(Effect.scoped)
  )

  it.effect("sends values computed from the pixels of a picture, and reads bytes at a path", () =>
    Effect.gen(function* () {
      const adapter = describedAdapter("film", Struct.omit(film!, ["models"]))
      const server = yield* Effect.acquireRelease(
        Effect.promise(() => Upstream.start(describedProtocol({ name: "film", jobs: film! }))),
        (it) => Effect.promise(() => it.close())
      )
      server.runningPolls = 0
      const account = yield* accountAt(adapter, server.url, server.key)
      const submitted = yield* account.submit(
        order({ image: "artifact:1" }, { media: [picture("#/image")] })
      )
      assert(submitted._tag === "Accepted")
      assert.strictEqual(server.lastSubmit.form.get("size")?.[0]?.text, "1")
      const done = yield* account.poll(submitted.handle)
      assert(done._tag === "Done")
      const [item] = done.result.items
      assert(item?._tag === "Url" && item.needsAuth)
      assert.strictEqual(item.url, `${server.url}/jobs/${String(submitted.handle["id"])}/bytes`)
      const { stream } = Option.getOrThrow(yield* account.download(item))
      assert.isAbove(Buffer.concat(yield* Stream.runCollect(stream)).length, 0)

      const items = [5, 9].map((length) => ({ id: `j${length}`, at: 1_700_000_000, length }))
      const { account: listing } = accountOf({ list: film!.list! }, [{ json: { items } }])
      const found = yield* listing.list!({
        requests: [],
        from: 1_700_000_000_000,
        until: 1_700_000_000_000
      })
      const likenesses = found.map((it) => it.compare(order({ prompt: "p" })))
      assert.deepStrictEqual(likenesses, ["same", "other"])
    }).pipe(Effect.scoped)
  )

  it.effect("reports a finished job as failed if its poll says so", () =>
    Effect.gen(function* () {
      const state = { ...jobs.state!, failure: "$.error" }
      const change = {
        state,
        jobError: { code: ["$.kind"], message: ["$.error"] },
        failures: [{ codes: ["late"], class: "TIMEOUT" }]
      } as const
      const handle = { id: "j", model: "m", submittedAtMillis: 0 }
      const poll = (json: object) =>
        accountOf(change, [
          { json: { state: "ok", files: ["https://a.example/1"], ...json } }
        ]).account.poll(handle)
      assert.strictEqual((yield* poll({ error: null }))._tag, "Done")
      assert.strictEqual((yield* Effect.flip(poll({ error: "no", kind: "late" }))).class, "TIMEOUT")
      assert.strictEqual((yield* Effect.flip(poll({ error: "no" }))).class, "FAILED")
    })
  )

  it.effect(
    "treats a submit that matches a rule for jobs as in doubt, and reads codes from a header",
    () =>
      Effect.gen(function* () {
        const failures = [
          { codes: ["late"], class: "TIMEOUT" },
          { codes: ["busy"], class: "RATE_LIMITED" },
          { status: 503, class: "RETRYABLE" }
        ] as const
        const error = {
          code: ["$.code"],
          codeHeader: "X-Code",
          message: ["$.message"],
          requestIdHeader: "X-Request"
        } as const
        const refused = (status: number, json: object, code: string) =>
          Effect.flip(
            accountOf({ failures, error }, [
              { status, json, headers: { "x-code": code, "x-request": "r1" } }
            ]).account.submit(order({ prompt: "p" }))
          )
        const told = yield* refused(400, { message: "m" }, "busy")
        assert.deepInclude(told, { class: "RATE_LIMITED", requestId: "r1", vendorCode: "busy" })
        assert.strictEqual((yield* refused(503, { message: "m" }, "late")).class, "AMBIGUOUS")
        assert.strictEqual((yield* refused(503, { message: "m" }, "slow")).class, "RETRYABLE")
        assert.strictEqual((yield* refused(504, { message: "m" }, "late")).class, "AMBIGUOUS")
        assert.strictEqual(
          (yield* refused(400, {}, "busy")).class,
          "AMBIGUOUS",
          "not from the vendor"
        )
      })
  )

  it.effect("has conditions that read what was requested", () =>
    Effect.gen(function* () {
      const failures = (["submit", "results", "query"] as const).map((name, index) => ({
        when: `request == "${name}"`,
        class: (["RETRYABLE", "TIMEOUT", "OPERATOR"] as const)[index]!
      }))
      const results = { path: "/jobs/{id}/files", urls: ["$.files[*]"] } as const
      const handle = { id: "j", model: "m", submittedAtMillis: 0 }
      const refused = { status: 503, json: { message: "m" } }
      const account = (...replies: Parameters<typeof accountOf>[1]) =>
        accountOf({ failures, results }, replies).account
      const submit = account(refused).submit(order({ prompt: "p" }))
      assert.strictEqual((yield* Effect.flip(submit)).class, "RETRYABLE")
      assert.strictEqual((yield* Effect.flip(account(refused).poll(handle))).class, "OPERATOR")
      const done = { json: { state: "ok" } }
      assert.strictEqual((yield* Effect.flip(account(done, refused).poll(handle))).class, "TIMEOUT")
    })
  )

  it.effect(
    "treats a refusal without code and message as in doubt, unless its status decides",
    () =>
      Effect.gen(function* () {
        const refused = (status: number, absent: object) =>
          Effect.flip(
            accountOf({ error: { ...jobs.error, ...absent } }, [
              { status, json: { page: "of a proxy" } }
            ]).account.submit(order({ prompt: "p" }))
          )
        for (const [status, kind] of [
          [200, "AMBIGUOUS"],
          [429, "RATE_LIMITED"],
          [502, "AMBIGUOUS"],
          [503, "RETRYABLE"]
        ] as const) {
          assert.strictEqual((yield* refused(status, {})).class, "AMBIGUOUS")
          assert.strictEqual((yield* refused(status, { absent: "status" })).class, kind)
        }
      })
  )

  it.effect("has conditions that read the response", () =>
    Effect.gen(function* () {
      const refused = (json: object) =>
        Effect.flip(accountOf({}, [{ status: 409, json }]).account.submit(order({ prompt: "p" })))
      assert.strictEqual((yield* refused({ message: "m", kind: "busy" })).class, "RETRYABLE")
      assert.strictEqual((yield* refused({ message: "m", kind: "other" })).class, "AMBIGUOUS")
    })
  )

  it.effect("compares the members of nested objects that both sides have", () =>
    Effect.gen(function* () {
      const list = {
        path: "/jobs",
        jobs: "$[*]",
        id: "$.id",
        createdAt: "$.at",
        shows: [{ listed: "$.input", sent: "$.body" }]
      } as const
      const inputs = [
        { prompt: "p", camera: { zoom: 1, lens: "wide" } },
        { prompt: "p", camera: { zoom: 2 } },
        { camera: { zoom: 1 } },
        { prompt: "q", camera: { zoom: 1 } },
        { camera: { title: "p" } }
      ]
      const json = inputs.map((input) => ({ id: "j", at: 1_700_000_000, input }))
      const found = yield* accountOf({ list }, [{ json }]).account.list!({
        requests: [],
        from: 1_700_000_000_000,
        until: 1_700_000_000_000
      })
      const given = order({ prompt: "p", camera: { zoom: 1 } })
      assert.deepStrictEqual(
        found.map((it) => it.compare(given)),
        ["same", "other", "open", "other", "open"]
      )
    })
  )

  it.effect("finds a job in a list of several pages by what the list shows of the request", () =>
    Effect.gen(function* () {
      const list = {
        path: "/jobs",
        jobs: "$.items[*]",
        id: "$.id",
        createdAt: "$.at",
        shows: [{ listed: "$.input.prompt", sent: "$.body.prompt" }],
        next: { at: "$.cursor", parameter: "after" }
      } as const
      const job = (id: string, at: number | string, prompt?: string) => ({
        id,
        at,
        ...(prompt === undefined ? {} : { input: { prompt } })
      })
      const made = accountOf({ list }, [
        {
          json: {
            items: [job("j3", 1_700_000_300, "p"), job("j2", 1_700_000_200, "q")],
            cursor: "c1"
          }
        },
        { json: { items: [job("j1", "2023-11-14T22:15:00Z"), job("j0", 1_600_000_000)] } }
      ])
      const wanted = order({ prompt: "p" })
      const found = yield* made.account.list!({
        requests: [wanted],
        from: 1_700_000_000_000,
        until: 1_700_000_400_000
      })
      assert.deepStrictEqual(
        found.map((it) => [it.jobId, it.compare(wanted)]),
        [
          ["j3", "same"],
          ["j2", "other"],
          ["j1", "open"]
        ]
      )
      assert.strictEqual(made.sent[1]?.url, "https://acme.example/v2/jobs?after=c1")
      assert.deepInclude(found[0]?.handle(wanted), { id: "j3", model: "m" })
    })
  )

  it.effect(
    "sends its callback's address in a submit, and reads callbacks' addresses from the list",
    () =>
      Effect.gen(function* () {
        const callbackUrl = "https://gateway.example/callbacks?token=a&b"
        const list = {
          path: "/jobs",
          jobs: "$.items[*]",
          id: "$.id",
          createdAt: "$.at",
          shows: [{ listed: "$.prompt", sent: "$.body.prompt" }],
          callback: "$.hook"
        } as const
        const submit = { ...jobs.submit, json: { hook: { $: "$.callback" } } }
        const proof = { scheme: "url" } as const
        const made = accountOf({ submit, list, callbacks: { parameter: "hook", proof } }, [
          { json: { id: "j1" } },
          { json: { id: "j2" } },
          { json: { items: [{ id: "j1", at: 1_700_000_000, hook: callbackUrl }] } }
        ])
        yield* made.account.submit({ ...order({ prompt: "p" }), callbackUrl })
        yield* made.account.submit(order({ prompt: "p" }))
        assert.deepStrictEqual(
          made.sent.map(({ body, url }) => [new URL(url).searchParams.get("hook"), body]),
          [
            [callbackUrl, JSON.stringify({ hook: callbackUrl })],
            [null, "{}"]
          ]
        )
        const window = { requests: [], from: 1_700_000_000_000, until: 1_700_000_000_000 }
        const [found] = yield* made.account.list!(window)
        assert.strictEqual(found?.callbackUrl, callbackUrl)
        assert.strictEqual(made.account.callbacks?.keys._tag, "None")
      })
  )

  it.effect("has the limits of its description", () =>
    Effect.gen(function* () {
      const limits = { concurrent: 3, submits: { calls: 60, seconds: 30 } }
      const { account } = accountOf(limits, [{ json: { id: "j" } }])
      assert.deepStrictEqual(account.slotsOf?.("m"), { line: "acme:a", max: 3 })
      const rate = { key: "acme:a/m", calls: 60, perMillis: 30_000 }
      assert.deepStrictEqual(account.rateOf?.("submit", "m"), rate)
      const submitted = yield* account.submit(order({ prompt: "p" }))
      assert(submitted._tag === "Accepted")
      assert.strictEqual(String(submitted.pollAfter), "10000 millis")
    })
  )

  it.effect("fails before anything is sent if its template cannot write the request", () =>
    Effect.gen(function* () {
      const submit = { ...jobs.submit, json: { n: { $cel: "body.missing * 2" } } }
      const made = accountOf({ submit }, [])
      const error = yield* Effect.flip(made.account.submit(order({ prompt: "p" })))
      assert.strictEqual(error.class, "FATAL_CLIENT")
      assert.lengthOf(made.sent, 0)
    })
  )
})
