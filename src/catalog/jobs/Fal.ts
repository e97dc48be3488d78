import { acceptedWithoutJob, usualStatuses } from "./JobProtocol.ts"
import type { JobProtocol } from "./JobProtocol.ts"

const timeouts = ["generation_timeout", "request_timeout", "startup_timeout"] as const

/**
 * fal's queue, which runs labelled models and those of `mediaModels`. docs/reference/vendors.md#fal-queue
 */
export const falQueue: JobProtocol = {
  auth: { scheme: "header", name: "Authorization", prefix: "Key " },
  submit: {
    path: "/{model}",
    json: { $: "$.body" },
    handle: {
      id: "$.request_id",
      statusUrl: { url: "$.status_url", or: "/{model:2}/requests/{id}/status" },
      responseUrl: { url: "$.response_url", or: "/{model:2}/requests/{id}" },
      cancelUrl: { url: "$.cancel_url", or: "/{model:2}/requests/{id}/cancel" }
    }
  },
  poll: { path: "{statusUrl}" },
  cancel: { method: "PUT", path: "{cancelUrl}", tooLate: [400] },
  state: {
    at: "$.status",
    running: ["IN_QUEUE", "IN_PROGRESS"],
    done: ["COMPLETED"],
    failed: ["FAILED"],
    failure: "$.error"
  },
  results: {
    path: "{responseUrl}",
    urls: "usual",
    json: ["$"],
    flagged: "$.has_nsfw_concepts"
  },
  callbacks: { parameter: "fal_webhook", proof: { scheme: "fal" } },
  error: {
    code: ["$.detail[0].type", "$.detail.error"],
    codeHeader: "x-fal-error-type",
    message: ["$.detail[0].msg", "$.detail.message", "$.detail"],
    requestIdHeader: "x-fal-request-id",
    absent: "status"
  },
  jobError: { code: ["$.error_type"], message: ["$.error"] },
  failures: [
    acceptedWithoutJob,
    { codes: ["content_policy_violation"], class: "CONTENT" },
    { codes: ["file_download_error", "image_load_error", "file_too_large"], class: "MEDIA" },
    { codes: ["EndpointDeprecated"], class: "GONE" },
    // Only the beginning, because the rest of a message may quote the client
    {
      when: ["exhausted balance", "user is locked", "billing"]
        .map((words) => `message.lowerAscii().startsWith("${words}")`)
        .join(" || "),
      class: "OPERATOR"
    },
    // Only a failed job was given up: any other request can be repeated
    { codes: timeouts, when: 'request != "results" && status > 0', class: "RETRYABLE" },
    { codes: timeouts, class: "TIMEOUT" },
    // The job has ended, so the error at its result is the job's
    { when: 'request == "results" && !(status in [401, 403, 422, 429])', class: "FAILED" },
    { codes: ["internal_server_error", "runner_*", "downstream_service_*"], class: "RETRYABLE" },
    ...usualStatuses
  ],
  pollsPerSecond: 200
}
