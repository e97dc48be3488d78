import { Effect } from "effect"
import { makeUpstreamCatalog } from "../../catalog/UpstreamCatalog.ts"
import type { Answer } from "../../sandbox/Completion.ts"
import { makeSimulator } from "../../sandbox/UpstreamSimulator.ts"
import type { UpstreamRequest, UpstreamResponse } from "../../vendors/upstream/UpstreamExchange.ts"
import type { VendorRequest } from "./VendorRequest.ts"
import type { VendorName } from "./VendorServer.ts"

/** The response of a language model to a request: a text or a tool call. `undefined`: the simulator's response. */
export type AnswerOf = (request: VendorRequest) => Answer | undefined

/** The paths of language models and of the list of models. docs/reference/vendors.md#openai-calls */
const callPaths: { readonly [provider in VendorName]?: RegExp } = {
  openai:
    /^\/v1\/(?:chat\/completions|responses(?:\/input_tokens)?|embeddings|moderations|models(?:\/.+)?)$/u,
  anthropic: /^\/v1\/(?:messages(?:\/count_tokens)?|models(?:\/.+)?)$/u,
  gemini:
    /^\/v1(?:beta)?\/models(?:\/[^/:]+(?::(?:generateContent|streamGenerateContent|countTokens|embedContent|batchEmbedContents))?)?$/u
}

const pathsOf = new Map<string, RegExp>(Object.entries(callPaths))

export const isCall = (provider: string, { method, path }: VendorRequest): boolean =>
  (method === "POST" || (method === "GET" && path.includes("/models"))) &&
  pathsOf.get(provider)?.test(path) === true

/** Whether the call is charged. Lists of models and token counts are free. */
export const isPaidCall = (provider: string, request: VendorRequest): boolean =>
  isCall(provider, request) &&
  request.method === "POST" &&
  !/(?:count_?|input_)tokens$/iu.test(request.path)

const catalog = makeUpstreamCatalog()

/** Responds to a call in the vendor's format, complete or as a stream. */
export const answerCall = (
  provider: string,
  received: VendorRequest,
  model: string,
  answerOf?: AnswerOf
): Promise<UpstreamResponse> => {
  const { bytes, method, path, query } = received
  const simulate = makeSimulator(
    () => catalog,
    () => answerOf?.(received)
  )
  const request: UpstreamRequest = {
    method: method === "GET" ? "GET" : "POST",
    path,
    query: query.size === 0 ? "" : `?${query.toString()}`,
    headers: [],
    body: bytes,
    model,
    user: "",
    key: "",
    route: {
      vendor: provider,
      provider: "openai",
      method: "POST",
      path: "/",
      meter: { per: "nothing" }
    },
    watch: undefined
  }
  return Effect.runPromise(simulate(provider, request))
}
