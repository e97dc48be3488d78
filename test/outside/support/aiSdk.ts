import * as anthropic7 from "@ai-sdk/anthropic"
import * as anthropic6 from "@ai-sdk/anthropic-6"
import * as google7 from "@ai-sdk/google"
import * as google6 from "@ai-sdk/google-6"
import * as openai7 from "@ai-sdk/openai"
import * as openai6 from "@ai-sdk/openai-6"
import * as ai7 from "ai"
import * as ai6 from "ai-6"
import type { World } from "./worlds.ts"

type Ai = typeof ai7
type Model = Parameters<Ai["generateText"]>[0]["model"]

/** One version of the AI SDK with the providers of its time. */
export interface AiSdk {
  readonly version: 6 | 7
  readonly ai: Ai
  readonly openai: (world: World, base: string) => ReturnType<(typeof openai7)["createOpenAI"]>
  readonly anthropic: (world: World) => ReturnType<(typeof anthropic7)["createAnthropic"]>
  readonly google: (world: World) => ReturnType<(typeof google7)["createGoogle"]>
}

const settings = ({ key, url }: World, base: string) => ({ apiKey: key, baseURL: `${url}${base}` })

/** Typed as version 7, because both versions agree in what the tests call. */
const sixth = {
  version: 6,
  ai: ai6,
  openai: (world: World, base: string) => openai6.createOpenAI(settings(world, base)),
  anthropic: (world: World) => anthropic6.createAnthropic(settings(world, "/vendors/anthropic/v1")),
  google: (world: World) =>
    google6.createGoogleGenerativeAI(settings(world, "/vendors/google/v1beta"))
} as unknown as AiSdk

const seventh: AiSdk = {
  version: 7,
  ai: ai7,
  openai: (world, base) => openai7.createOpenAI(settings(world, base)),
  anthropic: (world) => anthropic7.createAnthropic(settings(world, "/vendors/anthropic/v1")),
  google: (world) => google7.createGoogle(settings(world, "/vendors/google/v1beta"))
}

export const aiSdks = [sixth, seventh]

export interface Subject {
  readonly name: string
  readonly model: (sdk: AiSdk, world: World) => Model
}

/** A language model of each provider. */
export const subjects: ReadonlyArray<Subject> = [
  {
    name: "@ai-sdk/openai, chat",
    model: ({ openai }, world) => openai(world, "/v1").chat("gpt-4o")
  },
  {
    name: "@ai-sdk/openai, responses",
    model: ({ openai }, world) => openai(world, "/vendors/openai/v1").responses("gpt-4o")
  },
  {
    name: "@ai-sdk/anthropic",
    model: ({ anthropic }, world) => anthropic(world)("claude-sonnet-4-5")
  },
  { name: "@ai-sdk/google", model: ({ google }, world) => google(world)("gemini-2.5-flash") }
]
