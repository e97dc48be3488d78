import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Console, Effect, Layer } from "effect"
import * as FirstStart from "../../../src/cli/FirstStart.ts"
import { layerGateway } from "../../support/gateway.ts"

const bannerWith = (env: Record<string, string>) =>
  Effect.gen(function* () {
    const lines: Array<string> = []
    yield* Effect.scoped(Layer.build(FirstStart.layer)).pipe(
      Effect.provideService(Console.Console, {
        ...globalThis.console,
        log: (line: string) => lines.push(line)
      })
    )
    return lines.join("\n")
  }).pipe(
    Effect.provide(Layer.merge(layerGateway({ env, areVendorsLive: true }), NodeServices.layer))
  )

/** Too long to be part of the printed key by chance. */
const key = "sk-of-the-account-with-the-vendor"

describe("the banner of a start", () => {
  it.effect("lists every vendor as sandbox if there are no vendor keys", () =>
    Effect.gen(function* () {
      const text = yield* bannerWith({})
      assert.match(text, /^Live vendors: none$/mu)
      assert.match(
        text,
        /^Sandbox: alibaba, anthropic, azure-openai, cohere, deepseek, fireworks, google, groq, jina, llama-cpp, mistral, moonshot, ollama, openai, openrouter, service, together, vllm, xai, zhipu$/mu
      )
      assert.match(text, /alibaba is in the sandbox/u)
    })
  )

  it.effect("lists vendors with a key as live, and the others as sandbox", () =>
    Effect.gen(function* () {
      const text = yield* bannerWith({ OPENAI_API_KEY: key, DASHSCOPE_API_KEY: key })
      assert.match(text, /^Live vendors: alibaba, openai, service$/mu)
      assert.match(text, /^Sandbox: anthropic, azure-openai, cohere, .*google, groq, .*zhipu$/mu)
      assert.notMatch(text, /no vendor key/u)
      assert.match(text, /alibaba is live, so the call costs money/u)
      assert.notInclude(text, key)
    })
  )
})
