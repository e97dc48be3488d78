import { Duration, Effect } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { pixel } from "../../src/vendors/mock/Pixel.ts"
import type { SubmitRequest, VendorAccount } from "../../src/vendors/VendorClient.ts"
import { VendorError } from "../../src/vendors/VendorError.ts"
import type { VendorErrorClass } from "../../src/vendors/VendorError.ts"
import { temporaryFolder } from "./temporaryFolder.ts"

export const catalogFile = (content: object): string => {
  const file = join(temporaryFolder("aliases"), "catalog.json")
  writeFileSync(file, JSON.stringify(content))
  return file
}

/** A chat model of the vendor `tried`, whose route is served by this provider. */
export const triedOn = (provider: string) => ({
  tokenModels: [
    {
      vendor: "tried",
      model: "chat-1",
      price: { per: "million_tokens", input: "1.00", output: "1.00" },
      inputTokensMax: 100_000,
      outputTokensMax: 1000
    }
  ],
  routes: [
    {
      vendor: "tried",
      provider,
      method: "POST",
      path: "/v1/chat/completions",
      meter: { per: "tokens", protocol: "openai-chat" }
    }
  ]
})

const flux = (model: string, amount: string) => ({
  label: "text-to-image-max",
  vendor: "fal",
  model,
  adapter: "fal-queue",
  upstreamModel: model,
  price: { per: "image", amount },
  input: { fields: { size: "image_size" } }
})

/** Three models with the same body, at 7.50, 3.00 and 12.00 credits. `flux` does not support a seed. */
export const aliasCatalog = {
  change: { "text-to-image-max": { upstreamModel: "max" } },
  add: [flux("flux", "3.00"), { ...flux("pro", "12.00"), input: { fields: { seed: "seed" } } }],
  aliases: [
    {
      alias: "fast-image",
      vendor: "alibaba",
      to: [{ model: "alibaba/text-to-image-max" }, { model: "fal/flux" }, { model: "fal/pro" }]
    },
    { alias: "fal-image", to: [{ model: "fal/flux" }, { model: "fal/pro" }] }
  ]
}

export const aliasPath = "/vendors/alibaba/v1/fast-image/generation"

/** How a submit ends: with a job that succeeds or fails, or with a failure of the submit itself. */
export type Outcome = "ok" | "fails" | "OPERATOR_OF_JOB" | VendorErrorClass

/** A refusal. With a status it concerns the account; without one it ends a job. */
const refusal = (outcome: VendorErrorClass | "OPERATOR_OF_JOB", message: string) =>
  outcome === "OPERATOR_OF_JOB"
    ? new VendorError({ class: "OPERATOR", message })
    : new VendorError({
        class: outcome,
        message,
        ...(outcome === "OPERATOR" || outcome === "GONE" ? { httpStatus: 403 } : {})
      })

interface Submit {
  readonly taskId: string
  readonly model: string
  readonly outcome: Outcome
}

/**
 * A vendor whose prompts determine how each of its models responds, for example `max=RETRYABLE flux=ok`. By default
 * jobs succeed.
 */
export const scriptedVendor = () => {
  const submits: Array<Submit> = []
  const polls: Array<string> = []
  const outcomeOf = ({ body, upstreamModel }: SubmitRequest): Outcome => {
    const { prompt } = body as { readonly prompt: string }
    const found = new RegExp(`${upstreamModel}=(\\w+)`, "u").exec(prompt)?.[1]
    return (found ?? "ok") as Outcome
  }
  const vendor: Partial<VendorAccount> = {
    submit: (request) =>
      Effect.suspend(() => {
        const outcome = outcomeOf(request)
        const { taskId, upstreamModel: model } = request
        submits.push({ taskId, model, outcome })
        return outcome === "ok" || outcome === "fails"
          ? Effect.succeed({
              _tag: "Accepted" as const,
              handle: { taskId, outcome, model },
              pollAfter: Duration.seconds(1)
            })
          : Effect.fail(refusal(outcome, `${model} says ${outcome}`))
      }),
    poll: (handle) =>
      Effect.suspend(() => {
        polls.push(String(handle["model"]))
        return handle["outcome"] === "ok"
          ? Effect.succeed({
              _tag: "Done" as const,
              result: { items: [{ _tag: "Bytes" as const, bytes: pixel, mime: "image/png" }] }
            })
          : Effect.fail(new VendorError({ class: "FAILED", message: "the job failed" }))
      })
  }
  return { vendor, submits, polls }
}
