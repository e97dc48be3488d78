/** Texts of endpoints, deliveries and the signature debugger. They come with their pages. */
export const webhookTexts = {
  title: "Webhooks",
  about:
    "The gateway calls an endpoint of yours when something happens to your tasks or your balance.",
  tabs: "Webhook pages",
  endpoints: "Endpoints",
  deliveries: "Deliveries",
  debugger: "Signature debugger",
  deliveriesOf: "Its deliveries",
  empty: "No endpoint yet",
  emptyDetail: "Add one, and send it a test event.",
  create: "Add endpoint",
  change: "Change",
  rotate: "Rotate secret",
  test: "Send test event",
  pause: "Pause",
  resume: "Resume",
  remove: "Delete",
  recover: "Send failed again",
  actionOn: (action: string, url: string) => `${action}: ${url}`,
  url: "Address (URL)",
  urlHelp: "https, public",
  description: "Description",
  events: "Events",
  eventNames: {
    "task.created": "A task was accepted",
    "task.succeeded": "A task is completed",
    "task.failed": "A task has failed",
    "balance.low": "The balance fell below the alert"
  },
  noEvent: "Choose at least one event.",
  state: "State",
  active: "Active",
  paused: "Paused",
  failing: (count: number, why: string) =>
    count === 1
      ? `Failing: the last attempt failed (${why})`
      : `Failing: the last ${count} attempts failed (${why})`,
  httpStatus: (status: number) => `HTTP ${status}`,
  failures: {
    dns: "name does not resolve",
    connect: "no connection",
    tls: "TLS error",
    timeout: "time-out",
    http_status: "not 2xx",
    redirect: "redirect",
    protocol: "not HTTP",
    blocked: "address not public",
    payload_too_large: "event too large",
    lost: "attempt lost"
  },
  secret: "Secret",
  oldSecret: (time: string) => `The old secret also signs for ${time}`,
  secretTitle: "Secret of your endpoint",
  secretDetail: "Your receiver verifies signatures with it. The whole text is the key.",
  rotateTitle: "Rotate the secret?",
  rotateDetail: (url: string) =>
    `Requests to ${url} get a signature by a new secret. For 24 hours they have one by the old secret, too.`,
  removeTitle: "Delete this endpoint?",
  removeDetail: (url: string) =>
    `${url} no longer receives requests. Waiting deliveries are skipped.`,
  pauseTitle: "Pause this endpoint?",
  pauseDetail: (url: string) =>
    `${url} receives no requests until you resume it. Waiting deliveries are skipped; you can send them again.`,
  sent: "The test event is on its way:",
  toDelivery: "its delivery",
  recoverTitle: "Send failed and skipped deliveries again",
  recoverDetail: (url: string) => `All to ${url} that were created since then, oldest first.`,
  since: "Since",
  chooseTime: "Choose a time in the past.",
  resent: (count: number) =>
    count === 1 ? "1 delivery is sent again" : `${count} deliveries are sent again`,
  delivery: {
    caption: "Deliveries, newest first",
    empty: "No delivery yet",
    emptyDetail: "A delivery appears for each event that an endpoint subscribes to.",
    noMatch: "No delivery matches these filters",
    endpoint: "Endpoint",
    event: "Event",
    attempts: "Attempts",
    created: "Created",
    next: "Next attempt",
    task: "Task",
    gone: "Deleted endpoint",
    status: {
      pending: "Waiting",
      delivering: "Under way",
      succeeded: "Delivered",
      failed: "Failed",
      skipped: "Skipped"
    },
    again: "Send again",
    againAll: "Send all that match again",
    againAllTitle: "Send these deliveries again?",
    againAllDetail: (status: string) =>
      `All deliveries that match the filters and are ${status}, oldest first, each with six new attempts.`,
    failedOrSkipped: "failed or skipped",
    title: "Delivery",
    request: "Request",
    headers: "Headers",
    body: "Body",
    bodyGone: "Its event is no longer kept.",
    why: "Why it failed",
    whyLast: "Why the last attempt failed",
    attempt: (n: number) => `Attempt ${n}`,
    underWay: "Under way",
    late: (duration: string) => `${duration} after it was due`,
    address: "Address",
    answer: "Answer",
    noAnswer: "No text",
    sentAgain: "It is sent again.",
    none: "No attempt yet",
    skipped: "Its endpoint was paused or deleted before it was delivered.",
    toTask: "Its task",
    debug: "Debug its signature",
    advice: {
      dns: "The host name does not resolve. Check the address of the endpoint.",
      connect: "Nothing accepts connections there, or a firewall drops them.",
      tls: "The certificate is not valid for the name, has expired, or lacks its chain.",
      timeout: "The whole attempt has 30 seconds. Answer first, work afterwards.",
      http_status: "Only 2xx counts as delivered. What the receiver answered stands below.",
      redirect: "Redirects are not followed. Give the endpoint its final address.",
      protocol: "What came back is not HTTP.",
      blocked: "The name leads to an address that is not public.",
      payload_too_large: "The event has more than 64 KB.",
      lost: "The process of the gateway ended. The attempt is sent again and is not counted."
    }
  },
  signature: {
    title: "Signature debugger",
    about:
      "Paste what your receiver got. It is computed in this browser; the secret is sent nowhere and kept nowhere.",
    secret: "Secret of the endpoint",
    headers: "Headers as received",
    headersHelp: "One a line, as Name: value",
    body: "Raw body as received",
    at: "Received at",
    atHelp: "Empty: now",
    check: "Check",
    valid: "The signature is right: the delivery is from this service, unchanged and recent.",
    invalid: "The signature does not verify. What was found:",
    insecure:
      "This page was opened without https, and then a browser computes no signatures. Open it by https, or at localhost.",
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
    good: "In order",
    missing: (name: string) => `The header ${name} is missing`,
    repeated: (name: string) => `The header ${name} is there more than once`,
    noTime: "The timestamp is not a whole number of seconds",
    skew: (seconds: number) =>
      `Signed ${Math.abs(seconds)} s ${seconds > 0 ? "before" : "after"} it was received; 300 are allowed. Check the receiver's clock, or say when it was received.`,
    prefix: "The signature does not begin with v1=",
    form: "The signature is not v1= and 64 hex digits in lower case",
    byPrevious:
      "It was signed with this secret as the old one: a rotation is under way. Receivers should have the new one within 24 hours.",
    spaces: "The secret has white space around it",
    noPrefix: "The secret lacks whsec_: the whole text is the key",
    otherSecret: "Another secret signed this, or another id, time or body",
    lineEnd:
      "With another end of line at the end of the body it verifies: the body was trimmed or a line end was added",
    rewritten:
      "As compact JSON the body verifies: it was parsed and written again. Verify the raw bytes.",
    notSent: (at: number, received: number, sent: number) =>
      `It is not the body that was sent: it differs from character ${at} on (${received} characters instead of ${sent})`,
    sentVerifies:
      "With the body that was sent the signature is right: the body was changed on the way",
    asSent: "It is the body that was sent",
    unknownDelivery: "There is no delivery of yours with this id in the log"
  }
}
