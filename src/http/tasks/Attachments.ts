import { Effect, Option } from "effect"
import { splitAttachments } from "../../catalog/bodies/Attachments.ts"
import { invalid } from "../../domain/Problem.ts"
import type { FieldFault } from "../../domain/Problem.ts"
import { urlFault, urlRefused } from "../../webhooks/WebhookUrl.ts"
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
  const refusal = yield* urlFault(checkUrl, webhook)
  const all = [...faults, ...others]
  if (all.length > 0) return yield* invalid([...all, ...Option.toArray(refusal)])
  if (Option.isSome(refusal)) return yield* urlRefused(refusal.value)
  return { metadata, webhook }
})

/** Treats `null` as absent, because clients send it for members that they leave out. */
const attachedIn = ({ metadata, webhook }: Readonly<Record<string, unknown>>): object => ({
  ...(metadata == null ? {} : { metadata }),
  ...(webhook == null ? {} : { webhook })
})
