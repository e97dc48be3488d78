import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { makeVersion } from "../../../src/catalog/CatalogContent.ts"
import { builtIn, readFile } from "../../../src/catalog/CatalogSource.ts"
import { shippedVendors } from "../../../src/catalog/ShippedVendors.ts"
import { usageOf } from "../../../src/catalog/Usage.ts"
import { variableOf } from "../../../src/domain/Provider.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"

const acme = {
  name: "acme",
  base: "https://api.acme.example/v1",
  auth: "bearer",
  dialect: "openai",
  routes: ["/v1/chat/completions", "/v1/models"],
  models: [
    {
      model: "acme-chat",
      price: { per: "million_tokens", input: "1.00", output: "2.00" },
      inputTokensMax: 1000,
      outputTokensMax: 100
    }
  ]
}

const read = (file: unknown) =>
  Effect.suspend(() => {
    const path = join(temporaryFolder("vendors"), "catalog.json")
    writeFileSync(path, JSON.stringify(file))
    return Effect.result(readFile(path))
  }).pipe(Effect.provide(NodeServices.layer))

const versionWith = (file: unknown) =>
  Effect.map(read(file), (content) => makeVersion(Result.getOrThrow(content), null))

const faultsOf = (file: unknown) =>
  Effect.map(read(file), (content) =>
    Result.isFailure(content) ? content.failure.errors.map(({ pointer }) => pointer) : []
  )

const withAcme = (change: object) => ({ vendors: [{ ...acme, ...change }] })

describe("a model of a kind", () => {
  const amount = { amount: "1.00" }
  const row = (change: object) => ({
    vendor: "openai",
    model: "speaker",
    kind: "speech",
    price: { per: "million_characters", ...amount },
    inputTokensMax: 10,
    outputTokensMax: 0,
    ...change
  })

  it.effect("is priced by a unit of its calls", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* faultsOf({ tokenModels: [row({})] }), [])
      const other = row({ price: { per: "minute", ...amount } })
      const later = row({
        laterPrices: [{ from: "2027-01-01", price: { per: "search", ...amount } }]
      })
      const text = row({ kind: undefined })
      assert.deepStrictEqual(yield* faultsOf({ tokenModels: [other] }), [
        "#/tokenModels/0/price/per"
      ])
      assert.deepStrictEqual(yield* faultsOf({ tokenModels: [later] }), [
        "#/tokenModels/0/laterPrices/0/price/per"
      ])
      assert.deepStrictEqual(yield* faultsOf({ tokenModels: [text] }), [
        "#/tokenModels/0/price/per"
      ])
      const { vendor: _vendor, ...model } = other
      assert.deepStrictEqual(yield* faultsOf(withAcme({ models: [model] })), [
        "#/vendors/0/models/0/price/per"
      ])
    })
  )

  it.effect("keeps the kind of the built-in model whose price it changes", () =>
    Effect.gen(function* () {
      const { upstream } = yield* versionWith({
        tokenModels: [{ ...row({ model: "tts-1" }), kind: undefined }]
      })
      assert.strictEqual(upstream.priced("openai", "tts-1")?.kind, "speech")
    })
  )
})

