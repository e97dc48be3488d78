import { Effect, Option } from "effect"
import { webhookUrlCharactersMax } from "../domain/limits/Limits.ts"
import { Problem } from "../domain/Problem.ts"
import type { FieldFault } from "../domain/Problem.ts"
import type { TaskWebhook } from "../domain/task/TaskWebhook.ts"
import { EgressGuard } from "../egress/EgressGuard.ts"
import type { EgressRefused } from "../egress/EgressRules.ts"

/** Returns the reason why a URL may not be used for a webhook; `None` if it may. */
export type CheckUrl = (url: string) => Effect.Effect<Option.Option<string>>

/** Whitespace and control characters, which a URL parser would remove silently. */
const blank = /[\s\p{Cc}]/u

const checkBy =
  (check: (url: string) => Effect.Effect<unknown, EgressRefused>): CheckUrl =>
  (url) => {
    if (Array.from(url).length > webhookUrlCharactersMax) {
      return Effect.succeedSome(`The URL is longer than ${webhookUrlCharactersMax} characters`)
    }
    if (blank.test(url)) {
      return Effect.succeedSome("the URL contains a space or a control character")
    }
    return check(url).pipe(
      Effect.as(Option.none()),
      Effect.catchTag("EgressRefused", ({ reason }) => Effect.succeedSome(reason))
    )
  }

const schemes = ["https"] as const

/**
 * Checks the rules for URLs in docs/reference/webhooks.md#endpoints. Resolves the host, which takes at most 2 seconds.
 */
export const makeUrlCheck = Effect.map(EgressGuard, (guard) =>
  checkBy((url) => guard.checkSaved(url, { schemes }))
)

/** Checks without resolving the host, for many URLs at once. Each attempt resolves and checks the host later. */
export const makeUrlTextCheck = Effect.map(EgressGuard, (guard) =>
  checkBy((url) => guard.checkUrl(url, { schemes }))
)

/** The fault of a task's webhook whose URL may not be used. */
export const urlFault = (checkUrl: CheckUrl, webhook: TaskWebhook | null) =>
  webhook === null
    ? Effect.succeedNone
    : Effect.map(
        checkUrl(webhook.url),
        Option.map((detail): FieldFault => ({ pointer: "#/webhook/url", detail }))
      )

/** A 2011 with a pointer to the field. */
export const urlRefused = (fault: FieldFault): Problem =>
  new Problem({ code: 2011, detail: fault.detail, errors: [fault] })
