import { acceptedWithoutJob, usualStatuses } from "./JobProtocol.ts"
import type { JobProtocol } from "./JobProtocol.ts"

const isTall =
  'has(pictures.image) ? pictures.image.height > pictures.image.width : has(body.size) && body.size == "720*1280"'

/** The next longer of the lengths that the vendor offers. */
const seconds = {
  $cel: '!has(body.duration) ? "8" : body.duration <= 4 ? "4" : body.duration <= 8 ? "8" : "12"'
}

/** docs/reference/vendors.md#openai-videos */
export const openAiVideos: JobProtocol = {
  submit: {
    path: "/videos",
    form: {
      model: { $: "$.model" },
      prompt: { $: "$.body.prompt" },
      seconds,
      size: {
        $if: 'has(body.resolution) && body.resolution == "1080P"',
        $then: { $cel: `(${isTall}) ? "1024x1792" : "1792x1024"` },
        $else: { $cel: `(${isTall}) ? "720x1280" : "1280x720"` }
      },
      input_reference: { $file: "$.body.image" }
    },
    handle: { id: "$.id" }
  },
  poll: { path: "/videos/{id}" },
  state: {
    at: "$.status",
    running: ["queued", "in_progress"],
    done: ["completed"],
    failed: ["failed", "cancelled"]
  },
  progress: { at: "$.progress", of: 100 },
  results: { content: "/videos/{id}/content", mime: "video/mp4" },
  list: {
    path: "/videos?limit=100&order=desc",
    jobs: "$.data[*]",
    id: "$.id",
    createdAt: "$.created_at",
    model: [
      { listed: "$.model", sent: "$.model" },
      { listed: "$.seconds", sent: seconds }
    ],
    shows: [{ listed: "$.prompt", sent: "$.body.prompt" }],
    next: { parameter: "after", more: "$.has_more" }
  },
  error: {
    code: ["$.error.code", "$.error.type"],
    message: ["$.error.message"],
    requestIdHeader: "x-request-id",
    absent: "status"
  },
  failures: [
    acceptedWithoutJob,
    {
      codes: ["insufficient_quota", "billing_*", "invalid_api_key", "account_*"],
      class: "OPERATOR"
    },
    { codes: ["organization_*", "unsupported_country_*"], class: "OPERATOR" },
    { codes: ["model_not_found", "model_deprecated"], class: "GONE" },
    {
      when: 'message.lowerAscii().startsWith("the model ") && (message.lowerAscii().contains("does not exist") || message.lowerAscii().contains("has been deprecated"))',
      class: "GONE"
    },
    {
      codes: ["content_policy_violation", "moderation_blocked", "sentinel_block"],
      class: "CONTENT"
    },
    {
      when: ["safety system", "content policy", "moderation"]
        .map((it) => `message.lowerAscii().contains("${it}")`)
        .join(" || "),
      class: "CONTENT"
    },
    { codes: ["rate_limit_*"], class: "RATE_LIMITED" },
    { status: 401, class: "OPERATOR" },
    { status: 402, class: "OPERATOR" },
    { codes: ["server_error", "internal_error"], class: "RETRYABLE" },
    // Of a poll the status decides: a 403 does not mean that the job is gone
    {
      when: 'request == "submit" || status == 0',
      codes: ["invalid_*", "unsupported_*"],
      class: "FATAL_CLIENT"
    },
    ...usualStatuses
  ],
  pollsPerSecond: 20
}
