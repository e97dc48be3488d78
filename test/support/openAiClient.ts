import { Effect } from "effect"
import OpenAI, { APIError } from "openai"
import { fails } from "./fails.ts"
import { Running, strangersKey } from "./running.ts"

/** OpenAI's client without retries, with the running gateway's key or another one. */
export const openAiAt = (base = "/v1", apiKey?: string) =>
  Effect.map(
    Running,
    ({ key, url }) => new OpenAI({ apiKey: apiKey ?? key, baseURL: `${url}${base}`, maxRetries: 0 })
  )

export const strangersOpenAi = Effect.flatMap(strangersKey, (key) => openAiAt("/v1", key))

/** The API's error with which a request of the client fails. */
export const refusal = (request: () => Promise<unknown>) =>
  Effect.promise(async () => {
    const error = await fails(request())
    if (!(error instanceof APIError)) throw error
    return { status: error.status, code: error.code, message: error.message }
  })