describe("a vendor of a catalog file", () => {
  it.effect("opens its routes, sells its models and says how it is called", () =>
    Effect.gen(function* () {
      const { content, upstream } = yield* versionWith({ vendors: [acme] })
      const match = upstream.match("acme", "POST", "/v1/chat/completions")
      assert.strictEqual(match._tag, "Open")
      assert.strictEqual(upstream.match("acme", "POST", "/v1/embeddings")._tag, "Closed")
      assert.strictEqual(upstream.priced("acme", "acme-chat")?.outputTokensMax, 100)
      assert.deepStrictEqual(
        content.providers.find(({ name }) => name === "acme"),
        {
          name: "acme",
          base: "https://api.acme.example/v1",
          auth: "bearer",
          dialect: "openai",
          guarded: true
        }
      )
    })
  )

  it.effect("may speak each dialect, at its own version of the API", () =>
    Effect.gen(function* () {
      const { upstream } = yield* versionWith({
        vendors: [
          { ...acme, routes: ["/v4/chat/completions"] },
          { ...acme, name: "bolt", dialect: "anthropic", routes: ["/v1/messages"] },
          {
            ...acme,
            name: "coral",
            dialect: "gemini",
            routes: ["/v1beta/models/{model}:generateContent"]
          }
        ]
      })
      const protocolAt = (vendor: string, path: string) => {
        const match = upstream.match(vendor, "POST", path)
        return match._tag === "Open" && match.route.meter.per === "tokens"
          ? match.route.meter.protocol
          : undefined
      }
      assert.strictEqual(protocolAt("acme", "/v4/chat/completions"), "openai-chat")
      assert.strictEqual(protocolAt("bolt", "/v1/messages"), "anthropic-messages")
      const gemini = "/v1beta/models/acme-chat:generateContent"
      assert.strictEqual(protocolAt("coral", gemini), "gemini-generate")
    })
  )

  it.effect("replaces the shipped one of its name, with its models", () =>
    Effect.gen(function* () {
      const { upstream } = yield* versionWith(withAcme({ name: "deepseek" }))
      assert.isDefined(upstream.priced("deepseek", "acme-chat"))
      assert.isUndefined(upstream.priced("deepseek", "deepseek-chat"))
      assert.strictEqual(upstream.provider("deepseek")?.base, acme.base)
    })
  )

  for (const [what, change, pointer] of [
    [
      "a model without a price",
      { models: [{ ...acme.models[0], price: undefined }] },
      "/models/0/price"
    ],
    ["a model twice", { models: [acme.models[0], acme.models[0]] }, "/models"],
    [
      "a negative price",
      {
        models: [{ ...acme.models[0], price: { per: "million_tokens", input: "-1", output: "1" } }]
      },
      "/models/0/price/input"
    ],
    [
      "days out of order",
      { models: [{ ...acme.models[0], validFrom: "2027-01-01", validUntil: "2026-01-01" }] },
      "/models/0/validUntil"
    ],
    ["an unknown scheme", { auth: "basic" }, "/auth"],
    ["an unknown dialect", { dialect: "cohere" }, "/dialect"],
    ["a route that its dialect does not have", { routes: ["/v1/messages"] }, "/routes/0"],
    ["no route", { routes: [] }, "/routes"],
    ["an unknown member", { headers: {} }, "/headers"],
    ["an unknown difference", { usage: { streams: "never" } }, "/usage/streams"],
    ["the name of a built-in provider", { name: "gemini" }, "/name"],
    ["the name of a built-in vendor", { name: "google" }, "/name"],
    ["the name of the variable of the command", { name: "gateway" }, "/name"],
    ["a name that is no prefix of a variable", { name: "Acme_1" }, "/name"]
  ] as const) {
    it.effect(`with ${what} is a fault at its place`, () =>
      Effect.map(faultsOf(withAcme(change)), (pointers) =>
        assert.deepStrictEqual(pointers, [`#/vendors/0${pointer}`])
      )
    )
  }

  for (const base of [
    "http://api.acme.example/v1",
    "https://127.0.0.1/v1",
    "https://[::1]/v1",
    "https://169.254.169.254",
    "https://localhost/v1",
    "https://metadata.google.internal/v1",
    "https://api.acme.example:8443/v1",
    "https://key@api.acme.example/v1",
    "https://api.acme.example/v1?key=1"
  ]) {
    it.effect(`may not name ${base} as its base, because only the operator's variables may`, () =>
      Effect.map(faultsOf(withAcme({ base })), (pointers) =>
        assert.deepStrictEqual(pointers, ["#/vendors/0/base"])
      )
    )
  }

  it.effect("has a unique name", () =>
    Effect.map(faultsOf({ vendors: [acme, acme] }), (pointers) =>
      assert.deepStrictEqual(pointers, ["#/vendors/1/name"])
    )
  )

  it.effect("is the only way to a provider that is not built in", () =>
    Effect.gen(function* () {
      const route = {
        vendor: "acme",
        provider: "acme",
        method: "POST",
        path: "/v1/rerank",
        meter: { per: "call", amount: "1.00" }
      }
      assert.deepStrictEqual(yield* faultsOf({ routes: [route] }), ["#/routes/0/provider"])
      assert.deepStrictEqual(yield* faultsOf({ vendors: [acme], routes: [route] }), [])
    })
  )
})

