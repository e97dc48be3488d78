import type { JSONObject } from "@ai-sdk/provider"
import type { ModelInputs } from "../client/schema.ts"

/** Of `providerOptions`: `{ generationGateway: … }`. */
export const optionsKey = "generationGateway"

type Videos = Extract<keyof ModelInputs, `${string}video${string}`>

/** A model of images of the built-in catalog, or any other by its name in the catalog. */
export type ImageModelId = Exclude<keyof ModelInputs, Videos> | (string & {})

/** A model of videos of the built-in catalog, or any other by its name in the catalog. */
export type VideoModelId = Videos | (string & {})

/** The fields of a model for `providerOptions.generationGateway`, beside what the AI SDK names itself. */
export type ModelOptions<Model extends keyof ModelInputs> = Partial<
  Omit<ModelInputs[Model], "prompt">
>

/** What is no field of the model. */
interface Own {
  /** The same call with it buys once within 24 hours. */
  readonly idempotencyKey: string | undefined
  /** Credits, such as `7.50`: a dearer call is refused. */
  readonly maxCost: string | undefined
}

const textOf = (value: unknown): string | undefined =>
  typeof value === "string" ? value : undefined

/** The gateway's options of a call: its own, and fields of the model. */
export const optionsOf = (
  given: Readonly<Record<string, JSONObject>> | undefined
): Own & { readonly fields: JSONObject } => {
  const { idempotencyKey, maxCost, ...fields } = given?.[optionsKey] ?? {}
  return { idempotencyKey: textOf(idempotencyKey), maxCost: textOf(maxCost), fields }
}

/** A file of a call as the gateway takes media: a URL, or Base64. */
export const mediumOf = (
  file:
    | { readonly type: "url"; readonly url: string }
    | { readonly type: "file"; readonly data: string | Uint8Array }
): string | Uint8Array => (file.type === "url" ? file.url : file.data)
