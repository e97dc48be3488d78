import { acceptedWithoutJob, usualStatuses } from "./JobProtocol.ts"
import type { JobProtocol } from "./JobProtocol.ts"

/** The vendor has no error codes, so the message decides. */
const says = (...words: ReadonlyArray<string>) =>
  words.map((it) => `message.lowerAscii().contains("${it}")`).join(" || ")

const interrupted = says("prediction interrupted", "prediction timed out")

/**
 * Replicate's predictions, which run labelled models and those of `mediaModels`. Files and results are deleted after an
 * hour. docs/reference/vendors.md#replicate-predictions
 */
export const replicatePredictions: JobProtocol = {
  submit: {
    forms: [
      { model: "deployments/{deployment:2}", path: "/deployments/{deployment:2}/predictions" },
      { model: "{name:2}:{version}", path: "/predictions" },
      { model: "{name:2}", path: "/models/{name:2}/predictions" },
      { model: "{version}", path: "/predictions" }
    ],
    json: {
      version: { $: "$.named.version" },
      input: { $: "$.body" },
      webhook: { $: "$.callback" },
      webhook_events_filter: { $if: "callback != null", $then: ["completed"] }
    },
    // The vendor accepts data URIs only of small files
    uploads: { above: 1024 * 1024, path: "/files", part: "content", at: "$.urls.get" },
    handle: {
      id: "$.id",
      getUrl: { url: "$.urls.get", or: "/predictions/{id}" },
      cancelUrl: { url: "$.urls.cancel", or: "/predictions/{id}/cancel" }
    }
  },
  poll: { path: "{getUrl}" },
  cancel: { method: "POST", path: "{cancelUrl}", states: ["canceled", "aborted"] },
  state: {
    at: "$.status",
    running: ["starting", "processing"],
    done: ["succeeded"],
    failed: ["failed", "canceled", "aborted"]
  },
  results: { at: "$.output", urls: ["$"], json: ["$"], shortLived: true },
  list: {
    path: "/predictions",
    jobs: "$.results[*]",
    id: "$.id",
    createdAt: "$.created_at",
    model: [
      { listed: "$.model", sent: "$.named.name" },
      { listed: "$.version", sent: "$.named.version" },
      // A prediction of a deployment shows another model
      { listed: "$.deployment", sent: "$.named.deployment", exact: true }
    ],
    shows: [{ listed: "$.input", sent: "$.input" }],
    next: { at: "$.next" },
    callback: "$.webhook"
  },
  callbacks: {
    proof: {
      scheme: "standard-webhooks",
      secret: { path: "/webhooks/default/secret", at: "$.key" }
    }
  },
  error: { message: ["$.detail"], absent: "status" },
  jobError: { message: ["$.error"] },
  failures: [
    acceptedWithoutJob,
    {
      when: says("nsfw", "flagged as sensitive", "safety checker", "safety filter", "e005"),
      class: "CONTENT"
    },
    {
      when: 'message.lowerAscii().startsWith("the specified version does not exist")',
      class: "GONE"
    },
    { when: says("failed to download", "failed to fetch"), class: "MEDIA" },
    // Only a failed job was given up: any other request can be repeated
    { when: `status > 0 && (${interrupted})`, class: "RETRYABLE" },
    { when: interrupted, class: "TIMEOUT" },
    // This message may quote the client
    { status: 400, class: "FATAL_CLIENT" },
    { status: 422, class: "FATAL_CLIENT" },
    { when: says("unpaid", "insufficient credit", "billing", "spend limit"), class: "OPERATOR" },
    ...usualStatuses
  ],
  pollsPerSecond: 40
}
