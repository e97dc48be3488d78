import type { JSONObject } from "@ai-sdk/provider"
import type { ModelInputs } from "../client/schema.ts"

/** The key in `providerOptions`: `{ generationGateway: … }`. */
export const optionsKey = "generationGateway"

type Videos = Extract<keyof ModelInputs, `${string}video${string}`>

/** An image model of the built-in catalog, or any other by its name in the catalog. */
export type ImageModelId = Exclude<keyof ModelInputs, Videos> | (string & {})

/** A video model of the built-in catalog, or any other by its name in the catalog. */
export type VideoModelId = Videos | (string & {})

/** The model's fields for `providerOptions.generationGateway`, in addition to those that the AI SDK names itself. */
export type ModelOptions<Model extends keyof ModelInputs> = Partial<
  Omit<ModelInputs[Model], "prompt">
>

/** Options that are not fields of the model. */
interface Own {
  /** Calls with the same key buy only once within 24 hours. */
  readonly idempotencyKey: string | undefined
  /** Credits, such as `7.50`. A call that costs more is refused. */
  readonly maxCost: string | undefined
}

const textOf = (value: unknown): string | undefined =>
  typeof value === "string" ? value : undefined

/** Splits the gateway's options of a call into its own and the model's fields. */
export const optionsOf = (
  given: Readonly<Record<string, JSONObject>> | undefined
): Own & { readonly fields: JSONObject } => {
  const { idempotencyKey, maxCost, ...fields } = given?.[optionsKey] ?? {}
  return { idempotencyKey: textOf(idempotencyKey), maxCost: textOf(maxCost), fields }
}

/** A file of a call in the form that the gateway accepts: a URL or Base64. */
export const mediumOf = (
  file:
    | { readonly type: "url"; readonly url: string }
    | { readonly type: "file"; readonly data: string | Uint8Array }
): string | Uint8Array => (file.type === "url" ? file.url : file.data)
