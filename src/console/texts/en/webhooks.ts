import type { Schemas } from "../../api/schema.ts"

type Hour = Schemas["WebhookEndpointActivity"]["hours"][number]

/** Outcomes of some deliveries; of an hour with more than were counted, at least. */
const deliveriesOf = (of: Omit<Hour, "hour">): string => {
  const counts = [
    [of.succeeded, "delivered"],
    [of.failed, "failed"],
    [of.waiting, "waiting"]
  ] as const
  const found = counts
    .filter(([count]) => count > 0)
    .map(([count, name]) => `${count.toLocaleString("en")} ${name}`)
  if (found.length === 0) return "no deliveries"
  return `${of.has_more ? "at least " : ""}${found.join(", ")}`
}

/** Texts of endpoints, deliveries and the signature debugger. They load with their pages. */
export const webhookTexts = {
  about: "The gateway calls your endpoints when something happens to your tasks or balance.",
  tabs: "Webhook pages",
  endpoints: "Endpoints",
  endpoint: "Endpoint",
  lastAttempt: "Last attempt",
  activity: "Last 24 hours",
  activityOf: (deliveries: string) => `Last 24 hours: ${deliveries}`,
  deliveriesOf,
  failedOf: (count: number) => `${count.toLocaleString("en")} failed`,
  empty: "No endpoints yet",
  emptyDetail: "Add an endpoint and send it a test event.",
  create: "Add endpoint",
  change: "Change",
  rotate: "Rotate secret",
  test: "Send test event",
  testShort: "Send test",
  testing: "Sending the test event…",
  testGood: "Test delivered",
  testBad: "Test failed",
  pause: "Pause",
  resume: "Resume",
  remove: "Delete",
  recover: "Resend failed",
  actionOn: (action: string, url: string) => `${action}: ${url}`,
  url: "Address (URL)",
  urlHelp: "https, public",
  description: "Description",
  format: "Format",
  formatHelp: "OpenAI's: its clients can read events of background responses, batches and videos.",
  formats: [
    ["gateway", "This gateway's"],
    ["openai", "OpenAI's"]
  ] as const,
  events: "Events",
  eventCount: (count: number) => (count === 1 ? "1 event" : `${count} events`),
  eventNames: {
    "task.created": "A task was accepted",
    "task.succeeded": "A task completed",
    "task.failed": "A task failed",
    "task_batch.completed": "All tasks of a batch ended",
    "balance.low": "The balance fell below the alert threshold",
    "webhook.failing": "Another endpoint has failed for a day",
    "key.expiring": "A key expires within a week",
    "response.completed": "A background response completed",
    "response.incomplete": "A background response ended at its limit of tokens",
    "response.failed": "A background response failed",
    "response.cancelled": "A background response was cancelled",
    "batch.completed": "A batch of OpenAI's completed",
    "batch.failed": "A batch of OpenAI's failed",
    "batch.expired": "A batch of OpenAI's expired",
    "batch.cancelled": "A batch of OpenAI's was cancelled",
    "video.completed": "A video completed",
    "video.failed": "A video failed"
  },
  noEvent: "Choose at least one event.",
  state: "State",
  active: "Active",
  paused: "Paused",
  failing: (count: number, why: string) =>
    count === 1 ? `Failing: ${why}` : `Failing: ${why}, ${count} times in a row`,
  failingForLong: "No attempt has succeeded for a day, so events may be lost. Check the receiver.",
  httpStatus: (status: number) => `HTTP ${status}`,
  failures: {
    dns: "name does not resolve",
    connect: "connection failed",
    tls: "TLS error",
    timeout: "timed out",
    http_status: "not 2xx",
    redirect: "redirect",
    protocol: "not HTTP",
    blocked: "address not public",
    payload_too_large: "event too large",
    lost: "attempt lost"
  },
  secret: "Secret",
  oldSecret: (time: string) => `The old secret also signs for another ${time}`,
  secretTitle: "Endpoint secret",
  secretDetail: "Your receiver verifies signatures with it. The entire text is the key.",
  rotateTitle: "Rotate the secret?",
  rotateDetail: (url: string) =>
    `Requests to ${url} are signed with a new secret. For 24 hours they are signed with the old secret, too.`,
  removeTitle: "Delete this endpoint?",
  removeDetail: (url: string) =>
    `${url} no longer receives requests. Waiting deliveries are skipped.`,
  pauseTitle: "Pause this endpoint?",
  pauseDetail: (url: string) =>
    `${url} receives no requests until you resume it. Waiting deliveries are skipped; you can send them again.`,
  toDelivery: "View delivery",
  recoverTitle: "Resend failed and skipped deliveries",
  recoverDetail: (url: string) => `All deliveries to ${url} created since then, oldest first.`,
  since: "Since",
  chooseTime: "Choose a time in the past.",
  resent: (count: number) =>
    count === 1 ? "1 delivery will be sent again" : `${count} deliveries will be sent again`,
  delivery: {
    caption: "Deliveries, newest first",
    empty: "No deliveries yet",
    emptyDetail: "A delivery appears for each event that an endpoint subscribes to.",
    noMatch: "No deliveries match these filters",
    event: "Event",
    attempts: "Attempts",
    created: "Created",
    next: "Next attempt",
    task: "Task",
    gone: "Deleted endpoint",
    status: {
      pending: "Waiting",
      delivering: "In progress",
      succeeded: "Delivered",
      failed: "Failed",
      skipped: "Skipped"
    },
    again: "Resend",
    againAll: "Resend all matches",
    againAllTitle: "Resend these deliveries?",
    againAllDetail: (status: string) =>
      `All deliveries that match the filters and are ${status}, oldest first, each with six new attempts.`,
    failedOrSkipped: "failed or skipped",
    request: "Request",
    headers: "Headers",
    body: "Body",
    bodyGone: "The event is no longer stored.",
    why: "Why it failed",
    whyLast: "Why the last attempt failed",
    attempt: (n: number) => `Attempt ${n}`,
    late: (duration: string) => `${duration} after it was due`,
    bodyHelp: "Indented for reading. Copy gives the bytes that were sent.",
    resendOf: (id: string) => `Resend ${id}`,
    answer: "Response",
    noAnswer: "Empty body",
    sentAgain: "The delivery will be sent again.",
    none: "No attempts yet",
    skipped: "The endpoint was paused or deleted before the delivery was sent.",
    toTask: "View task",
    debug: "Debug the signature",
    advice: {
      dns: "The host name does not resolve. Check the address of the endpoint.",
      connect: "Nothing accepts connections at this address, or a firewall drops them.",
      tls: "The certificate is not valid for the name, has expired, or lacks its chain.",
      timeout:
        "The whole attempt must finish within 30 seconds. Respond first and do the work afterward.",
      http_status: "Only 2xx counts as delivered. The receiver's response is shown below.",
      redirect: "Redirects are not followed. Give the endpoint its final address.",
      protocol: "The response is not HTTP.",
      blocked: "The name resolves to an address that is not public.",
      payload_too_large: "The event is larger than 64 KB.",
      lost: "The gateway process ended. The attempt does not count and is sent again."
    }
  },
  signature: {
    about:
      "Paste what your receiver got. Everything is computed in this browser; the secret is neither sent nor stored.",
    secret: "Secret of the endpoint",
    headers: "Headers as received",
    headersHelp: "One per line, as Name: value",
    body: "Raw body as received",
    at: "Received at",
    atHelp: "Empty: now",
    check: "Check",
    valid: "The signature is valid: the delivery is from this service, unchanged and recent.",
    invalid: "The signature is not valid. Findings:",
    insecure:
      "Browsers do not compute signatures on pages opened without https. Open this page over https or on localhost.",
    parts: "Parts",
    part: "Part",
    finding: "Finding",
    partNames: {
      header: "Headers",
      time: "Time",
      secret: "Secret",
      body: "Body",
      signature: "Signature"
    },
    missing: (name: string) => `The header ${name} is missing`,
    repeated: (name: string) => `The header ${name} occurs more than once`,
    noTime: "The timestamp is not a whole number of seconds",
    skew: (seconds: number) =>
      `Signed ${Math.abs(seconds)} s ${seconds > 0 ? "before" : "after"} it was received; 300 s are allowed. Check the receiver's clock, or enter when it was received.`,
    prefix: "The signature does not begin with v1=",
    form: "The signature is not v1= followed by 64 lower-case hex digits",
    byPrevious:
      "This is the old secret, which is being rotated. Receivers need the new one within 24 hours.",
    spaces: "The secret has white space around it",
    noPrefix: "The secret lacks whsec_: the entire text is the key",
    otherSecret: "It was signed with another secret, or for another id, time or body",
    lineEnd:
      "It verifies with a different line ending at the end of the body: the body was trimmed or a line ending was added",
    rewritten:
      "It verifies with the body as compact JSON: the body was parsed and serialized again. Verify the raw bytes.",
    notSent: (at: number, received: number, sent: number) =>
      `This is not the body that was sent: it differs from character ${at} on (${received} characters instead of ${sent})`,
    sentVerifies:
      "The signature is valid for the body that was sent: the body was changed in transit"
  }
}