describe("the shipped vendors", () => {
  it("are exactly these", () => {
    assert.sameMembers(
      shippedVendors.map(({ name }) => name),
      [
        "deepseek",
        "xai",
        "mistral",
        "groq",
        "together",
        "fireworks",
        "openrouter",
        "moonshot",
        "zhipu",
        "cohere",
        "jina",
        "azure-openai",
        "vllm",
        "ollama",
        "llama-cpp"
      ]
    )
  })

  it("each have a unique variable, which is not one of the gateway's", () => {
    const variables = builtIn.content.providers.map(({ name }) => `${variableOf(name)}_API_KEY`)
    assert.strictEqual(new Set(variables).size, variables.length)
    for (const variable of variables) assert.match(variable, /^[A-Z][A-Z0-9_]*_API_KEY$/u)
  })

  it("have a source for every price", () => {
    for (const { models = [] } of shippedVendors) {
      for (const { source } of models) assert.match(source ?? "", /\d{4}-\d{2}-\d{2}$/u)
    }
  })

  it.effect("are accepted as entries of a catalog file", () =>
    Effect.gen(function* () {
      const { models: _models, ...entry } = shippedVendors.find(({ name }) => name === "zhipu")!
      const { upstream } = yield* versionWith({ vendors: [entry] })
      assert.strictEqual(upstream.match("zhipu", "POST", "/v4/embeddings")._tag, "Open")
    })
  )
})

describe("the usage figures of a vendor that differs", () => {
  const usage = {
    prompt_tokens: 100,
    completion_tokens: 20,
    prompt_cache_hit_tokens: 60,
    completion_tokens_details: { reasoning_tokens: 30 }
  }

  it("report their cached tokens in a separate member", () => {
    const figures = usageOf("openai-chat", { usage }, { cachedTokens: "prompt_cache_hit_tokens" })
    assert.strictEqual(figures?.cachedInputTokens, 60)
    assert.strictEqual(usageOf("openai-chat", { usage })?.cachedInputTokens, 0)
  })

  it("may have reasoning tokens beside the output tokens", () => {
    const figures = usageOf("openai-chat", { usage }, { reasoningTokens: "beside" })
    assert.strictEqual(figures?.outputTokens, 50)
    assert.strictEqual(figures?.reasoningTokens, 30)
  })
})

describe("the path of a call", () => {
  const { upstream } = makeVersion(builtIn, null)
  const matched = (vendor: string, path: string) => {
    const found = upstream.match(vendor, "POST", path)
    return found._tag === "Open" ? found.path : found._tag
  }

  it("may begin with what the vendor's base has before its version", () => {
    assert.strictEqual(matched("groq", "/openai/v1/chat/completions"), "/v1/chat/completions")
    assert.strictEqual(matched("groq", "/v1/chat/completions"), "/v1/chat/completions")
    assert.strictEqual(matched("zhipu", "/api/paas/v4/chat/completions"), "/v4/chat/completions")
  })

  it("may not begin with anything else", () => {
    for (const path of [
      "/openai/v1/openai/v1/x",
      "/openai/openai/v1/chat/completions",
      "/openaiv1"
    ]) {
      assert.strictEqual(matched("groq", path), "Closed")
    }
    assert.strictEqual(matched("deepseek", "/openai/v1/chat/completions"), "Closed")
  })
})
