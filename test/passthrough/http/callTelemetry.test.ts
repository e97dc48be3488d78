import { Tracer } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { mockOpenAi, openAiScript } from "../../support/mockOpenAi.ts"
import { json, upstreamOfTests } from "../../support/mockVendors.ts"
import { gatewayOfTests } from "../../support/passthroughGateway.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"

/** Spans and metrics with OpenTelemetry's names. docs/reference/configuration.md#telemetry */
const spans: Array<Tracer.NativeSpan> = []

const tracer = Tracer.make({
  span: (options) => {
    const span = new Tracer.NativeSpan(options)
    spans.push(span)
    return span
  }
})
const upstream = await upstreamOfTests(mockOpenAi())
const file = join(temporaryFolder("telemetry"), "catalog.json")
const route = {
  vendor: "openai",
  provider: "openai",
  method: "POST",
  path: "/v1/engines/{model}/run"
}
writeFileSync(
  file,
  JSON.stringify({ routes: [{ ...route, meter: { per: "call", amount: "1.00" } }] })
)
const gateway = await gatewayOfTests(
  {
    CATALOG_FILE: file,
    OPENAI_API_KEY: "sk-vendor",
    OPENAI_BASE_URL: upstream.origin,
    GEMINI_API_KEY: "key-vendor",
    GEMINI_BASE_URL: upstream.origin,
    ...Object.fromEntries(
      ["MISTRAL", "MOONSHOT", "XAI", "DEEPSEEK"].flatMap((vendor) => [
        [`${vendor}_API_KEY`, "sk-vendor"],
        [`${vendor}_BASE_URL`, `${upstream.origin}/v1`]
      ])
    )
  },
  1000n,
  tracer
)
/** Metrics belong to the process, in which other tests also run. */
const figures = async () => {
  const text = await gateway.metrics()
  const valueOf = (series: RegExp) => Number(series.exec(text)?.[1] ?? 0)
  return {
    tokens: valueOf(
      /^gen_ai_client_token_usage_count\{(?=[^}]*gen_ai_request_model="gpt-4o")[^}]*gen_ai_token_type="input"[^}]*\} (\d+)$/mu
    ),
    errors: valueOf(
      /^gen_ai_client_operation_duration_count\{(?=[^}]*gen_ai_request_model="gpt-4o")[^}]*error_type="400"[^}]*\} (\d+)$/mu
    )
  }
}

const before = await figures()

const secret = "a prompt that nobody else may read"
const chat = { model: "gpt-4o", max_tokens: 50, messages: [{ role: "user", content: secret }] }

/** The span of the newest call, once it has ended. */
const spanOf = async (body: object, path = "/v1/chat/completions") => {
  await (await gateway.post(path, body)).text()
  await gateway.settled()
  const span = spans.findLast(({ attributes }) => attributes.has("gen_ai.operation.name"))
  assert(span !== undefined && span.status._tag === "Ended")
  return { span, exit: span.status.exit._tag }
}

describe("the span of a call", () => {
  it("names operation, provider and model, and has the tokens that the vendor reports", async () => {
    const { exit, span } = await spanOf(chat)
    const [call] = await gateway.calls()
    const values = Object.fromEntries(span.attributes)
    assert.equal(exit, "Success")
    assert.equal(span.name, "chat gpt-4o")
    assert.equal(span.kind, "client")
    assert.isFalse(span.attributes.has("gen_ai.request.stream"))
    assert.equal(values["gen_ai.operation.name"], "chat")
    assert.equal(values["gen_ai.provider.name"], "openai")
    assert.equal(values["gen_ai.request.model"], "gpt-4o")
    assert.equal(values["gen_ai.usage.input_tokens"], call?.usage?.["inputTokens"])
    assert.equal(values["gen_ai.usage.output_tokens"], call?.usage?.["outputTokens"])
  })

  it("ends with its stream, and has the time to the first chunk", async () => {
    const { span } = await spanOf({ ...chat, stream: true })
    assert.isTrue(span.attributes.get("gen_ai.request.stream"))
    assert.isNumber(span.attributes.get("gen_ai.response.time_to_first_chunk"))
    assert.isNumber(span.attributes.get("gen_ai.usage.output_tokens"))
  })

  it.each([
    ["mistral/mistral-large-latest", "mistral_ai"],
    ["moonshot/kimi-k2.6", "moonshot_ai"],
    ["xai/grok-4.3", "x_ai"],
    ["deepseek/deepseek-chat", "deepseek"]
  ])("%s is a model of %s", async (model, provider) => {
    const { span } = await spanOf({ ...chat, model })
    assert.equal(span.attributes.get("gen_ai.provider.name"), provider)
  })

  it("names gcp.gemini as the provider of Google's models", async () => {
    const path = "/vendors/google/v1beta/models/gemini-2.5-flash:generateContent"
    const { span } = await spanOf({ contents: [] }, path)
    assert.equal(span.attributes.get("gen_ai.provider.name"), "gcp.gemini")
    assert.equal(span.attributes.get("gen_ai.operation.name"), "generate_content")
  })

  it("has the model in the path of a route charged by the call only if the catalog knows it", async () => {
    const known = await spanOf({}, "/vendors/openai/v1/engines/gpt-4o/run")
    assert.equal(known.span.attributes.get("gen_ai.request.model"), "gpt-4o")
    const unknown = await spanOf({}, "/vendors/openai/v1/engines/any-name/run")
    assert.equal(unknown.span.name, "call")
    assert.equal(unknown.span.attributes.get("gen_ai.request.model"), "")
  })

  it("has the vendor's refusal as its error", async () => {
    upstream.script = (_, response) => json(response, 400, { error: { message: "no" } })
    const { exit, span } = await spanOf(chat)
    upstream.script = openAiScript
    assert.equal(exit, "Failure")
    assert.equal(span.attributes.get("error.type"), "400")
  })

  it("metrics count calls and tokens by model", async () => {
    await gateway.settled()
    const after = await figures()
    assert.equal(after.tokens - before.tokens, 2)
    assert.equal(after.errors - before.errors, 1)
  })

  it("nothing of the prompt is in any span", () => {
    const text = JSON.stringify(spans.map(({ attributes, name }) => [name, [...attributes]]))
    assert.notInclude(text, secret)
    assert.include(text, "gen_ai.operation.name")
  })
})
