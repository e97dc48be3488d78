import { Result, Schema } from "effect"
import { OpenAiEventType } from "../../domain/Event.ts"
import {
  metadataKeyCharactersMax,
  metadataKeysMax,
  metadataValueCharactersMax
} from "../../domain/limits/ShapeLimits.ts"
import type { FieldFault } from "../../domain/Problem.ts"
import { Metadata, metadataJsonSchema } from "../../domain/task/Metadata.ts"
import { outcomeEvents, TaskEventType } from "../../domain/task/TaskWebhook.ts"
import type { TaskWebhook } from "../../domain/task/TaskWebhook.ts"
import { formatFaults, WebhookFormat } from "../../domain/Webhook.ts"
import { bodyParseOptions, describeValue, faultsOf } from "../FieldFaults.ts"
import { someOf, Text } from "./Fields.ts"

const codePoints = (text: string): number => [...text].length

const keyFault = (key: string): string | undefined =>
  key.length === 0 || codePoints(key) > metadataKeyCharactersMax || !isStorable(key)
    ? `Expected a key of 1 to ${metadataKeyCharactersMax} characters, got ${describeValue(key)}`
    : undefined

const valueFault = (value: string): string | undefined => {
  if (!isStorable(value)) return "Contains a character that cannot be stored"
  return codePoints(value) > metadataValueCharactersMax
    ? `Expected at most ${metadataValueCharactersMax} characters, got ${codePoints(value)}`
    : undefined
}

const isStorable = Schema.is(Text)

/** The rules of docs/reference/tasks.md#metadata. */
export const GivenMetadata = Metadata.check(
  Schema.makeFilter<Metadata>(
    (metadata) => {
      const entries = Object.entries(metadata)
      if (entries.length > metadataKeysMax) {
        return `Expected at most ${metadataKeysMax} keys, got ${entries.length}`
      }
      return entries.flatMap(([key, value]) => {
        const issue = keyFault(key) ?? valueFault(value)
        return issue === undefined ? [] : [{ path: [key], issue }]
      })
    },
    { toJsonSchema: () => metadataJsonSchema }
  )
)

/** The rules of docs/reference/webhooks.md#webhook-of-a-task; the URL is checked by `makeUrlCheck`. */
export const GivenWebhook = Schema.Struct({
  url: Text,
  events: Schema.optionalKey(
    someOf(Schema.Literals([...TaskEventType.literals, ...OpenAiEventType.literals]))
  ),
  format: Schema.optionalKey(WebhookFormat)
})
  .annotate({ description: "Where the events of this task are sent" })
  .check(
    Schema.makeFilter(({ events = [], format = "gateway" }) =>
      formatFaults(format, events).map(({ n, detail }) => ({ path: ["events", n], issue: detail }))
    )
  )

const Given = Schema.Struct({
  metadata: Schema.optionalKey(GivenMetadata),
  webhook: Schema.optionalKey(GivenWebhook)
})
const decodeGiven = Schema.decodeUnknownResult(Given, bodyParseOptions)

/** Data that a client attaches to a task in addition to the model's body. */
export interface Attachments {
  readonly metadata: Metadata | null
  readonly webhook: TaskWebhook | null
}

const nothing: Attachments = { metadata: null, webhook: null }

/** Splits the body of a create into the model's body and the client's attachments. */
export const splitAttachments = (
  input: unknown
): Attachments & { readonly input: unknown; readonly faults: ReadonlyArray<FieldFault> } => {
  const none = { ...nothing, input, faults: [] }
  if (typeof input !== "object" || input === null || Array.isArray(input)) return none
  const attached = ["metadata", "webhook"].filter((name) => Object.hasOwn(input, name))
  if (attached.length === 0) return none
  const { metadata, webhook, ...rest } = { metadata: undefined, webhook: undefined, ...input }
  const both: Record<string, unknown> = { metadata, webhook }
  const given = decodeGiven(Object.fromEntries(attached.map((name) => [name, both[name]])))
  if (Result.isFailure(given)) {
    return { ...nothing, input: rest, faults: faultsOf(given.failure.issue) }
  }
  const hook = given.success.webhook
  return {
    input: rest,
    metadata: given.success.metadata ?? null,
    webhook:
      hook === undefined
        ? null
        : { url: hook.url, events: hook.events ?? outcomeEvents, format: hook.format ?? "gateway" },
    faults: []
  }
}
