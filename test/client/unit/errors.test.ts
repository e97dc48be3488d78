import { inspect } from "node:util"
import { assert, describe, it } from "vitest"
import * as Client from "../../../src/client/index.ts"

const apiKey = "sk-secret-of-the-tests"

const clientOf = (fetch: () => Promise<Response>) =>
  new Client.GatewayClient({ baseUrl: "http://gateway.test", apiKey, fetch, maxRetries: 0 })

const failureOf = async (fetch: () => Promise<Response>): Promise<unknown> =>
  clientOf(fetch)
    .wallet.get()
    .then(
      () => assert.fail("It should fail"),
      (error) => error
    )

const refusal =
  (status: number, code: number, more: object = {}) =>
  () =>
    Promise.resolve(
      Response.json(
        { type: "", title: "Title", status, detail: "Why", instance: "/", code, ...more },
        {
          status,
          headers: {
            "content-type": "application/problem+json",
            traceparent: "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01",
            "retry-after": "3"
          }
        }
      )
    )

describe("an error", () => {
  it("has the class of its status and code", async () => {
    for (const [status, code, Expected] of [
      [400, 2001, Client.ValidationError],
      [401, 1001, Client.AuthenticationError],
      [402, 1101, Client.InsufficientCreditsError],
      [403, 1004, Client.PermissionError],
      [404, 2005, Client.NotFoundError],
      [405, 2007, Client.ValidationError],
      [408, 2015, Client.ValidationError],
      [409, 2010, Client.ConflictError],
      [413, 2004, Client.ValidationError],
      [422, 2008, Client.ConflictError],
      [424, 2017, Client.ValidationError],
      [429, 1201, Client.RateLimitError],
      [500, 5000, Client.ServerError],
      [503, 5003, Client.ServerError],
      [302, 0, Client.ServerError]
    ] as const) {
      const error = await failureOf(refusal(status, code))
      assert.isTrue(error instanceof Expected, String(status))
      assert.instanceOf(error, Client.GatewayError)
      const { _tag, name } = error as Client.ClientError
      assert.strictEqual(name, _tag)
      assert.strictEqual(Expected.name, _tag)
    }
  })

  it("has the members of the problem, and its trace", async () => {
    const errors = [{ pointer: "#/prompt", detail: "Expected at least 1 character" }]
    const error = (await failureOf(refusal(400, 2001, { errors }))) as Client.ValidationError
    const { code, detail, faults, message, retryAfter, status, title, traceId } = error
    assert.deepStrictEqual(
      { code, detail, faults, message, retryAfter, status, title, traceId },
      {
        code: 2001,
        detail: "Why",
        faults: errors,
        message: "Title: Why (code 2001, trace 0123456789abcdef0123456789abcdef)",
        retryAfter: 3,
        status: 400,
        title: "Title",
        traceId: "0123456789abcdef0123456789abcdef"
      }
    )
    const limit = await failureOf(refusal(402, 1102, { remaining: "0.50" }))
    assert.strictEqual((limit as Client.InsufficientCreditsError).remaining, "0.50")
  })

  it("has the text and no code if something other than the gateway responded", async () => {
    const page = () => Promise.resolve(new Response("<h1>Bad gateway</h1>", { status: 502 }))
    const { code, detail } = (await failureOf(page)) as Client.ServerError
    assert.isUndefined(code)
    assert.strictEqual(detail, "<h1>Bad gateway</h1>")
    const client = clientOf(() => Promise.resolve(new Response("<h1>Hello</h1>")))
    const failure = await client.tasks
      .create("text-to-image-max", { prompt: "A" })
      .catch((it: unknown) => it)
    assert.instanceOf(failure, Client.ServerError)
    for (const work of [
      () => client.tasks.quote("text-to-image-max", { prompt: "A" }),
      () => client.tasks.list().page()
    ]) {
      assert.instanceOf(await work().catch((it: unknown) => it), Client.ServerError)
    }
  })
})

describe("the API key", () => {
  it("appears in no error and no printed object", async () => {
    const broken = () =>
      Promise.reject(new TypeError("fetch failed", { cause: new Error("connect ECONNREFUSED") }))
    for (const fetch of [broken, refusal(401, 1002), refusal(500, 5000)]) {
      const error = await failureOf(fetch)
      assert.notInclude(inspect(error, { depth: 9 }), apiKey)
      assert.notInclude(JSON.stringify(error), apiKey)
    }
    const client = clientOf(broken)
    for (const shown of [client, client.with({ timeout: 1 }), client.tasks]) {
      assert.notInclude(inspect(shown, { depth: 9, showHidden: true }), apiKey)
      assert.notInclude(JSON.stringify(shown), apiKey)
    }
    assert.include(String(await failureOf(broken)), "connect ECONNREFUSED")
  })

  it("is refused without being quoted if a header cannot contain it", () => {
    for (const wrong of ["", `${apiKey}\n`, `${apiKey}\u2026`, ` ${apiKey}`]) {
      const made = () => new Client.GatewayClient({ baseUrl: "http://gateway.test", apiKey: wrong })
      assert.throws(made, TypeError, /^(?!.*sk-secret)/u)
    }
  })

  it("is sent only to the address of the gateway, below its path", async () => {
    const asked: Array<string> = []
    const client = new Client.GatewayClient({
      baseUrl: "https://gateway.test/ai/",
      apiKey,
      fetch: async (url, { redirect }) => {
        asked.push(`${redirect} ${url}`)
        return Response.json({})
      }
    })
    await client.request("GET /manage/v1/tasks/{id}", { path: { id: "../../x?y" } })
    assert.deepStrictEqual(asked, [
      "manual https://gateway.test/ai/manage/v1/tasks/..%2F..%2Fx%3Fy"
    ])
    for (const baseUrl of ["ftp://a", "https://user:word@a", "https://a?b", "https://a#b", "a"]) {
      assert.throws(() => new Client.GatewayClient({ baseUrl, apiKey }), TypeError)
    }
  })
})

describe("an invalid model name", () => {
  it("is refused before anything is sent", async () => {
    const client = clientOf(() => assert.fail("It is sent"))
    for (const model of ["a", "/", "a/", "/b", "a/b/c", "a/b/edit/d", "toString"]) {
      const failure = await client.tasks.create(model as "a/b", {}).catch((error: unknown) => error)
      assert.instanceOf(failure, TypeError, model)
    }
  })
})
