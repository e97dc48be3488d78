import { Effect, Option } from "effect"
import { splitAttachments } from "../../catalog/bodies/Attachments.ts"
import { invalid } from "../../domain/Problem.ts"
import type { FieldFault } from "../../domain/Problem.ts"
import { urlRefused } from "../../webhooks/WebhookUrl.ts"
import type { CheckUrl } from "../../webhooks/WebhookUrl.ts"

/**
 * The metadata and the webhook of a request in a vendor's format. Fails with 2001 for their faults and `others`, and
 * with 2011 if only the webhook URL is refused.
 */
export const readAttachments = Effect.fnUntraced(function* (
  given: Readonly<Record<string, unknown>>,
  checkUrl: CheckUrl,
  others: ReadonlyArray<FieldFault> = []
) {
  const { faults, metadata, webhook } = splitAttachments(attachedIn(given))
  const refused = webhook === null ? Option.none<string>() : yield* checkUrl(webhook.url)
  const urlFaults = Option.toArray(refused).map((detail) => ({ pointer: "#/webhook/url", detail }))
  const all = [...faults, ...others]
  if (all.length > 0) return yield* invalid([...all, ...urlFaults])
  for (const fault of urlFaults) return yield* urlRefused(fault)
  return { metadata, webhook }
})

/** Treats `null` as absent, because clients send it for members that they leave out. */
const attachedIn = ({ metadata, webhook }: Readonly<Record<string, unknown>>): object => ({
  ...(metadata == null ? {} : { metadata }),
  ...(webhook == null ? {} : { webhook })
})
