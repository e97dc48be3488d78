import { createOpenAICompatible } from "@ai-sdk/openai-compatible"
import type {
  EmbeddingModelV4,
  Experimental_VideoModelV4 as VideoModelV4,
  ImageModelV4,
  LanguageModelV4,
  SpeechModelV4,
  TranscriptionModelV4
} from "@ai-sdk/provider"
import { makeSpeechModel, makeTranscriptionModel } from "./AudioModels.ts"
import { connect } from "./Connection.ts"
import type { Settings } from "./Connection.ts"
import { makeImageModel } from "./ImageModel.ts"
import { optionsKey } from "./Options.ts"
import type { ImageModelId, VideoModelId } from "./Options.ts"
import { makeVideoModel } from "./VideoModel.ts"

export type { Settings as GenerationGatewaySettings } from "./Connection.ts"
export type { ImageModelId, ModelOptions, VideoModelId } from "./Options.ts"

/** A gateway as a provider of the AI SDK. */
export interface GenerationGateway {
  (modelId: string): LanguageModelV4
  readonly specificationVersion: "v4"
  /** A model at `/v1/chat/completions`, such as `gpt-5` or `deepseek/deepseek-chat`. */
  languageModel(modelId: string): LanguageModelV4
  embeddingModel(modelId: string): EmbeddingModelV4
  /** A model or alias of the catalog that generates or edits images. */
  imageModel(modelId: ImageModelId): ImageModelV4
  /** A model or alias of the catalog that generates videos. */
  videoModel(modelId: VideoModelId): VideoModelV4
  /** A model at `/v1/audio/speech`, such as `tts-1` or `gpt-4o-mini-tts`. */
  speechModel(modelId: string): SpeechModelV4
  /** A model at `/v1/audio/transcriptions`, such as `whisper-1` or `gpt-4o-transcribe`. */
  transcriptionModel(modelId: string): TranscriptionModelV4
}

/**
 * Creates an AI SDK provider for a gateway: `generateText({ model: gateway("gpt-5"), … })`. The key is read when the
 * first model is created. docs/ai-sdk.md
 */
export const createGenerationGateway = (settings: Settings = {}): GenerationGateway => {
  let made: ReturnType<typeof modelsOf> | undefined
  const models = () => (made ??= modelsOf(settings))
  const languageModel = (modelId: string) => models().language(modelId)
  return Object.assign((modelId: string) => languageModel(modelId), {
    specificationVersion: "v4" as const,
    languageModel,
    embeddingModel: (modelId: string) => models().embedding(modelId),
    imageModel: (modelId: string) => makeImageModel(models().connection, modelId),
    videoModel: (modelId: string) => makeVideoModel(models().connection, modelId),
    speechModel: (modelId: string) => makeSpeechModel(models().connection, modelId),
    transcriptionModel: (modelId: string) => makeTranscriptionModel(models().connection, modelId)
  })
}

/** The gateway at `GATEWAY_URL`, with `GATEWAY_API_KEY`. */
export const generationGateway = createGenerationGateway()

const modelsOf = (settings: Settings) => {
  const connection = connect(settings)
  const { apiKey, baseURL, fetch } = connection
  const openai = createOpenAICompatible({
    name: optionsKey,
    baseURL: `${baseURL}/v1`,
    apiKey,
    fetch,
    includeUsage: true,
    supportsStructuredOutputs: true
  })
  return {
    connection,
    language: (modelId: string) => openai.chatModel(modelId),
    embedding: (modelId: string) => openai.embeddingModel(modelId)
  }
}
